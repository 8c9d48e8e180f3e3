"""The search over the radius (rem:radius).

The solvers that work inside a ball need a radius that contains a solution. P(0) / lam always does,
but it is usually far too large, and their steps and bounds suffer from that. Here a series of
constrained problems is solved, each warm-started from the one before, until the solution leaves the
boundary of its ball. From there on the ball changes nothing: its solution solves the penalised
problem. The certificate is for the penalised problem throughout, so no stage has to be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from fenchel.certificate import certify
from fenchel.problem import Problem
from fenchel.solvers.base import Point, Start
from fenchel.solvers.staged import Staged

#: The radius grows by this factor.
GROWTH = 4.0

#: A stage ends when its ball gap is at most this part of its primal value.
SOLVED = 0.25

#: A solution with more than this part of the radius is on the boundary. Averages in the entropy
#: geometry stay below it, since the halves of the doubled U cancel.
BOUNDARY = 0.8

#: Looks at a stage follow each other at iterations growing by this factor.
LOOK_GROWTH = 1.5


@dataclass
class State:
    problem: Problem
    rng: np.random.Generator
    horizon: int
    radius: float
    limit: float  # no solution is larger
    inner: Any
    entered: Point | None = None  # where the stage began, if from a smaller ball
    t: int = 0
    stage_began: int = 0
    look: int = 0  # the iteration at which the stage is looked at next
    notes: list[str] = field(default_factory=list)


class RadiusSearch(Staged):
    """A solver for a ball, inside a ball that grows until it holds a solution.

    Parameters
    ----------
    solver : the solver of the stages; its random state carries over from stage to stage.
    """

    name: ClassVar[str] = "radius-search"

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        if problem.radius is not None:
            raise ValueError("the radius is given: there is nothing to search for.")
        limit = problem.radius_bound()
        # |U^T x| <= ||U|| max|x|: below this radius the mean loss cannot come near zero
        slope = float(problem.weights @ problem.design.row_max_abs())
        radius = min(limit, problem.at_zero / slope if slope > 0 else limit)
        if start is not None:
            radius = min(limit, max(radius, float(problem.row_norms(start.U).sum()) / BOUNDARY))
        inner = self.solver.init(problem.with_radius(radius), start, rng, horizon)
        state = State(problem, rng, horizon, radius, limit, inner)
        state.look = self.solver.iterations_per_check(problem)
        return state

    def _look(self, state: State) -> None:
        """Let the ball grow if the stage is solved, with a solution on the boundary."""
        spacing = self.solver.iterations_per_check(state.problem)
        stage = state.t - state.stage_began
        state.look = state.t + max(spacing, int((LOOK_GROWTH - 1) * stage))
        if state.radius >= state.limit:
            return
        point = self.solver.points(state.inner)[0]
        ball = certify(state.problem.with_radius(state.radius), point.U, point.V)
        if ball.gap > SOLVED * ball.primal:
            return
        whole = certify(state.problem, point.U, point.V)
        on_boundary = state.problem.row_norms(ball.U).sum() > BOUNDARY * state.radius
        # a solution of the ball that is none of the whole problem feels the boundary as well
        if on_boundary or whole.gap > 4 * ball.gap:
            self._grow(state, replace(point, U=ball.U, V=ball.V))

    def _grow(self, state: State, point: Point) -> None:
        before, state.radius = state.radius, min(GROWTH * state.radius, state.limit)
        state.notes.append(f"radius {before:.4g} -> {state.radius:.4g}")
        ball, left = state.problem.with_radius(state.radius), max(1, state.horizon - state.t)
        state.inner = self.solver.init(ball, Start(point.U, point.V), state.rng, left)
        state.entered = point
        state.stage_began = state.t
        state.look = state.t + self.solver.iterations_per_check(state.problem)

    def points(self, state: State) -> list[Point]:
        if state.entered is not None and state.t == state.stage_began:
            return [state.entered]  # the new stage has no average yet
        return self.solver.points(state.inner)

    def iterations_per_check(self, problem: Problem) -> int:
        return self.solver.iterations_per_check(problem)
