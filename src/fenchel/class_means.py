"""The samples of a class taken for one: the problem of the class means.

Losses are convex. With the mean ``m_c`` of the samples of class c and their weight ``w_c``::

    sum_i w_i loss(U^T x_i, y_i)  >=  sum_c w_c loss(U^T m_c, c)

so that the optimum of the problem with one sample a class is a lower bound on that of the problem
itself. The dual says the same: rows ``t_c`` of a dual point there are a dual point here,
``v_i = t_{y_i}``, with the same G_U and the same F(V). To find the means X is read once, which
costs a k-th of a product with U.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fenchel.common_part import dear
from fenchel.design import make_design

if TYPE_CHECKING:
    from fenchel.problem import Problem

#: Means are made where there are at least so many times as many samples: with a third of them the
#: iterations that they take were not worth it in a longer run.
FEWER = 8


@dataclass(frozen=True)
class ClassMeans:
    """The problem with one sample for each class that has any, and the one that stands for i."""

    problem: Problem
    row: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> ClassMeans | None:
        """The means, where a product with all samples is dear and there are far fewer classes."""
        if not dear(problem.design, problem.k):
            return None
        present, row = np.unique(problem.y, return_inverse=True)
        if FEWER * present.size > problem.n:
            return None
        weights = np.bincount(row, problem.weights)
        W = sp.csr_array((problem.weights, (np.arange(problem.n), row)))
        sums = problem.design.rmatmul(W).T
        means = np.zeros(sums.shape)
        np.divide(sums, weights[:, None], out=means, where=weights[:, None] > 0.0)
        return cls(replace(problem, design=make_design(means), y=present, weights=weights), row)

    def with_penalty(self, lam: float) -> ClassMeans:
        """The same means with another penalty."""
        return replace(self, problem=self.problem.with_penalty(lam))

    def lifted(self, T: np.ndarray) -> np.ndarray:
        """The dual point of the problem itself that has the row of its class in every sample."""
        return T[self.row]

    def lowered(self, V: np.ndarray) -> np.ndarray | None:
        """What :meth:`lifted` makes V of; None where samples of one class differ."""
        first = np.empty(self.problem.n, np.int64)
        first[self.row[::-1]] = np.arange(self.row.size)[::-1]
        T = V[first]
        size = max(1, (1 << 20) // V.shape[1])
        for start in range(0, self.row.size, size):
            some = slice(start, start + size)
            if not np.array_equal(V[some], T[self.row[some]]):
                return None
        return T
