"""When a dual point that is dearer than that of the solver is worth its price."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel.problem import Problem
from fenchel.termination import Budget

#: No gap of at most so many parts of P(0) is made smaller.
SHARPEST = 1e-12


class _Expected(NamedTuple):
    """What is seen of such points: ``rough`` in parts of P(0), ``square`` in parts of the square.

    None is any good where the gap is more than ``rough``. Its gap is of the size of the square of
    the one at hand: 0.02 to 1.3 times as large on dense data. On text it is at the lower end, and
    where the limit is missed there, the step to that point is as good as another.
    """

    rough: float
    square: float


DENSE, SPARSE = _Expected(0.1, 0.25), _Expected(0.2, 0.06)


def gap_limit(budget: Budget, at_zero: float) -> float:
    """The gap that ends the run, in units of P(0)."""
    return max(budget.tol, (budget.gap or 0.0) / at_zero)


def sharp_from(problem: Problem, limit: float) -> float:
    """The gap from which on a dearer dual point is asked for, both in units of P(0)."""
    expected = SPARSE if problem.design.is_sparse else DENSE
    return min(expected.rough, max(limit, float(np.sqrt(limit / expected.square))))


def may_be_sharper(problem: Problem, gap: float, budget: Budget, enough: float) -> bool:
    """Whether a dearer dual point is asked for at this gap.

    It is where that may end the run, and once more where the run has ended: the bound that is
    handed out should tell how good the point is. A gap of ``enough`` times the limit needs none.
    """
    limit = gap_limit(budget, problem.at_zero)
    least = max(SHARPEST, enough * limit)
    return least < gap / problem.at_zero <= sharp_from(problem, limit)
