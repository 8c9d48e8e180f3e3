"""A time limit: what is cut off, what ends in good order, and who has the rest of the time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import checker
import fenchel
from fenchel.certificate import certify
from fenchel.driver import run
from fenchel.kernels.sublinear_state import average_primal, largest_of_average
from fenchel.problem import Problem
from fenchel.solvers import hurried
from fenchel.solvers.base import Point, Solver
from fenchel.solvers.hurried import Hurried
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.registry import choose
from fenchel.solvers.sublinear import Sublinear
from fenchel.solvers.working_set import violators
from fenchel.termination import Budget
from fenchel.time_limit import NEVER, TimeLimitError, late, leave_in_time, until

PAST = -1.0


def make_data(rng: np.random.Generator, n: int = 120, d: int = 30, k: int = 6) -> tuple:
    y = np.arange(n) % k
    X = rng.normal(size=(n, d))
    X[np.arange(n), y] += 3.0
    return X, y


def uniform(problem: Problem) -> np.ndarray:
    return np.full((problem.n, problem.k), 1.0 / problem.k)


# --- the clock -----------------------------------------------------------------------------------


def test_without_a_limit_nothing_is_late() -> None:
    assert not late()
    leave_in_time()


def test_steps_and_passes_have_limits_of_their_own() -> None:
    with until(PAST, NEVER):
        assert late()
        leave_in_time()
    with until(NEVER, PAST):
        assert not late()
        with pytest.raises(TimeLimitError):
            leave_in_time()
    assert not late()


def test_a_pass_in_blocks_is_cut_off_and_one_product_is_not(monkeypatch) -> None:
    X, y = make_data(np.random.default_rng(0))
    problem = Problem.from_data(X, y, lam=0.01)
    V = uniform(problem)
    with until(PAST, PAST):
        whole = violators(problem, V, 100)  # one block
    monkeypatch.setattr("fenchel.solvers.working_set.BLOCK_ENTRIES", 2 * problem.n)
    monkeypatch.setattr("fenchel.full_gradient.MOST", 0)
    with until(PAST, PAST), pytest.raises(TimeLimitError):
        violators(problem, V, 100)
    blocks = violators(problem, V, 100)
    assert set(zip(*blocks[:2], strict=True)) == set(zip(*whole[:2], strict=True))


def test_newton_steps_end_in_good_order() -> None:
    X, y = make_data(np.random.default_rng(1))
    problem = Problem.from_data(X, y, lam=0.01, loss="softmax")
    values = []
    for limit in (NEVER, PAST):
        solver = ProximalNewton()
        state = solver.init(problem, None, np.random.default_rng(0), 10)
        with until(limit, NEVER):
            solver.advance(state, 2)
        point = solver.points(state)[0]
        assert point.V is not None
        values.append(certify(problem, point.U, point.V).primal)
    assert values[0] < values[1] <= problem.at_zero  # fewer steps, and a point all the same


# --- the rest of the time ------------------------------------------------------------------------


class Endless(Solver):
    """A solver whose pass never ends, or whose first iterations are made and find nothing."""

    name = "endless"
    default_max_iter = 50

    def __init__(self, made: int = 0) -> None:
        self.made = made

    def init(self, problem: Problem, start: Any, rng: Any, horizon: int) -> dict:
        return {"problem": problem, "t": 0}

    def advance(self, state: dict, n_steps: int) -> None:
        for _ in range(n_steps):
            state["t"] += 1
            while state["t"] > self.made:
                leave_in_time()
                time.sleep(1e-3)

    def points(self, state: dict) -> list[Point]:
        problem = state["problem"]
        return [Point(np.zeros((problem.d, problem.k)), uniform(problem), "last")]

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_per_check(self, problem: Problem) -> int:
        return 1


class Quick(Endless):
    """A solver with a point at once, and no dual point."""

    name = "quick"

    def __init__(self, most: int = 10**9) -> None:
        super().__init__(10**9)
        self.most = most

    def points(self, state: dict) -> list[Point]:
        problem = state["problem"]
        U = np.zeros((problem.d, problem.k))
        U[np.arange(problem.k), np.arange(problem.k)] = 0.1
        return [Point(U, None, "quick")]

    def exhausted(self, state: dict) -> bool:
        return bool(state["t"] >= self.most)


def make_endless(fallback: Solver | None, made: int = 0) -> Endless:
    solver = Endless(made)
    solver.fallback = fallback
    return solver


@pytest.fixture
def problem() -> Problem:
    X, y = make_data(np.random.default_rng(2))
    return Problem.from_data(X, y, lam=0.01)


def test_the_fallback_has_the_rest_where_the_first_pass_is_too_dear(problem) -> None:
    outcome = run(problem, make_endless(Quick()), Budget(tol=0.0, max_time=0.2))
    assert (outcome.status, outcome.solver) == ("max_time", "quick")
    notes = [record.note for record in outcome.history]
    assert notes[1] == "a pass over the data was cut off"
    assert "quick for the rest of the time, because the first pass of endless" in notes[2]
    assert outcome.history[1].wall >= 0.1
    point = outcome.certificate
    assert point.primal < problem.at_zero
    assert point.point == "quick (dual: zero)"
    assert point.gap == pytest.approx(certify(problem, point.U, point.V).gap, abs=1e-12)


def test_a_solver_that_made_its_first_pass_has_all_of_the_time(problem) -> None:
    outcome = run(problem, make_endless(Quick(), made=1), Budget(tol=0.0, max_time=0.1))
    assert (outcome.status, outcome.solver) == ("max_time", "endless")
    assert outcome.history[-1].wall >= 0.1
    assert outcome.history[-1].note == "a pass over the data was cut off"


@pytest.mark.parametrize("fallback", [None, Quick()])
def test_a_limit_on_iterations_leaves_a_solver_its_time(problem, fallback) -> None:
    """Iterations of two solvers are not the same thing; without another one there is no choice."""
    max_iter = None if fallback is None else 5
    budget = Budget(tol=0.0, max_time=0.1, max_iter=max_iter)
    outcome = run(problem, make_endless(fallback), budget)
    assert (outcome.status, outcome.solver) == ("max_time", "endless")
    assert outcome.history[-1].wall >= 0.1
    assert outcome.certificate.primal == problem.at_zero


def test_the_end_of_the_time_does_not_hang_on_rounding(problem, monkeypatch) -> None:
    """The deadline and the seconds of a record are rounded each in its own way."""
    monkeypatch.setattr("fenchel.driver.decide", lambda *_: None)
    outcome = run(problem, make_endless(None), Budget(tol=0.0, max_time=0.05))
    assert outcome.status == "max_time"


def test_a_fallback_without_room_ends_before_its_time(problem) -> None:
    outcome = run(problem, make_endless(Quick(most=3)), Budget(tol=0.0, max_time=0.5))
    assert (outcome.status, outcome.solver) == ("max_time", "quick")
    assert outcome.history[-1].iteration == 3


# --- the sublinear solver, in a hurry ------------------------------------------------------------


def test_largest_of_average_is_the_average_without_the_rest() -> None:
    X, y = make_data(np.random.default_rng(3))
    problem = Problem.from_data(X, y, lam=0.01, fit_intercept=True)
    solver = Sublinear()
    state = solver.init(problem, None, np.random.default_rng(0), 1000)
    assert largest_of_average(state.lazy, 1.0, 5).nnz == 0
    solver.advance(state, 500)
    average = average_primal(state.lazy, state.scale)
    found = largest_of_average(state.lazy, state.scale, 10, spared=1).toarray()
    expected = average.copy()
    expected[:-1][np.abs(average[:-1]) < np.sort(np.abs(average[:-1]).ravel())[-10]] = 0.0
    assert np.count_nonzero(expected[:-1]) == 10
    np.testing.assert_array_equal(found, expected)
    everything = largest_of_average(state.lazy, state.scale, average.size)
    np.testing.assert_array_equal(everything.toarray(), average)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_auto_goes_on_with_the_sublinear_solver(monkeypatch, sparse, intercept) -> None:
    """The first pass is cut off at once, and the certificate is that of what is returned."""
    monkeypatch.setattr("fenchel.driver.PATIENCE", 0.0)
    monkeypatch.setattr("fenchel.solvers.hurried.LARGE", 0)
    monkeypatch.setattr("fenchel.solvers.hurried.ENTRIES", 20)
    monkeypatch.setattr("fenchel.solvers.working_set.BLOCK_ENTRIES", 1)
    monkeypatch.setattr("fenchel.full_gradient.MOST", 0)
    monkeypatch.setattr("fenchel.solvers.proximal_newton.few_coefficients", lambda problem: True)
    monkeypatch.setattr("fenchel.solvers.primal_dual.few_coefficients", lambda problem: True)
    X, y = make_data(np.random.default_rng(4))
    weights = np.random.default_rng(5).uniform(0.5, 2.0, y.size)
    arguments = {"lam": 0.01, "fit_intercept": intercept}
    data = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)) if sparse else X
    fenchel.solve(data, y, solver="sublinear", max_iter=5, rng=0, **arguments)  # compiled
    result = fenchel.solve(data, y, max_time=0.6, tol=0.0, sample_weight=weights, rng=0,
                           **arguments)  # fmt: skip
    assert (result.solver, result.status) == ("sublinear", "max_time")
    assert "sublinear for the rest of the time" in "".join(r.note for r in result.history)
    assert result.primal < 1.0
    assert "largest of the average" in result.point
    assert np.count_nonzero(checker.dense(result.U)) <= 20
    U, offset = checker.dense(result.U), 0.0 if result.intercept is None else result.intercept
    losses = checker.losses(data @ U + offset, y, "hinge")
    assert result.primal == pytest.approx(weights @ losses / weights.sum() + 0.01 * abs(U).sum())
    if not intercept:
        checker.check(result, data, y, loss="hinge", lam=0.01, weights=weights)


def test_without_a_time_limit_nothing_is_cut_off(monkeypatch) -> None:
    monkeypatch.setattr("fenchel.driver.PATIENCE", 0.0)
    monkeypatch.setattr("fenchel.solvers.hurried.LARGE", 0)
    monkeypatch.setattr("fenchel.solvers.working_set.BLOCK_ENTRIES", 1)
    monkeypatch.setattr("fenchel.full_gradient.MOST", 0)
    X, y = make_data(np.random.default_rng(6))
    result = fenchel.solve(X, y, lam=0.01)
    assert (result.solver, result.status) == ("primal-dual", "converged")


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": "softmax"},
        {"positive": True},
        {"radius": 3.0},
        {"lam": 0.0},
        {"penalty_factor": np.r_[0.0, np.ones(29)]},
    ],
)
def test_problems_that_the_sublinear_solver_cannot_do_have_no_fallback(
    monkeypatch, arguments
) -> None:
    X, y = make_data(np.random.default_rng(7))
    assert choose(Problem.from_data(X, y, lam=0.01)).fallback is None  # small
    monkeypatch.setattr("fenchel.solvers.hurried.LARGE", 0)
    assert isinstance(choose(Problem.from_data(X, y, lam=0.01)).fallback, Hurried)
    with monkeypatch.context() as little:
        little.setattr(hurried, "available_memory", lambda: hurried.ROOM + X.nbytes)
        assert choose(Problem.from_data(X, y, lam=0.01)).fallback is None
    assert choose(Problem.from_data(X, y, **{"lam": 0.01, **arguments})).fallback is None


def test_the_room_of_touched_classes_is_limited(monkeypatch) -> None:
    X, y = make_data(np.random.default_rng(8))
    solver = Hurried()
    state = solver.init(Problem.from_data(X, y, lam=0.01), None, np.random.default_rng(0), 100)
    assert not solver.exhausted(state)
    solver.advance(state, 1)
    monkeypatch.setattr(hurried, "ROOM", 16 * (30 + 120) - 1)  # one class less
    assert solver.exhausted(state)
