"""Partial sampling (Part-SS): one row of U and one row of V - Y."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fenchel.sampling.base import Estimate, Sampler, normalised


class PartialSampler(Sampler):
    """The optimal laws of th:variance-partial, in the general form of th:variance-partial-general::

        p_i ~ ||X(:,i)||_2 ||U(i,:)||_{q_V^2}
        q_j ~ w_j ||X(j,:)||_{q_U^1} ||(V-Y)(j,:)||_{q_U^2}

    For the paper's norms (1x1 and 2x1) q_V^2, q_U^1 and q_U^2 are all infinite.
    """

    name: ClassVar[str] = "partial"

    def primal_law(self, u: np.ndarray) -> np.ndarray:
        return normalised(self._halves(self.columns) * self.q_V.rows(u))

    def dual_law(self, V: np.ndarray) -> np.ndarray:
        residual = V.copy()
        residual[np.arange(self.problem.n), self.problem.y] -= 1.0
        return normalised(self.problem.weights * self.rows * self.q_U.rows(residual))

    def primal_outcome(self, u: np.ndarray, index: int, probability: float) -> Estimate:
        row = u[index][None, :] / probability
        return Estimate(self._signed_column(index)[:, None], row, np.array([index]))

    def dual_outcome(self, V: np.ndarray, index: int, probability: float) -> Estimate:
        row = self._residual(V, index)[None, :] / probability
        return Estimate(self._weighted_row(index)[:, None], row, np.array([index]))
