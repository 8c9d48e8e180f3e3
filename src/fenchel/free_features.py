"""Dual points for features without penalty, whose dual constraint is an equality.

For the free features F (an intercept among them; all of them where lam = 0) a dual point must
satisfy ``X_F^T diag(w) (V - Y) = 0``. A V that does not is projected onto that subspace, and then
mixed with an inner point V0 of it, which has no small entry, until none is negative.

Where scores X_F B separate a class, ``z_y >= z_l`` for all samples and classes, the equality gives
``sum_i w_i sum_l V(i,l) (z_y - z_l) = 0``: V(i,l) = 0 wherever the sign is strict. These entries
are found where there seems to be no V0 (:func:`_face`), and V and V0 have none of them. Any entries
may be left out without harm to the bound. With ``positive`` the equality is the same: the rows of
G_U sum to zero, so that none of its entries is positive alone.
"""

from __future__ import annotations

import numpy as np
import scipy
import scipy.sparse as sp

from fenchel.problem import Matrix, Problem

#: More features than this without penalty are not worth their inner point.
MAX_FREE = 64

#: What is left of an equality, relative to the size of its feature, may be this much rounding.
ROUNDING = 1e-12

#: Directions of the free features below this, relative to the largest, are dependent columns.
DEPENDENT = 1e-13

#: The smallest entry of the inner point: from the first (in parts of 1/k) down to the second, by
#: this factor from one projection to the next.
LEAST, SHRINK = (0.5, 1e-6), 0.98

#: Scores (of size one) that differ by more than this are separated.
SEPARATED = 1e-7

#: Where something is separated: free features times classes, whose square is an array, and the
#: numbers in a linear program (a few seconds).
MAX_EQUALITIES, MAX_PROGRAM = 2000, 1_000_000


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
        left = left[:, lengths > DEPENDENT * max(float(lengths.max(initial=0.0)), 1e-300)]
        self.basis = left / np.where(roots > 0.0, roots, 1.0)[:, None]
        present = np.bincount(problem.y, weights=problem.weights, minlength=problem.k) > 0.0
        # beside an intercept a class without samples can have no mass
        self._set_face(np.tile(present | (not problem.intercept), (problem.n, 1)))
        if self.inner is None:
            self._set_face(_face(problem, self.basis, self.face))

    def __call__(self, V: Matrix) -> np.ndarray:
        """The nearest matching point, mixed with the inner one as much as signs ask for."""
        V = self._project(self._project(V.toarray() if sp.issparse(V) else V))
        negative = V < 0.0
        if negative.any() and self.inner is not None:
            room = self.inner[negative] - V[negative]
            t = float((-V[negative] / np.maximum(room, 1e-300)).max())
            V += min(1.0, t) * (self.inner - V)
        V = np.maximum(V, 0.0)
        return V / V.sum(axis=1, keepdims=True)

    def _set_face(self, face: np.ndarray) -> None:
        """Let V have these entries only, and find the inner point that has."""
        self.face = face
        self.counts = np.maximum(face.sum(axis=1), 1)[:, None]
        self.inverse = None if (face == face[0]).all() else self._inverse()
        self.inner = self._inner()

    def _inverse(self) -> np.ndarray:
        """The inverse of ``B -> Q^T diag(w) C(Q B)`` on its range, (r k, r k); C as below.

        Q is orthonormal, so that one is large: where all that is open belongs to samples without
        free features, there is nothing but rounding to invert.
        """
        w, Q, k, r = self.problem.weights, self.basis, self.problem.k, self.basis.shape[1]
        H = np.empty((k, r, k, r))
        for l in range(k):
            for m in range(l + 1):
                both = self.face[:, l] * ((l == m) - self.face[:, m] / self.counts[:, 0])
                H[l, :, m], H[m, :, l] = [(Q * (w * both)[:, None]).T @ Q] * 2
        values, vectors = np.linalg.eigh(H.reshape(k * r, k * r))
        range_ = values > ROUNDING
        return (vectors[:, range_] / values[range_]) @ vectors[:, range_].T

    def _centred(self, Z: np.ndarray) -> np.ndarray:
        """C(Z): on the face, and without the mean of each row there."""
        return np.where(self.face, Z - (Z * self.face).sum(axis=1)[:, None] / self.counts, 0.0)

    def _project(self, V: np.ndarray) -> np.ndarray:
        """The nearest point of the equalities on the face; its entries may be negative.

        The difference is C(Q B). Once more takes off what rounding leaves.
        """
        problem = self.problem
        V = np.where(self.face, V, 0.0)
        V += np.where(self.face, (1.0 - V.sum(axis=1))[:, None] / self.counts, 0.0)
        residual = V.copy()
        residual[np.arange(problem.n), problem.y] -= 1.0
        B = self.basis.T @ (problem.weights[:, None] * residual)
        if self.inverse is not None:
            B = (self.inverse @ B.T.ravel()).reshape(problem.k, -1).T
        return V - self._centred(self.basis @ B)

    def _inner(self) -> np.ndarray | None:
        """A point of the equalities with no small entry on the face; None where none is found.

        Alternating projections, onto the equalities and onto ``V >= least`` with ever less.
        """
        V, least = np.zeros(self.face.shape), LEAST[0] / self.problem.k
        while least > LEAST[1]:
            V = self._project(np.maximum(V, least))
            if V[self.face].min() >= 0.5 * least:
                return self._project(V)
            least *= SHRINK
        return None


def _free(problem: Problem) -> np.ndarray:
    return np.flatnonzero(problem.lam * problem.penalty_factor == 0.0)


def too_many(problem: Problem) -> bool:
    """Whether so many features have no penalty that the only bound is 0, whatever V is."""
    return problem.radius is None and _free(problem).size > MAX_FREE


def _face(problem: Problem, Q: np.ndarray, face: np.ndarray) -> np.ndarray:
    """The entries of V that may be positive, of those given: what scores Q B separate may not.

    ``max_B sum (z_y - z_l)`` over scores with ``z_y >= z_l`` and B in a box finds some of them, the
    same without these finds more, until nothing is left. Equal samples count once.
    """
    k, r = problem.k, Q.shape[1]
    some = np.flatnonzero(problem.weights > 0.0)
    key = np.column_stack([Q[some], problem.y[some], face[some]])
    _, first, copies = np.unique(key, axis=0, return_index=True, return_inverse=True)
    q, y, open_ = Q[some[first]], problem.y[some[first]], face[some[first]].copy()
    wrong = np.arange(k) != y[:, None]
    if k * r > MAX_EQUALITIES or 2 * r * int((open_ & wrong).sum()) > MAX_PROGRAM:
        return face
    while (open_ & wrong).any():
        i, l = np.nonzero(open_ & wrong)
        rows = np.repeat(np.arange(i.size), r)
        lower = sp.csr_array((q[i].ravel(), (rows, (r * l[:, None] + np.arange(r)).ravel())),
                             shape=(i.size, r * k))  # fmt: skip
        upper = sp.csr_array((q[i].ravel(), (rows, (r * y[i][:, None] + np.arange(r)).ravel())),
                             shape=(i.size, r * k))  # fmt: skip
        ahead = upper - lower
        found = scipy.optimize.linprog(
            -ahead.mean(axis=0), A_ub=-ahead, b_ub=np.zeros(i.size), bounds=(-1, 1),
            options={"primal_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        separated = ahead @ found.x > SEPARATED if found.status == 0 else np.zeros(i.size, bool)
        if not separated.any():
            break
        open_[i[separated], l[separated]] = False
    face = face.copy()
    face[some] = open_[copies.ravel()]
    return face
