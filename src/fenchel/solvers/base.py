"""What every solver does; the loop around it is the driver's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fenchel.certificate import Certificate
from fenchel.problem import Matrix, Problem

#: Points with at most this many entries are handed out as arrays, larger ones as sparse arrays
#: where a solver keeps them sparse.
DENSE_POINT = 1 << 18


@dataclass(frozen=True)
class Start:
    """Where to begin: coefficients, a dual point if there is one, their certificate if known.

    ``step`` is that of the proximal term ``||v - v0||^2 / (2 step)`` by which V was found, if any.
    """

    U: Matrix
    V: Matrix | None = None
    certificate: Certificate | None = None
    step: float | None = None


@dataclass(frozen=True)
class Point:
    """A candidate for certification. Lazy internals are materialised; the state is unchanged.

    Without a V, U is certified by the best dual point that the run has.
    """

    U: Matrix
    V: Matrix | None
    which: str


class Solver(ABC):
    """A solver writes only its update; it knows no clock, no tolerance and no history.

    ``advance(state, a)`` then ``advance(state, b)`` is the same, to the bit, as
    ``advance(state, a + b)``: the driver is free to cut a run into slices.
    """

    name: ClassVar[str]

    #: Ends a run on which the user set no limit at all.
    default_max_iter: ClassVar[int]

    #: Checks follow each other at iterations growing by this factor.
    check_growth: ClassVar[float] = 1.3

    #: A gap up to so many times the limit is not worth the price of ``sharpened``.
    sharp_enough: ClassVar[float] = 0.0

    #: Why this solver was chosen, where "auto" chose it; the history begins with it.
    reason: str = ""

    #: The solver that gets the rest of ``max_time`` where this one has no point after most of it.
    fallback: Solver | None = None

    @abstractmethod
    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> Any:
        """The state before the first iteration; ``horizon`` is the most iterations to come."""

    def follow(
        self,
        state: Any,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        horizon: int,
    ) -> Any:
        """The state for another penalty on the data of ``state``, which is used up.

        ``start`` is the best point of the run that ended in ``state``, if it is known. A solver
        that has more than that to hand on says so here.
        """
        return self.init(problem, start, rng, horizon)

    @abstractmethod
    def advance(self, state: Any, n_steps: int) -> None:
        """Make ``n_steps`` iterations."""

    @abstractmethod
    def points(self, state: Any) -> list[Point]:
        """The candidates of the moment; the first is the one that the history follows."""

    def sharpened(self, state: Any) -> np.ndarray | None:
        """A dual point that is better and dearer than that of ``points``, where there is one.

        The driver asks for it where it may end the run; the state may keep what was found.
        """
        return None

    def is_far(self, state: Any, goal: float, sharp: float) -> bool:
        """Whether a certificate of the points would tell nothing, for their gap is far too large.

        Far from ``goal``, which ends the run, and from ``sharp``, at which ``sharpened`` is asked.
        """
        return False

    def exhausted(self, state: Any) -> bool:
        """Whether the solver can make no further iteration."""
        return False

    @abstractmethod
    def passes(self, problem: Problem) -> float:
        """Readings of all of X in one iteration."""

    def iterations_per_check(self, problem: Problem) -> int:
        """Iterations that cost ten times as much as one check (two products with X)."""
        return max(1, int(np.ceil(20.0 / self.passes(problem))))

    def iterations_to_check(self, problem: Problem, state: Any) -> int:
        """Iterations until the next check, for a solver whose iterations change on the way."""
        return self.iterations_per_check(problem)

    def note(self, state: Any) -> str:
        """What was decided since the last call, in one line; empty for nothing."""
        return ""
