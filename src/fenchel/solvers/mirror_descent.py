"""Composite saddle-point mirror descent (NonStochasticUpdates)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem, dense
from fenchel.solvers.base import Point, Solver, Start
from fenchel.steps import StepRule, make_step


@dataclass
class State:
    problem: Problem
    primal: PrimalGeometry
    dual: DualGeometry
    step: StepRule
    u: np.ndarray  # the point of U's geometry
    V: np.ndarray
    U_sum: np.ndarray
    V_sum: np.ndarray
    t: int = 0


class MirrorDescent(Solver):
    """Two products with X an iteration; the average of the iterates is certified.

    Parameters
    ----------
    step : "theory" (th:md-deterministic, needs to know the number of iterations),
        "inverse-sqrt" (the default), or a number.
    primal, dual : names of geometries (``fenchel.geometry.registry``); the paper's by default.
    """

    name: ClassVar[str] = "mirror-descent"
    default_max_iter: ClassVar[int] = 10_000

    def __init__(
        self, step: str | float | None = None, primal: str | None = None, dual: str = "2x1"
    ) -> None:
        self.step, self.primal, self.dual = step, primal, dual

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        primal, dual = make_geometries(problem, problem.radius_bound(), self.primal, self.dual)
        u, V = starting_point(primal, dual, start)
        scale = joint_scale(problem, primal, dual)
        # gamma = 1 / (L sqrt(5 T Omega_U Omega_V))
        first = 1.0 / (np.sqrt(5.0) * scale)
        step = make_step(self.step, first / np.sqrt(horizon), first, default="inverse-sqrt")
        return State(
            problem, primal, dual, step, u, V, np.zeros((problem.d, problem.k)), np.zeros_like(V)
        )

    def advance(self, state: State, n_steps: int) -> None:
        problem, primal, dual = state.problem, state.primal, state.dual
        for _ in range(n_steps):
            U = primal.coef(state.u)
            state.U_sum += U  # the average is over U^0 .. U^{T-1}
            state.V_sum += state.V
            gamma = state.step(state.t)
            S, Z = problem.gradient(state.V), problem.design.matmul(U)
            state.u = primal.step(state.u, S, 2 * gamma * primal.omega_bound)
            state.V = dual.step(problem.loss, state.V, Z, 2 * gamma * dual.omega_bound, problem.y)
            state.t += 1

    def points(self, state: State) -> list[Point]:
        return [Point(state.U_sum / state.t, state.V_sum / state.t, "average")]

    def passes(self, problem: Problem) -> float:
        return 2.0


def starting_point(
    primal: PrimalGeometry, dual: DualGeometry, start: Start | None
) -> tuple[np.ndarray, np.ndarray]:
    """The centre (eq:init-full), or an interior point near a warm start."""
    u, V = primal.center(), dual.center()
    if start is not None:
        u = primal.from_coef(dense(start.U))
        if start.V is not None:
            V = dual.from_dual(dense(start.V))
    return u, V


def joint_scale(problem: Problem, primal: PrimalGeometry, dual: DualGeometry) -> float:
    """``L sqrt(Omega_U Omega_V)``, the constant in every bound of the paper; 1 where X is zero."""
    omegas = primal.omega_bound * dual.omega_bound
    return float(primal.lipschitz(problem) * np.sqrt(omegas)) or 1.0
