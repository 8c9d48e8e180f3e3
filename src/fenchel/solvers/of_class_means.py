"""Newton steps on the problem of the class means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fenchel.class_means import ClassMeans
from fenchel.problem import Problem, dense
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.penalised import PenalisedSolver
from fenchel.solvers.proximal_newton import ProximalNewton

#: The means are left when their own gap is this part of P(0): what they stand for is farther away.
#: At the latest after so many iterations.
CLOSE, MOST = 1e-2, 100


@dataclass
class State:
    means: ClassMeans
    inner: Any
    iteration: int = 0


class OfClassMeans(PenalisedSolver):
    """Newton steps on the problem of the class means (:mod:`fenchel.class_means`).

    U is that of the means, and so is V, the same in all samples of a class. They are rough, and
    cost a part of one product with all samples.
    """

    name: ClassVar[str] = "class-means"
    default_max_iter: ClassVar[int] = MOST
    check_growth: ClassVar[float] = 1.0

    solver: ClassVar[Solver] = ProximalNewton()

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        means = problem.class_means
        assert means is not None
        return State(means, self.solver.init(means.problem, None, rng, horizon))

    def advance(self, state: State, n_steps: int) -> None:
        self.solver.advance(state.inner, n_steps)
        state.iteration += n_steps

    def points(self, state: State) -> list[Point]:
        point = self.solver.points(state.inner)[0]
        V = state.means.lifted(dense(point.V))
        return [Point(point.U, V, f"{point.which} of the class means")]

    def done(self, state: State) -> bool:
        """Whether the means are solved as well as it pays."""
        gap = state.inner.gap
        return bool(gap <= CLOSE * state.means.problem.at_zero or state.iteration >= MOST)

    def is_far(self, state: State, goal: float, sharp: float) -> bool:
        return not self.done(state)

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_to_check(self, problem: Problem, state: State) -> int:
        return self.solver.iterations_to_check(state.means.problem, state.inner)
