"""A dual point with one column for all classes that are the same in it, and what is asked of it.

With a column for every class it can be the largest array of a run, mostly copies: of wordnet_hyper,
34,361 samples and 1,625 classes, a third is different. Memory that is new to the process is what
takes the time of its certificates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fenchel.kernels.common_value import residual_beside_last

if TYPE_CHECKING:
    from fenchel.problem import Problem
    from fenchel.solvers.alike import Alike


@dataclass(frozen=True)
class EqualColumns:
    """V by the columns of an :class:`.Alike`: the last one stands for several classes."""

    columns: np.ndarray
    known: Alike

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape[0], self.known.problem.k

    def toarray(self) -> np.ndarray:
        return self.known.spread(self.columns)

    def sums(self) -> np.ndarray:
        """Of the rows, over all classes."""
        times = np.ones(self.columns.shape[1])
        times[-1] = self.known.times
        return self.columns @ times

    def small(self, problem: Problem) -> Problem:
        """The problem with these columns for its classes."""
        if not np.array_equal(problem.y, self.known.problem.y):
            raise ValueError("V is of other labels.")
        small = self.known.small
        return replace(problem, y=small.y, classes=small.classes, loss=small.loss)

    def residual(self, problem: Problem) -> tuple:
        """``diag(weights) (V - Y)`` in all classes, as for :mod:`.feature_products`."""
        column, *rows, largest = residual_beside_last(
            self.columns, self.known.small.y, problem.weights, self.known.classes, problem.y
        )
        return problem.k, problem.design.X.T @ column, *rows, largest


def every_column(V: Any) -> Any:
    """V with a column for every class: itself where it has them."""
    return V.toarray() if isinstance(V, EqualColumns) else V
