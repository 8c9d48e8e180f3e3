"""The problem in a ball by way of the penalised one: a search for the multiplier of the ball.

::

    min { P(U) : sum_j ||U(j,:)|| <= R }  =  max_{mu >= 0} min_U P(U) + mu (sum_j ||U(j,:)|| - R)

The inner problem has the penalties ``lam c_j + mu`` and no ball, and the size of its solution falls
as mu grows. With a multiplier mu and a solution of size r it leaves a gap of ``mu |R - r|`` beside
its own, so it is only solved to a part of that before mu moves. Where the loss is not smooth the
size jumps; the solution in the ball then lies between those of two multipliers, and so does the
point that is handed out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import certify
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Point, Start
from fenchel.solvers.staged import Staged

#: No larger V is made only for a first multiplier.
DENSE_ENTRIES = 1 << 25

#: An inner problem is left when its gap is this part of what the size of its solution leaves.
SOLVED = 0.3

#: The first multipliers halve, or fall by the second factor while the size is below R over four;
#: and are zero below this part of lam.
SHORTER, MUCH_SHORTER, NONE = 0.5, 0.25, 1e-3

#: Between two multipliers the next keeps this part of their distance from both.
INSIDE = 0.2

#: Where the solution on one side is too rough by now, the next is this part beyond it, or what
#: costs a part of its gap: between the two it could turn out to be on the other side each time.
CLOSE = 0.05


@dataclass
class Side:
    """A multiplier, and the solution of its inner problem, smaller than the ball or larger."""

    mu: float
    size: float
    U: Matrix
    gap: float = 0.0  # of the inner problem


@dataclass
class State:
    problem: Problem
    rng: np.random.Generator
    horizon: int
    mu: float
    penalised: Problem  # of mu
    inner: Any
    smaller: Side
    larger: Side | None = None  # None as long as no solution was larger than the ball
    U: Matrix = None  # the best points of the inner problem, and their values
    V: Matrix = None
    primal: float = np.inf
    dual: float = -np.inf
    point: Point | None = None
    t: int = 0
    look: int = 0  # the iteration at which the inner problem is looked at next
    notes: list[str] = field(default_factory=list)


class BallMultiplier(Staged):
    """The problem in a ball with a solver of the penalised problem: any loss, to any accuracy.

    The stages are the inner problems of the multipliers.
    """

    name: ClassVar[str] = "ball-multiplier"

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        largest = _largest_multiplier(problem)
        mu = SHORTER * largest
        penalised = _penalised(problem, mu)
        inner = self.solver.init(penalised, start, rng, horizon)
        zero = Side(largest, 0.0, sp.csr_array((problem.d, problem.k)))
        state = State(problem, rng, horizon, mu, penalised, inner, zero)
        state.look = self.solver.iterations_to_check(penalised, inner)
        return state

    def _look(self, state: State) -> None:
        """Certify the inner problem, and move the multiplier where that is solved well enough."""
        point = self.solver.points(state.inner)[0]
        found = certify(state.penalised, point.U, point.V)
        if found.primal < state.primal:
            state.U, state.primal = found.U, found.primal
        if found.dual > state.dual:
            state.V, state.dual = found.V, found.dual
        radius = state.problem.radius_bound()
        size = float(state.problem.row_norms(state.U).sum())
        here = Side(state.mu, size, state.U, state.primal - state.dual)
        state.point = Point(self._in_ball(state, here, radius), state.V, "between multipliers")
        binds = state.mu > 0.0 or size > radius
        other = self._other(state, here, radius)
        rough = 0.0 if other is None else other.gap  # the point in the ball has a part of it
        if binds and here.gap <= SOLVED * max(self._left(state, here, radius), rough):
            self._move(state, here, radius)
        state.look += self.solver.iterations_to_check(state.penalised, state.inner)

    @staticmethod
    def _in_ball(state: State, here: Side, radius: float) -> Matrix:
        """The point of size R between the present solution and that of the other side."""
        low, high = (state.smaller, here) if here.size > radius else (here, state.larger)
        if high is None:
            return here.U
        part = (radius - low.size) / (high.size - low.size)
        return (1.0 - part) * low.U + part * high.U

    @staticmethod
    def _other(state: State, here: Side, radius: float) -> Side | None:
        """The side on which the present solution is not."""
        return state.smaller if here.size > radius else state.larger

    def _left(self, state: State, here: Side, radius: float) -> float:
        """How much the dual value can still grow with another multiplier.

        It is concave in mu with the slope ``r - R``, so that it lies below its tangents here and on
        the other side; where there is none yet, the least multiplier is that side.
        """
        other, slope = self._other(state, here, radius), abs(here.size - radius)
        if other is None:
            return here.mu * slope
        against = abs(other.size - radius)
        return abs(here.mu - other.mu) * slope * against / max(slope + against, 1e-300)

    def _move(self, state: State, here: Side, radius: float) -> None:
        """Go on with another multiplier: a smaller one, or one between the two sides."""
        left = self._left(state, here, radius)
        if here.size > radius:
            state.larger = here
        else:
            state.smaller = here
        low, high = state.smaller, state.larger
        if high is None:
            mu = low.mu * (SHORTER if 4.0 * here.size > radius else MUCH_SHORTER)
            state.mu = 0.0 if mu < NONE * state.problem.lam else mu
        elif max(low.gap, high.gap) > left:  # beyond the side that is too rough by now
            width, top, bottom = low.mu - high.mu, max(low.mu, high.mu), min(low.mu, high.mu)
            # a rough side may lie beyond the other: then ever further, until it is found anew
            part = CLOSE if width > 0.0 else 1.0
            rough = SOLVED * max(low.gap, high.gap) / (high.size - low.size)
            further = max(part * abs(width), rough)
            state.mu = top + further if low.gap > high.gap else max(bottom - further, 0.0)
        else:
            part = np.clip((high.size - radius) / (high.size - low.size), INSIDE, 1.0 - INSIDE)
            state.mu = high.mu + float(part) * (low.mu - high.mu)
        state.notes.append(f"multiplier of the ball {here.mu:.4g} -> {state.mu:.4g}")
        state.penalised = _penalised(state.problem, state.mu)
        start = Start(state.U, state.V)
        state.inner = self.solver.follow(
            state.inner, state.penalised, start, state.rng, state.horizon
        )
        state.U = state.V = None
        state.primal, state.dual = np.inf, -np.inf

    def points(self, state: State) -> list[Point]:
        return self.solver.points(state.inner) if state.point is None else [state.point]

    def iterations_to_check(self, problem: Problem, state: State) -> int:
        return state.look - state.t


def _penalised(problem: Problem, mu: float) -> Problem:
    """The inner problem of a multiplier: penalties ``lam c_j + mu`` and no ball."""
    factors, total = problem.penalty_factor, problem.lam + mu
    if total > 0.0:
        factors = (problem.lam * factors + mu) / total
    inner = replace(problem, radius=None, lam=total, penalty_factor=factors)
    inner.__dict__["at_zero"] = problem.at_zero
    return inner


def _largest_multiplier(problem: Problem) -> float:
    """A multiplier that is not too small: ``P(0) / R``, or one with which U = 0 is the solution."""
    bound = problem.at_zero / problem.radius_bound()
    if problem.n * problem.k > DENSE_ENTRIES:
        return bound
    V = problem.dual_at_zero()
    excess = float((problem.gradient_row_norms(V) - problem.lam * problem.penalty_factor).max())
    if excess <= 0.0 and problem.lam == 0.0:
        return bound  # some penalty has to be there
    return min(bound, max(excess, 0.0))
