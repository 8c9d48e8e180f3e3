"""The mixed norm 1x2 for U (sec:AllGeometries): features in l1, classes in l2."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy

from fenchel.geometry.base import PrimalGeometry
from fenchel.geometry.norms import MixedNorm
from fenchel.problem import Problem


class GroupPower(PrimalGeometry):
    """The power potential of Nesterov and Nemirovski (2013) on the ball ``||U||_{1x2} <= R``::

        phi(U) = R^2 / (p c) * sum_j (||U(j,:)||_2 / R)^p

    with p = 2, c = 1 (one feature), p = 2, c = 1/2 (two), and p = 1 + 1/log d, c = 1/(e log d)
    beyond. It is 1-strongly convex in the 1x2 norm and its range is O(R^2 log d), as the appendix's
    table has it. Its steps shrink whole rows, so features switch off together.
    """

    name: ClassVar[str] = "1x2"
    norm_type: ClassVar[MixedNorm] = MixedNorm(1, 2)

    def __init__(self, problem: Problem, radius: float) -> None:
        super().__init__(problem, radius)
        d = self.shape[0]
        self.p = 2.0 if d <= 2 else 1.0 + 1.0 / np.log(d)
        self.c = {1: 1.0, 2: 0.5}.get(d, 1.0 / (np.e * np.log(max(d, 3))))

    def norm(self, x: np.ndarray) -> float:
        return self.norm_type(x)

    def dual_norm(self, g: np.ndarray) -> float:
        return self.norm_type.dual(g)

    def potential(self, x: np.ndarray) -> float:
        sizes = self.norm_type.rows(x) / self.radius
        return self.radius**2 / (self.p * self.c) * float((sizes**self.p).sum())

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the potential."""
        sizes = self.norm_type.rows(x)
        safe = np.where(sizes > 0, sizes, 1.0)
        length = self.radius / self.c * (sizes / self.radius) ** (self.p - 1)
        return x * (length / safe)[:, None]

    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        slope = float((self.gradient(x0) * (x - x0)).sum())
        return self.potential(x) - self.potential(x0) - slope

    @property
    def omega(self) -> float:
        """``R^2 / (p c)``, reached where one feature carries the whole radius."""
        return self.radius**2 / (self.p * self.c)

    def center(self) -> np.ndarray:
        return np.zeros(self.shape)

    def step(self, x0: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
        """Row j of grad phi(x) is ``max(||a_j|| - eta lam c_j - t, 0) a_j / ||a_j||``."""
        A = self.gradient(x0) - eta * S
        if self.positive:
            A = np.maximum(A, 0.0)
        lengths = self.norm_type.rows(A)
        kept = np.maximum(lengths - eta * self.penalties, 0.0)

        def sizes(t: float) -> np.ndarray:
            return self.radius * (np.maximum(kept - t, 0.0) * self.c / self.radius) ** (
                1 / (self.p - 1)
            )

        t = 0.0
        if sizes(0.0).sum() > self.radius:
            t = scipy.optimize.brentq(
                lambda t: sizes(t).sum() - self.radius, 0.0, float(kept.max()), xtol=1e-15
            )
        size = sizes(t)
        return A * (size / np.where(lengths > 0, lengths, 1.0))[:, None]

    def lipschitz(self, problem: Problem) -> float:
        """``||X^T||_{inf x 2} / n`` (th:lip-general)."""
        return float(problem.design.column_norms(problem.weights).max())
