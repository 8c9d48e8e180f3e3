"""When to stop: budgets, status, and a pure function from a record to a decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fenchel.validation import check_budget, check_number


class Status(StrEnum):
    """How a run ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_PASSES = "max_passes"
    MAX_TIME = "max_time"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Record:
    """One check, read-only: handed to the callback and kept in the history.

    ``primal``, ``dual``, ``gap`` and ``nnz`` describe the point checked here; ``best_gap`` the best
    primal and dual points so far, which is what the run would return. ``seconds`` is the solver's
    own time, ``wall`` includes the checks. A pass is one reading of all of X. ``note`` says what a
    solver decided since the last check, if anything.
    """

    iteration: int
    passes: float
    seconds: float
    primal: float
    dual: float
    gap: float
    nnz: int
    point: str
    best_gap: float
    wall: float
    note: str = ""


@dataclass(frozen=True)
class Budget:
    """Limits of a run; None is no limit.

    ``tol`` is relative to P(0), the objective at U = 0; ``gap`` is the same limit in absolute
    terms. Whichever is met first ends the run as converged.
    """

    tol: float = 1e-3
    gap: float | None = None
    max_iter: int | None = None
    max_passes: float | None = None
    max_time: float | None = None

    @classmethod
    def checked(
        cls, *, tol: Any, max_iter: Any, max_passes: Any, max_time: Any, gap: Any = None
    ) -> Budget:
        """Check the user's limits."""
        return cls(
            tol=check_number("tol", tol, remedy="give the relative gap to stop at, such as 1e-3"),
            gap=check_budget("gap", gap),
            max_iter=check_budget("max_iter", max_iter, integer=True),  # type: ignore[arg-type]
            max_passes=check_budget("max_passes", max_passes),
            max_time=check_budget("max_time", max_time),
        )

    def unlimited(self) -> bool:
        """True where only the gap can end the run."""
        return self.max_iter is None and self.max_passes is None and self.max_time is None

    def only_time(self) -> bool:
        """True where time is the one limit beside the gap."""
        return self.max_time is not None and self.max_iter is None and self.max_passes is None


def decide(record: Record, budget: Budget, at_zero: float) -> Status | None:
    """The status that ends the run at this record, or None to go on."""
    if record.best_gap <= max(budget.tol * at_zero, budget.gap or 0.0):
        return Status.CONVERGED
    if not np.isfinite(record.gap):
        return Status.DIVERGED
    if budget.max_iter is not None and record.iteration >= budget.max_iter:
        return Status.MAX_ITER
    if budget.max_passes is not None and record.passes >= budget.max_passes:
        return Status.MAX_PASSES
    if budget.max_time is not None and record.wall >= budget.max_time:
        return Status.MAX_TIME
    return None
