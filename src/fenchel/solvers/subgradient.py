"""The stochastic subgradient method (SSM), the baseline of sec:experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.geometry.euclidean import l1_ball_threshold
from fenchel.kernels.subgradient import ball_excess, shrink_and_sum
from fenchel.problem import Problem, dense
from fenchel.solvers.base import Point, Solver, Start
from fenchel.steps import StepRule, make_step


@dataclass
class State:
    problem: Problem
    step: StepRule
    rng: np.random.Generator
    cumulative: np.ndarray
    U: np.ndarray
    U_sum: np.ndarray
    V_sum: np.ndarray  # by row, the sum of the maximisers v met when the row was drawn
    drawn: np.ndarray
    size: float = np.inf  # the norm of U after the last step
    excess: float = 0.0  # what the ball asked U to be shrunk by, beyond the penalty
    t: int = 0


class Subgradient(Solver):
    """One sample an iteration, O(dk) work: ``U <- shrink(U - gamma x (v - y)^T, gamma lam)``.

    The average of the iterates is certified. Its dual point is the average of the maximisers v
    that each sample showed when it was drawn; a sample not drawn yet has the uniform row.

    Parameters
    ----------
    step : "theory" (D / (G sqrt(T)) with D = R, a bound on ||U*||_F, and G^2 = 2 mean ||x||^2, a
        bound on the second moment of the subgradients), "inverse-sqrt" (the default: the same with
        the iteration number for T), or a number.
    """

    name: ClassVar[str] = "subgradient"
    default_max_iter: ClassVar[int] = 100_000

    def __init__(self, step: str | float | None = None) -> None:
        self.step = step

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        second_moment = 2.0 * float((problem.design.column_norms(problem.weights) ** 2).sum())
        first = problem.radius_bound() / (np.sqrt(second_moment) or 1.0)
        step = make_step(self.step, first / np.sqrt(horizon), first, default="inverse-sqrt")
        U = np.zeros((problem.d, problem.k)) if start is None else np.array(dense(start.U))
        return State(
            problem=problem,
            step=step,
            rng=rng,
            cumulative=np.cumsum(problem.weights),
            U=U,
            U_sum=np.zeros_like(U),
            V_sum=np.zeros((problem.n, problem.k)),
            drawn=np.zeros(problem.n),
        )

    def advance(self, state: State, n_steps: int) -> None:
        problem = state.problem
        for _ in range(n_steps):
            i = min(
                int(np.searchsorted(state.cumulative, state.rng.random(), side="right")),
                problem.n - 1,
            )
            columns, x = problem.design.row(i)
            dense = not problem.design.is_sparse  # then all rows of U: a slice copies nothing
            z = x @ (state.U if dense else state.U[columns])
            v = problem.loss.argmax(z[None, :], problem.y[i : i + 1])[0]
            state.V_sum[i] += v
            state.drawn[i] += 1
            v[problem.y[i]] -= 1.0
            gamma = state.step(state.t)
            touched = np.flatnonzero(v)  # two classes for the hinge loss
            entries = (slice(None), touched) if dense else np.ix_(columns, touched)
            state.U[entries] -= np.outer(gamma * x, v[touched])
            moved = gamma * float(np.abs(x).sum() * np.abs(v[touched]).sum())
            self._shrink(state, gamma, moved)
            state.t += 1

    @staticmethod
    def _shrink(state: State, gamma: float, moved: float) -> None:
        """The prox of the penalty, inside the ball where there is one.

        A step whose l1 norm is ``moved`` cannot have left the ball if there was room for it.
        """
        problem = state.problem
        thresholds = gamma * problem.lam * problem.penalty_factor
        if problem.positive:
            np.maximum(state.U, 0.0, out=state.U)
        if problem.norm.q != 1:
            Subgradient._shrink_rows(state, thresholds)
            return
        if problem.radius is not None and state.size + moved > problem.radius:
            state.excess = ball_excess(state.U, thresholds, problem.radius, state.excess)
            thresholds = thresholds + state.excess
        state.size = shrink_and_sum(state.U, thresholds, False, state.U_sum)

    @staticmethod
    def _shrink_rows(state: State, thresholds: np.ndarray) -> None:
        """The same for a penalty on the norms of the rows."""
        problem = state.problem
        size = shrink_and_sum(state.U, thresholds, True, state.U_sum)
        if problem.radius is not None and size > problem.radius:
            state.U_sum -= state.U
            excess = l1_ball_threshold(problem.row_norms(state.U), problem.radius)
            shrink_and_sum(state.U, np.full(problem.d, excess), True, state.U_sum)

    def points(self, state: State) -> list[Point]:
        k = state.problem.k
        seen = state.drawn[:, None]
        V = np.where(seen > 0, state.V_sum / np.maximum(seen, 1.0), 1.0 / k)
        return [Point(state.U_sum / state.t, V, "average")]

    def passes(self, problem: Problem) -> float:
        return 2.0 / problem.n  # a row is read for its scores and for its subgradient

    def iterations_per_check(self, problem: Problem) -> int:
        # an iteration works on all of U: d k operations, a check costs 2 n d k
        return max(1, 2 * problem.n)
