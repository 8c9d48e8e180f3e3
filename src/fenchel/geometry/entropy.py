"""Entropy geometries: the paper's choice, 1x1 for U and 2x1 for V."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.geometry.norms import MixedNorm
from fenchel.kernels.entropy import kl_rows
from fenchel.kernels.simplex import SMALLEST
from fenchel.kernels.solid_simplex import ONE_EXP_LIMIT, multiply_halves, rescale
from fenchel.losses.base import Loss
from fenchel.problem import Problem

#: Share of the centre that a warm start keeps: multiplicative steps cannot leave zero.
INTERIOR = 1e-3


class SolidSimplexEntropy(PrimalGeometry):
    """Unnormalised entropy on the solid simplex (eq:solid-simplex, eq:uhat-potential-choice).

    A point is the (2d, k) pair [U1; U2] of non-negative halves with sum at most R, and stands for
    the coefficients U1 - U2: the paper's doubled problem (SaddleUhat) without forming [X, -X].
    Where no coefficient may be negative U2 starts at (nearly) nothing, and multiplicative steps
    leave it there.
    """

    name: ClassVar[str] = "1x1"
    norm_type: ClassVar[MixedNorm] = MixedNorm(1, 1)

    def norm(self, x: np.ndarray) -> float:
        return self.norm_type(x)

    def dual_norm(self, g: np.ndarray) -> float:
        return self.norm_type.dual(g)

    def potential(self, x: np.ndarray) -> float:
        scaled = x / self.radius
        return self.radius**2 * float((xlogy(scaled, scaled) - scaled).sum())

    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        return self.radius * float(_divergences(x, x0).sum())

    def local_square(self, x: np.ndarray, g: np.ndarray) -> float:
        d = self.shape[0]
        return float(np.vdot((x[:d] + x[d:]) * g, g)) / self.radius

    @property
    def omega(self) -> float:
        """``R^2 log(2dk)`` (eq:uhat-omega-radius)."""
        d, k = self.shape
        return self.radius**2 * float(np.log(2 * d * k))

    def center(self) -> np.ndarray:
        d, k = self.shape
        center = np.full((2 * d, k), self.radius / (2 * d * k))
        if self.positive:
            center[:d] *= 2.0
            center[d:] = SMALLEST
        return center

    def step(self, x0: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
        """UpdatesForU, with a penalty for each feature."""
        rate = eta / self.radius  # the potential's Hessian is R / x
        out = np.empty_like(x0)
        longest = rate * max(float(S.max()), -float(S.min()))
        shift = longest if longest > ONE_EXP_LIMIT else 0.0
        total = multiply_halves(x0, S, rate, rate * self.penalties, shift, out)
        if total <= 0.0:  # the penalty alone drove everything below the smallest number
            factor = 0.0
        elif np.log(total) + shift > np.log(self.radius):
            factor = self.radius / total
        else:
            factor = float(np.exp(shift))
        rescale(out, factor, SMALLEST)
        return out

    def coef(self, x: np.ndarray) -> np.ndarray:
        d = self.shape[0]
        return x[:d] - x[d:]

    def from_coef(self, U: np.ndarray) -> np.ndarray:
        U = np.maximum(U, 0.0) if self.positive else U
        total = float(np.abs(U).sum())
        if total > self.radius:
            U = U * (self.radius / total)
        halves = np.concatenate([np.maximum(U, 0.0), np.maximum(-U, 0.0)])
        return (1 - INTERIOR) * halves + INTERIOR * self.center()

    def lipschitz(self, problem: Problem) -> float:
        """``||X^T||_{inf x 2} / n`` (th:lip); in the weighted scale the largest column rms."""
        return float(problem.design.column_norms(problem.weights).max())


class SimplexEntropy(DualGeometry):
    """Sum of negative entropies over the rows (eq:v-potential-choice)."""

    name: ClassVar[str] = "2x1"
    norm_type: ClassVar[MixedNorm] = MixedNorm(2, 1)

    def potential(self, x: np.ndarray) -> float:
        return float(self.weights @ xlogy(x, x).sum(axis=1))

    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        return float(self.weights @ _divergences(x, x0))

    def local_square(self, x: np.ndarray, g: np.ndarray) -> float:
        return float(self.weights @ np.einsum("il,il,il->i", x, g, g))

    @property
    def omega(self) -> float:
        """``log k`` (eq:v-omega-radius divided by n)."""
        return float(np.log(self.shape[1]))

    def step(
        self, loss: Loss, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        return loss.prox_entropy(V0, Z, eta, y)

    def from_dual(self, V: np.ndarray) -> np.ndarray:
        return (1 - INTERIOR) * V + INTERIOR / self.shape[1]


def _divergences(x: np.ndarray, x0: np.ndarray) -> np.ndarray:
    """The unnormalised Kullback-Leibler divergence of every row."""
    out = np.empty(x.shape[0])
    kl_rows(x, x0, out)
    return out
