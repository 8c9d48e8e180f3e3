"""A solver on one penalty after the other, each run going on from where the last one ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.problem import Problem
from fenchel.solvers.base import Point, Solver, Start

#: A dearer dual point is only asked for where the gap is more than so many times its limit.
FAR = 4.0


class Continued(Solver):
    """A solver for the points of a regularisation path: same data, another penalty each time.

    What the solver has learnt about the data, such as the length of its steps, carries over from
    one run to the next (:meth:`~fenchel.solvers.base.Solver.follow`); so does the last point, where
    no start is given.

    Parameters
    ----------
    solver : the solver of every run.
    """

    sharp_enough = FAR  # there are many points, and each begins with a good V

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.name = solver.name  # type: ignore[misc]
        self.default_max_iter = solver.default_max_iter  # type: ignore[misc]
        self.check_growth = solver.check_growth  # type: ignore[misc]
        self.reason = solver.reason
        self._last: Any = None

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> Any:
        if self._last is None:
            self._last = self.solver.init(problem, start, rng, horizon)
        else:
            self._last = self.solver.follow(self._last, problem, start, rng, horizon)
        return self._last

    def advance(self, state: Any, n_steps: int) -> None:
        self.solver.advance(state, n_steps)

    def points(self, state: Any) -> list[Point]:
        return self.solver.points(state)

    def sharpened(self, state: Any) -> np.ndarray | None:
        return self.solver.sharpened(state)

    def is_far(self, state: Any, goal: float, sharp: float) -> bool:
        return self.solver.is_far(state, goal, sharp)

    def passes(self, problem: Problem) -> float:
        return self.solver.passes(problem)

    def iterations_per_check(self, problem: Problem) -> int:
        return self.solver.iterations_per_check(problem)

    def iterations_to_check(self, problem: Problem, state: Any) -> int:
        return self.solver.iterations_to_check(problem, state)

    def note(self, state: Any) -> str:
        return self.solver.note(state)
