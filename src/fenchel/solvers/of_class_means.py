"""Newton steps on the problem of the class means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from fenchel.class_means import ClassMeans
from fenchel.design import make_design
from fenchel.problem import Matrix, Problem, dense
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.penalised import PenalisedSolver
from fenchel.solvers.proximal_newton import ProximalNewton

#: The means are left when their own gap is this part of P(0): what they stand for is farther away.
#: At the latest after so many iterations.
CLOSE, MOST = 0.05, 100

#: The factor of U, at most the last number, is the best for about so many samples, or fewer where
#: they have more scores than the second number.
SAMPLES, SCORES, LONGEST = 2000, 1 << 22, 2.0


@dataclass
class State:
    problem: Problem
    means: ClassMeans
    inner: Any
    iteration: int = 0


class OfClassMeans(PenalisedSolver):
    """Newton steps on the problem of the class means (:mod:`fenchel.class_means`).

    U is that of the means but for a factor, and V is the same in all samples of a class. They are
    rough, and cost a part of one product with all samples.
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
        return State(problem, means, self.solver.init(means.problem, None, rng, horizon))

    def advance(self, state: State, n_steps: int) -> None:
        self.solver.advance(state.inner, n_steps)
        state.iteration += n_steps

    def points(self, state: State) -> list[Point]:
        point = self.solver.points(state.inner)[0]
        U = best_multiple(state.problem, point.U)
        return [Point(U, state.means.lifted(dense(point.V)), "class means")]

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


def best_multiple(problem: Problem, U: Matrix) -> Matrix:
    """The multiple of U with the lowest objective, as far as some of the samples tell.

    Means have less noise than samples, and larger coefficients.
    """
    some = slice(None, None, -(-problem.n // max(1, min(SAMPLES, SCORES // problem.k))))
    Z, y = make_design(problem.design.X[some]).matmul(U), problem.y[some]
    weights = problem.weights[some] / max(problem.weights[some].sum(), 1e-300)
    penalty = problem.penalty(U)

    def objective(t: float) -> float:
        return float(weights @ problem.loss.value(t * Z, y)) + t * penalty

    found = scipy.optimize.minimize_scalar(objective, bounds=(0.0, LONGEST), method="bounded")
    return U * float(found.x)
