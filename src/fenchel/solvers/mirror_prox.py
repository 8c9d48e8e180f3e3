"""Composite Mirror Prox (rem:mp-acceleration): extragradient steps, O(1/T)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.geometry.registry import make_geometries
from fenchel.kernels.pairing import pair_rows
from fenchel.problem import Problem
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.mirror_descent import joint_scale, starting_point
from fenchel.steps import StepRule, make_step

#: The online rule lengthens an accepted step and halves a refused one.
GROW, SHRINK = 1.1, 0.5

Field = tuple[np.ndarray, np.ndarray]


@dataclass
class State:
    problem: Problem
    primal: PrimalGeometry
    dual: DualGeometry
    step: StepRule | None  # None: the online rule
    theory: float  # the step of theory
    gamma: float
    u: np.ndarray
    U: np.ndarray  # the coefficients of u
    V: np.ndarray
    U_sum: np.ndarray
    V_sum: np.ndarray
    field: Field | None = None  # G at (u, V) where a refused step left it computed
    total: float = 0.0  # sum of the accepted steps
    t: int = 0


class MirrorProx(Solver):
    """Four products with X an iteration; the step-weighted average of the midpoints is certified.

    G is Lipschitz with constant 2 L sqrt(Omega_U Omega_V) in the joint norm, so that
    gamma = 1 / (2 L sqrt(Omega_U Omega_V)) gives a gap of at most 2 L sqrt(Omega_U Omega_V) / T.

    Parameters
    ----------
    step : "online" (the default: the longest step that the analysis accepts at the point at hand),
        "theory", "inverse-sqrt", or a number.
    primal, dual : names of geometries; the paper's by default.
    """

    name: ClassVar[str] = "mirror-prox"
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
        theory = 0.5 / joint_scale(problem, primal, dual)
        online = self.step in (None, "online")
        step = None if online else make_step(self.step, theory, theory, default="theory")
        U_sum, V_sum = np.zeros((problem.d, problem.k)), np.zeros_like(V)
        return State(
            problem, primal, dual, step, theory, theory, u, primal.coef(u), V, U_sum, V_sum
        )

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            if state.step is not None:
                state.gamma = state.step(state.t)
            field = state.field or self._field(state, state.U, state.V)
            u_mid, V_mid = self._prox(state, field)
            U_mid = state.primal.coef(u_mid)
            field_mid = self._field(state, U_mid, V_mid)
            u, V = self._prox(state, field_mid)
            U = state.primal.coef(u)
            state.t += 1
            # the step of theory is acceptable in any case: close to a solution rounding hides it
            longer = state.step is None and state.gamma > state.theory
            if longer and not self._acceptable(
                state, field, field_mid, (u_mid, U_mid, V_mid), (u, U, V)
            ):
                state.gamma = max(SHRINK * state.gamma, state.theory)
                state.field = field
                continue
            state.U_sum += state.gamma * U_mid
            state.V_sum += state.gamma * V_mid
            state.total += state.gamma
            state.u, state.U, state.V, state.field = u, U, V, None
            if state.step is None:
                state.gamma *= GROW

    def points(self, state: State) -> list[Point]:
        if state.total == 0.0:  # every step so far was refused
            return [Point(state.U, state.V, "last")]
        return [Point(state.U_sum / state.total, state.V_sum / state.total, "average")]

    def passes(self, problem: Problem) -> float:
        return 4.0

    @staticmethod
    def _field(state: State, U: np.ndarray, V: np.ndarray) -> Field:
        """``X^T diag(w) (V - Y)`` and ``X U`` (eq:gradient-field, the sign of G_V left out)."""
        return state.problem.gradient(V), state.problem.design.matmul(U)

    @staticmethod
    def _prox(state: State, field: Field) -> Field:
        """The composite step of MirrorDescent from (u, V) along a field."""
        problem, primal, dual = state.problem, state.primal, state.dual
        S, Z = field
        u = primal.step(state.u, S, 2 * state.gamma * primal.omega_bound)
        eta = 2 * state.gamma * dual.omega_bound
        return u, dual.step(problem.loss, state.V, Z, eta, problem.y)

    @staticmethod
    def _acceptable(
        state: State,
        field: Field,
        field_mid: Field,
        mid: tuple[np.ndarray, np.ndarray, np.ndarray],
        following: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> bool:
        """``gamma <G(mid) - G, mid - next> <= D(next, mid) + D(mid, here)``, all that is needed."""
        primal, dual, weights = state.primal, state.dual, state.problem.weights
        (u_mid, U_mid, V_mid), (u, U, V) = mid, following
        change = _pairing(field_mid[0], field[0], U_mid, U).sum()
        change -= weights @ _pairing(field_mid[1], field[1], V_mid, V)
        needed = state.gamma * change / (1 + 1e-12)
        # the terms are not negative: the later, smaller ones are computed only where they decide
        for geometry, x, x0 in (
            (primal, u_mid, state.u),
            (dual, V_mid, state.V),
            (dual, V, V_mid),
            (primal, u, u_mid),
        ):
            if needed <= 0.0:
                return True
            needed -= geometry.bregman(x, x0) / (2 * geometry.omega_bound)
        return bool(needed <= 0.0)


def _pairing(A: np.ndarray, A0: np.ndarray, B: np.ndarray, B0: np.ndarray) -> np.ndarray:
    """``<A - A0, B - B0>``, row by row."""
    out = np.empty(A.shape[0])
    pair_rows(A, A0, B, B0, out)
    return out
