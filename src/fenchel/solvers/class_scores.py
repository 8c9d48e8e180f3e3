"""Scores and dual point of dense data by class, for steps on single classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.design.dense import by_columns
from fenchel.few_columns import matmul
from fenchel.kernels import by_class
from fenchel.problem import Problem
from fenchel.solvers.working_set import Entries

#: Products are made by BLAS, with all features of all classes, from one entry in so many on.
WHOLE = 3


@dataclass
class ClassScores:
    """What steps on single classes change, (k, n) arrays: see :mod:`fenchel.kernels.by_class`."""

    problem: Problem
    Xt: np.ndarray
    Z: np.ndarray  # the scores
    V: np.ndarray  # the dual point that belongs to them
    centre: np.ndarray | None  # of the smoothing, where the loss needs one
    eta: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        Xt: np.ndarray,
        Z: np.ndarray,
        V: np.ndarray,
        centre: np.ndarray | None,
        eta: float,
    ) -> ClassScores:
        """Copies of (n, k) arrays."""
        turned = None if centre is None else by_columns(centre)
        return cls(problem, Xt, by_columns(Z), by_columns(V), turned, eta)

    def add(self, entries: Entries, s: np.ndarray) -> None:
        """Add X S to the scores, for the matrix S with values s at the entries."""
        if self._whole(int(np.count_nonzero(s))):
            S = np.zeros((self.problem.k, self.problem.d))
            S[entries.klass, entries.feature] = s
            self.Z += S @ self.Xt
        else:
            by_class.add_columns(self.Xt, entries.feature, entries.klass, s, self.Z)

    def evaluate(self) -> float:
        """The (smoothed) risk, and V with it."""
        loss, y, weights = self.problem.loss, self.problem.y, self.problem.weights
        if self.centre is None:
            return loss.risk_by_class(self.Z, y, weights, self.V)
        return loss.smoothed_by_class(self.centre, self.Z, self.eta, y, weights, self.V)

    def gradient(self, entries: Entries) -> np.ndarray:
        """G_U at the entries."""
        y, weights, out = self.problem.y, self.problem.weights, np.empty(entries.u.size)
        if self._whole(entries.u.size):
            R = weights * self.V
            R[y, np.arange(y.size)] -= weights
            return matmul(self.Xt, R.T)[entries.feature, entries.klass]
        classes, bounds = entries.bounds
        by_class.gradient_by_class(
            self.Xt, self.V, y, weights, entries.feature, classes, bounds, out
        )
        return out

    def _whole(self, size: int) -> bool:
        return WHOLE * size > self.problem.d * self.problem.k

    def restore(self, Z: np.ndarray, V: np.ndarray) -> None:
        """Write what has become of the (n, k) arrays into them."""
        Z[...], V[...] = self.Z.T, self.V.T
