"""Dual points for features without penalty, whose dual constraint is an equality.

For the free features F (an intercept among them) a dual point must satisfy
``X_F^T diag(w) (V - Y) = 0``. A V that does not is projected onto that subspace, and then mixed
with an inner point V0 of it until no entry is negative. V0 is the point of the largest entropy,
``softmax(X_F B)``: the predictions of a logistic regression on the free features alone.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from fenchel.problem import Matrix, Problem

#: More features than this without penalty are not worth their inner point.
MAX_FREE = 64


#: What is left of an equality, relative to the size of its feature, may be this much rounding.
ROUNDING = 1e-12


class Repair:
    """What the dual points of one problem are repaired with."""

    @classmethod
    def of(cls, problem: Problem) -> Repair | None:
        """The repair of a problem, made once; None where there is nothing (or too much) to do."""
        free = np.flatnonzero(problem.penalty_factor == 0.0)
        if problem.lam == 0.0 or not int(problem.intercept) < free.size <= MAX_FREE:
            return None
        known = problem.__dict__  # as functools.cached_property keeps what it computes
        if "_repair" not in known:
            known["_repair"] = cls(problem, free)
        return known["_repair"]

    def __init__(self, problem: Problem, free: np.ndarray) -> None:
        A = np.column_stack([problem.design.column(j) for j in free])
        self.free, self.sizes = free, problem.weights @ np.abs(A)
        # an orthonormal basis in the weighted inner product; dependent columns drop out
        roots = np.sqrt(problem.weights)
        left, sizes, _ = np.linalg.svd(roots[:, None] * A, full_matrices=False)
        left = left[:, sizes > 1e-10 * max(float(sizes.max(initial=0.0)), 1e-300)]
        self.basis = left / np.where(roots > 0.0, roots, 1.0)[:, None]
        self.problem = problem
        self.present = np.bincount(problem.y, weights=problem.weights, minlength=problem.k) > 0.0
        self.inner = self._project(self._most_entropic())

    def __call__(self, V: Matrix) -> np.ndarray:
        """The nearest matching point, mixed with the inner one as much as signs ask for."""
        V = V.toarray() if sp.issparse(V) else V.copy()
        if self.problem.intercept:  # a class without samples can have no mass
            V[:, ~self.present] = 0.0
            V /= np.where(V.sum(axis=1) > 0.0, V.sum(axis=1), 1.0)[:, None]
        V = self._project(V)
        negative = V < 0.0
        if negative.any():
            room = self.inner[negative] - V[negative]
            t = float((-V[negative] / np.maximum(room, 1e-300)).max())
            V += min(1.0, t) * (self.inner - V)
        V = np.maximum(V, 0.0)
        return V / V.sum(axis=1, keepdims=True)

    def forget_rounding(self, norms: np.ndarray) -> None:
        """Set to zero what is rounding of the equalities; where more is left, leave it."""
        left = norms[self.free]
        norms[self.free] = np.where(left <= ROUNDING * self.sizes, 0.0, left)

    def _project(self, V: np.ndarray) -> np.ndarray:
        problem = self.problem
        residual = V.copy()
        residual[np.arange(problem.n), problem.y] -= 1.0
        return V - self.basis @ (self.basis.T @ (problem.weights[:, None] * residual))

    def _most_entropic(self) -> np.ndarray:
        problem, Q = self.problem, self.basis
        rows, shape = np.arange(problem.n), (Q.shape[1], problem.k)
        gone = np.where(self.present | (not problem.intercept), 0.0, -np.inf)

        def value(b: np.ndarray) -> tuple[float, np.ndarray]:
            Z = Q @ b.reshape(shape) + gone
            V = softmax(Z, axis=1)
            loss = float(problem.weights @ (logsumexp(Z, axis=1) - Z[rows, problem.y]))
            V[rows, problem.y] -= 1.0
            return loss, (Q.T @ (problem.weights[:, None] * V)).ravel()

        found = minimize(value, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B",
                         options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9})  # fmt: skip
        return softmax(Q @ found.x.reshape(shape) + gone, axis=1)
