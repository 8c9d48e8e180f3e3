"""Dual points for features without penalty, whose dual constraint is an equality.

For the free features F (an intercept among them; all of them where lam = 0) a dual point must
satisfy ``X_F^T diag(w) (V - Y) = 0``. A V that does not is projected onto that subspace. Where that
makes entries negative, the nearest V in relative entropy is taken (:mod:`fenchel.tilting`): with
the zeros of V, or else with no more in it than what is left of the equalities; and where that takes
too long, the one that is nearest to uniform rows, which is computed once.

Where scores X_F B separate a class, ``z_y >= z_l`` for all samples and classes, the equality gives
``sum_i w_i sum_l V(i,l) (z_y - z_l) = 0``: V(i,l) = 0 wherever the sign is strict. The entropy
takes these entries to zero, by a factor of e at each step. Where uniform rows show which these are,
V has none of them from then on: any entries may be left out without harm to the bound. With
``positive`` the equality is the same: the rows of G_U sum to zero, so that none of its entries is
positive alone.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fenchel.problem import Matrix, Problem
from fenchel.tilting import residual, tilted

#: More features than this without penalty are not worth their dual point.
MAX_FREE = 64

#: What is left of an equality, relative to the size of its feature, may be this much rounding.
ROUNDING = 1e-12

#: Directions of the free features below this, relative to the largest, are dependent columns.
DEPENDENT = 1e-13

#: Entries of the point nearest to uniform rows that are below this are taken for separated.
SEPARATED = 1e-10

#: Multiplications for a dual point (a second), and for the one nearest to uniform rows.
WORK, WORK_ONCE = 1 << 34, 1 << 37


class Repair:
    """What the dual points of one problem are repaired with."""

    @classmethod
    def of(cls, problem: Problem) -> Repair | None:
        """The repair of a problem, made once; None where there is nothing (or too much) to do."""
        if not problem.has_free:
            return None
        free = _free(problem)
        if too_many(problem) or free.size == int(problem.intercept):
            return None
        known = problem.__dict__  # as functools.cached_property keeps what it computes
        if "_repair" not in known or known["_repair"].free.size != free.size:
            known["_repair"] = cls(problem, free)
        return known["_repair"]

    def __init__(self, problem: Problem, free: np.ndarray) -> None:
        self.problem, self.free = problem, free
        A = np.column_stack([problem.design.column(j) for j in free]).astype(np.float64)
        self.sizes = problem.weights @ np.abs(A)
        # an orthonormal basis in the weighted inner product; dependent columns drop out
        roots = np.sqrt(problem.weights)
        A = roots[:, None] * A / np.where(self.sizes > 0.0, self.sizes, 1.0)
        left, lengths, _ = np.linalg.svd(A, full_matrices=False)
        kept = lengths > DEPENDENT * max(float(lengths.max(initial=0.0)), 1e-300)
        left, self.lengths = left[:, kept], lengths[kept, None]
        self.basis = left / np.where(roots > 0.0, roots, 1.0)[:, None]
        present = np.bincount(problem.y, weights=problem.weights, minlength=problem.k) > 0.0
        # beside an intercept a class without samples can have no mass
        self.face = np.tile(present | (not problem.intercept), (problem.n, 1))
        self.is_product = True  # every row has the same entries

    def __call__(self, V: Matrix) -> np.ndarray:
        """A matching point close to V."""
        V = V.toarray() if sp.issparse(V) else V
        W = self._project(self._project(V)) if self.is_product else None
        if W is None or W.min() < 0.0:
            W = self._tilted(V)
        W = np.maximum(self.nearest_to_uniform if W is None else W, 0.0)
        return W / W.sum(axis=1, keepdims=True)

    @cached_property
    def nearest_to_uniform(self) -> np.ndarray:
        """The point to fall back on; it tells which entries are separated. Y if none is found."""
        W = self._tilt(self._uniform, WORK_ONCE)
        if W is None:
            return np.eye(self.problem.k)[self.problem.y]
        face = self.face & (W > SEPARATED)
        on_face = self._tilt(_rows_to_one(np.where(face, W, 0.0)), WORK_ONCE)
        if on_face is None:
            return W
        self.face, self.is_product = face, bool((face == face[0]).all())
        return on_face

    @property
    def _uniform(self) -> np.ndarray:
        return self.face / self.face.sum(axis=1, keepdims=True)

    def _tilt(self, V: np.ndarray, work: int) -> np.ndarray | None:
        problem = self.problem
        return tilted(V, self.basis, problem.weights, problem.y, work, self.lengths)

    def _tilted(self, V: np.ndarray) -> np.ndarray | None:
        """The nearest in relative entropy, with the zeros of V if that goes."""
        V = np.where(self.face, V, 0.0)
        V = np.where(V.any(axis=1, keepdims=True), V, self._uniform)
        V = _rows_to_one(V)
        W = self._tilt(V, WORK)
        if W is not None or (V > 0.0)[self.face].all():
            return W
        left = residual(V, self.basis, self.problem.weights, self.problem.y)
        share = min(0.5, float(np.abs(left).max()))
        return self._tilt((1.0 - share) * V + share * self._uniform, WORK)

    def _project(self, V: np.ndarray) -> np.ndarray:
        """The nearest point of the equalities; its entries may be negative.

        The difference is Q B on the classes of the face, without the mean of each row there.
        """
        problem, open_ = self.problem, self.face[0]
        V = np.where(open_, V, 0.0)
        V += np.where(open_, (1.0 - V.sum(axis=1, keepdims=True)) / open_.sum(), 0.0)
        Z = self.basis @ residual(V, self.basis, problem.weights, problem.y)
        return V - np.where(open_, Z - Z[:, open_].mean(axis=1, keepdims=True), 0.0)


def _rows_to_one(V: np.ndarray) -> np.ndarray:
    return V / V.sum(axis=1, keepdims=True)


def _free(problem: Problem) -> np.ndarray:
    return np.flatnonzero(problem.lam * problem.penalty_factor == 0.0)


def too_many(problem: Problem) -> bool:
    """Whether so many features have no penalty that the only bound is 0, whatever V is."""
    return problem.radius is None and _free(problem).size > MAX_FREE
