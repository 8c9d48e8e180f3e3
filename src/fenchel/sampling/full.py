"""Full sampling (Full-SS): one entry of U and one of V - Y, so that estimates have one column."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.problem import Problem
from fenchel.sampling.base import Estimate, Sampler, normalised


class FullSampler(Sampler):
    """The optimal laws of th:variance-full, as one law over the entries (row times column)::

        p_i P_il ~ ||X(:,i)||_2 |U_il|,    q_j Q_jl ~ w_j ||X(j,:)||_inf |(V-Y)_jl|

    An estimate with one column has the same norm in 2x1 and in 2x2, so V may have either geometry.
    """

    name: ClassVar[str] = "full"

    def __init__(self, problem: Problem, primal: PrimalGeometry, dual: DualGeometry) -> None:
        if primal.norm_type.q != 1:
            raise ValueError(
                f"full sampling needs l1 geometry in the classes of U, found {primal.name}: to "
                "draw single entries keeps the variance bound only where the norm of U controls "
                "||U(i,:)||_1 (sec:AllGeometries). Use penalty='l1', or solver='partial-sampling'."
            )
        super().__init__(problem, primal, dual)

    def primal_law(self, u: np.ndarray) -> np.ndarray:
        return normalised(self._halves(self.columns)[:, None] * np.abs(u))

    def dual_law(self, V: np.ndarray) -> np.ndarray:
        residual = V.copy()
        residual[np.arange(self.problem.n), self.problem.y] -= 1.0
        return normalised((self.problem.weights * self.rows)[:, None] * np.abs(residual))

    def primal_outcome(self, u: np.ndarray, index: int, probability: float) -> Estimate:
        i, l = divmod(index, self.problem.k)
        row = self._entry(l, u[i, l] / probability)
        return Estimate(self._signed_column(i)[:, None], row, np.array([i]))

    def dual_outcome(self, V: np.ndarray, index: int, probability: float) -> Estimate:
        j, l = divmod(index, self.problem.k)
        row = self._entry(l, self._residual(V, j)[l] / probability)
        return Estimate(self._weighted_row(j)[:, None], row, np.array([j]))

    def _entry(self, l: int, value: float) -> np.ndarray:
        row = np.zeros((1, self.problem.k))
        row[0, l] = value
        return row
