"""Euclidean geometries: 2x2 for V, and the Frobenius norm for U."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse.linalg as spla

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.geometry.norms import MixedNorm
from fenchel.kernels.l1_ball import ball_threshold
from fenchel.losses.base import Loss
from fenchel.problem import Problem


class EuclideanBall(PrimalGeometry):
    """``||U||_F^2 / 2`` on the l1 ball of radius R: soft-thresholding steps, exact zeros."""

    name: ClassVar[str] = "euclidean"
    norm_type: ClassVar[MixedNorm] = MixedNorm(2, 2)

    def norm(self, x: np.ndarray) -> float:
        return self.norm_type(x)

    def dual_norm(self, g: np.ndarray) -> float:
        return self.norm_type.dual(g)

    def potential(self, x: np.ndarray) -> float:
        return 0.5 * float((x * x).sum())

    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        return 0.5 * float(((x - x0) ** 2).sum())

    @property
    def omega(self) -> float:
        """``R^2 / 2``, reached at the corners of the l1 ball."""
        return 0.5 * self.radius**2

    def center(self) -> np.ndarray:
        return np.zeros(self.shape)

    def step(self, x0: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
        """Soft-threshold, by more than the penalty where the ball asks for it."""
        target = x0 - eta * S
        if self.positive:
            target = np.maximum(target, 0.0)
        magnitude = np.abs(target) - eta * self.penalties[:, None]
        magnitude -= l1_ball_threshold(magnitude, self.radius)
        return np.sign(target) * np.maximum(magnitude, 0.0)

    def from_coef(self, U: np.ndarray) -> np.ndarray:
        U = np.maximum(U, 0.0) if self.positive else U
        total = float(np.abs(U).sum())
        return U * (self.radius / total) if total > self.radius else U.copy()

    def lipschitz(self, problem: Problem) -> float:
        """The largest singular value of ``diag(sqrt(weights)) X``."""
        roots = np.sqrt(problem.weights)
        design = problem.design
        if min(design.shape) == 1:
            return float(np.linalg.norm(design.column_norms(problem.weights)))
        operator = spla.LinearOperator(
            design.shape,
            matvec=lambda u: roots * design.matmul(u.reshape(-1, 1)).ravel(),
            rmatvec=lambda w: design.rmatmul((roots * w.ravel()).reshape(-1, 1)).ravel(),
            dtype=np.float64,
        )
        return float(spla.svds(operator, k=1, return_singular_vectors=False, rng=0)[0])


class SimplexEuclidean(DualGeometry):
    """``sum_i w_i ||v_i||^2 / 2``: projections onto the simplex, exact zeros."""

    name: ClassVar[str] = "2x2"
    norm_type: ClassVar[MixedNorm] = MixedNorm(2, 2)

    def potential(self, x: np.ndarray) -> float:
        return 0.5 * float(self.weights @ (x * x).sum(axis=1))

    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        return 0.5 * float(self.weights @ ((x - x0) ** 2).sum(axis=1))

    @property
    def omega(self) -> float:
        """``(1 - 1/k) / 2``: from the centre to a corner (the paper's table bounds it by 1)."""
        return 0.5 * (1 - 1 / self.shape[1])

    def step(
        self, loss: Loss, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        return loss.prox_euclidean(V0, Z, eta, y)


def l1_ball_threshold(magnitude: np.ndarray, radius: float) -> float:
    """The smallest t >= 0 with ``sum max(magnitude - t, 0) <= radius``."""
    return ball_threshold(np.ascontiguousarray(magnitude).ravel(), radius)
