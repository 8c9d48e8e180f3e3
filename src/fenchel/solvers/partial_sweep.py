"""Partial sampling for the hinge and softmax losses in the paper's geometries: fused sweeps."""

from __future__ import annotations

import numpy as np

from fenchel.geometry.entropy import INTERIOR, SimplexEntropy, SolidSimplexEntropy
from fenchel.kernels.partial_sampling import (
    HIGH,
    LOW,
    MAX_EXPONENT,
    draw_feature,
    draw_sample,
    multiply_dual,
    multiply_dual_power,
    multiply_primal,
    scale_primal,
)
from fenchel.kernels.simplex import SMALLEST
from fenchel.losses import Hinge, Softmax
from fenchel.problem import Problem, dense
from fenchel.sampling import Sampler
from fenchel.solvers.base import Start


def can_sweep(problem: Problem, sampler: Sampler) -> bool:
    """True where :class:`PartialSweep` knows the steps of the loss and of the geometries."""
    return (
        type(sampler.primal) is SolidSimplexEntropy
        and type(sampler.dual) is SimplexEntropy
        and not problem.positive  # a sweep keeps both halves of U in one array
        and (
            type(problem.loss) is Softmax
            or (type(problem.loss) is Hinge and problem.loss.cost is None)
        )
    )


class PartialSweep:
    """The iterates as :mod:`fenchel.kernels.partial_sampling` stores them.

    The laws of th:variance-partial need ``max_l U(i,l)``, which a sweep leaves in ``low`` and
    ``high``, and ``max_l |V - Y|``, which is 1 - V(j, y_j) since the rows sum to one.
    """

    def __init__(
        self,
        problem: Problem,
        sampler: Sampler,
        start: Start | None,
        rng: np.random.Generator,
        noisy: bool,
    ) -> None:
        self.problem, self.rng = problem, rng
        self.sigma, self.w_tau = sampler.columns, problem.weights * sampler.rows
        self.radius, self.penalties = sampler.primal.radius, sampler.primal.penalties
        d, k = problem.d, problem.k
        self.alpha = np.full(d, self.radius / (2 * d * k))
        self.E, self.V = np.ones((d, k)), sampler.dual.center()
        if start is not None:
            # U1 U2 = alpha^2 and U1 - U2 = U: the sum stays within the radius but for the interior
            U = (1 - INTERIOR) * sampler.primal.coef(sampler.primal.from_coef(dense(start.U)))
            self.alpha *= INTERIOR
            self.E = np.clip(np.exp(np.arcsinh(U / (2 * self.alpha[:, None]))), LOW, HIGH)
            if start.V is not None:
                self.V = sampler.dual.from_dual(dense(start.V))
        self.mass, self.low, self.high = (
            (self.E + 1 / self.E).sum(axis=1),
            self.E.min(axis=1),
            self.E.max(axis=1),
        )
        self.U_sum, self.V_sum = np.zeros((d, k)), np.zeros_like(self.V)
        self.noisy_sum = np.zeros((d, k)) if noisy else None
        self.log_V = np.log(self.V) if type(problem.loss) is Softmax else None
        self.true = self.V[np.arange(problem.n), problem.y]
        self._row, self._sample_law, self._feature_law = (
            np.zeros(d),
            np.empty(problem.n),
            np.empty(2 * d),
        )

    def step(self, rate_U: float, rate_V: float, weight: float) -> None:
        """One iteration of (SMD) with (Part-SS), the dual estimate at the new U as in alg:main."""
        problem = self.problem
        x, g, q = self._draw_sample()
        rate = rate_U / self.radius  # the potential's Hessian is R / U
        c = cut(rate * q, x, g)
        multiply_primal(
            self.E, self.U_sum, x, g, c, weight * self.alpha, self.mass, self.low, self.high
        )
        scale_primal(self.alpha, self.mass, self.penalties, rate, self.radius)

        x, h, p, i = self._draw_feature()
        if self.noisy_sum is not None:
            self.noisy_sum[i % problem.d] += np.copysign(weight * p, problem.d - i - 0.5) * h
        p = p if i < problem.d else -p
        if self.log_V is None:
            c = cut(rate_V * p, x, h)
            true_factor = float(np.exp(-min(rate_V, MAX_EXPONENT)))
            multiply_dual(self.V, self.V_sum, x, h, c, true_factor, weight, problem.y, self.true)
        else:
            power = 1.0 / (1.0 + rate_V)
            c = cut(rate_V * power * p, x, h)
            multiply_dual_power(
                self.V, self.log_V, self.V_sum, x, h, c, power, weight, problem.y, self.true
            )

    def _draw_sample(self) -> tuple[np.ndarray, np.ndarray, float]:
        """A row of X, that of V - Y, and the factor that makes their product unbiased."""
        law = self._sample_law
        j, total = draw_sample(self.w_tau, self.true, law, self.rng.random())
        self._row[:] = 0.0
        if j < 0:
            return self._row, np.zeros(self.problem.k), 0.0
        columns, values = self.problem.design.row(j)
        self._row[columns] = values
        g = self.V[j].copy()
        g[self.problem.y[j]] -= 1.0
        return self._row, g, float(self.problem.weights[j]) * total / float(law[j])

    def _draw_feature(self) -> tuple[np.ndarray, np.ndarray, float, int]:
        """A column of X, the row of U1 or U2, the unbiasing factor, and its place in [U1; U2]."""
        d = self.problem.d
        law = self._feature_law
        i, total = draw_feature(self.sigma, self.alpha, self.low, self.high, law, self.rng.random())
        if i < 0:
            return np.zeros(self.problem.n), np.zeros(self.problem.k), 0.0, 0
        E = self.E[i % d]
        h = self.alpha[i % d] * (E if i < d else 1.0 / E)
        return self.problem.design.column(i % d), h, total / float(law[i]), i

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """The point of U's geometry, and V."""
        halves = np.concatenate([self.E, 1 / self.E]) * np.tile(self.alpha, 2)[:, None]
        return np.maximum(halves, SMALLEST), self.V


def cut(c: float, x: np.ndarray, g: np.ndarray) -> float:
    """c, limited so that every exponent ``c x_i g_l`` is at most MAX_EXPONENT."""
    largest = float(np.abs(x).max()) * float(np.abs(g).max())
    limit = MAX_EXPONENT / largest if largest > 0.0 else np.inf
    return min(max(c, -limit), limit)
