"""The one loop: every way to end, and what it promises about the way there."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from typing import Any

import numpy as np
import pytest

import checker
import fenchel
from fenchel.certificate import Certificate
from fenchel.driver import _Best, _Progress, run
from fenchel.problem import Problem
from fenchel.solvers.base import Point, Solver
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.termination import Budget, Record, Status, decide
from instances import BY_NAME
from support import SOLVER_NAMES, make_problem, solve

INSTANCE = BY_NAME["three-classes"]


def check_returned(result: fenchel.Result) -> None:
    """The returned point is certified, and the best of those checked."""
    checker.check(result, INSTANCE.X, INSTANCE.y, loss="hinge", **INSTANCE.check_arguments())
    assert result.gap == result.history[-1].best_gap
    assert result.primal == min(record.primal for record in result.history)
    assert result.dual == max(record.dual for record in result.history)


class Scripted(Solver):
    """A solver that does as it is told: scripts map an iteration to an action or a point."""

    name = "scripted"
    default_max_iter = 50

    def __init__(self, script: dict[int, Any], pace: float = 1.0, spacing: int = 1) -> None:
        self.script, self.pace, self.spacing = script, pace, spacing

    def init(self, problem: Problem, start: Any, rng: Any, horizon: int) -> dict:
        self.horizon = horizon
        return {"t": 0, "problem": problem}

    def advance(self, state: dict, n_steps: int) -> None:
        for _ in range(n_steps):
            state["t"] += 1
            action = self.script.get(state["t"])
            if isinstance(action, BaseException):
                raise action

    def points(self, state: dict) -> list[Point]:
        problem = state["problem"]
        scale = self.script.get(state["t"], 0.0)
        U = np.full((problem.d, problem.k), scale)
        return [Point(U, np.full((problem.n, problem.k), 1 / problem.k), "last")]

    def passes(self, problem: Problem) -> float:
        return self.pace

    def iterations_per_check(self, problem: Problem) -> int:
        return self.spacing

    def note(self, state: dict) -> str:
        return f"step {state['t']}"


# --- every status once -------------------------------------------------------------------------


def test_converged() -> None:
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.05)
    assert result.status == "converged"
    assert result.status is Status.CONVERGED
    assert result.gap <= 0.05  # P(0) = 1 for the hinge loss
    check_returned(result)


def test_converged_is_relative_to_the_objective_at_zero() -> None:
    result = solve(INSTANCE, "softmax", "mirror-prox", tol=0.05)
    assert result.status == "converged"
    assert result.gap <= 0.05 * np.log(3)
    before = [record.best_gap for record in result.history[:-1]]
    assert min(before) > 0.05 * np.log(3)  # it did not run on


def test_converged_by_the_absolute_gap() -> None:
    outcome = run(make_problem(INSTANCE), MirrorProx(), Budget(tol=0.0, gap=0.1))
    assert outcome.status == "converged"
    assert outcome.certificate.gap <= 0.1


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_max_iter(solver: str) -> None:
    result = solve(INSTANCE, "hinge", solver, tol=0.0, max_iter=7)
    assert (result.status, result.n_iter) == ("max_iter", 7)
    check_returned(result)


def test_a_start_without_V_is_named_once() -> None:
    instance = BY_NAME["three-classes"]
    first = fenchel.solve(instance.X, instance.y, lam=0.05)
    again = fenchel.solve(instance.X, instance.y, lam=0.05, start=np.asarray(first.U).tolist())
    assert again.status == "converged"
    assert again.point.startswith("start (dual: ")
    assert again.point.count("dual") == 1


def test_max_iter_of_zero_certifies_the_start() -> None:
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_iter=0)
    assert (result.status, result.n_iter, len(result.history)) == ("max_iter", 0, 1)
    assert not np.any(result.U)
    check_returned(result)


def test_max_passes() -> None:
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_passes=30)
    assert result.status == "max_passes"
    assert result.n_iter == 8  # four passes an iteration: the first multiple at or above 30
    assert result.passes == 32
    check_returned(result)


def test_max_time() -> None:
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_time=1e-9)
    assert result.status == "max_time"
    check_returned(result)
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_time=0.05, max_iter=10**9)
    assert result.status == "max_time"
    assert result.n_iter >= 1
    assert result.history[-1].wall >= 0.05
    check_returned(result)


def test_a_run_without_limits_ends_by_the_default() -> None:
    problem = make_problem(INSTANCE)
    solver = Scripted({}, spacing=7)
    outcome = run(problem, solver, Budget(tol=0.0))
    assert outcome.status == "max_iter"
    assert outcome.history[-1].iteration == solver.default_max_iter == solver.horizon


def test_interrupted_by_the_callback() -> None:
    seen = []

    def callback(record: Record) -> bool:
        seen.append(record)
        return len(seen) == 3

    for answer in (bool, np.bool_):
        seen.clear()
        result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_iter=500,
                       callback=lambda record, answer=answer: answer(callback(record)))  # fmt: skip
        assert result.status == "interrupted"
        assert seen == result.history
        assert len(seen) == 3
        check_returned(result)


def test_only_true_interrupts() -> None:
    """A callback that returns a count, or nothing, does not stop the run by accident."""
    for answer in (None, 1, "stop", False, np.bool_(False), np.int64(1)):
        result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_iter=9,
                       callback=lambda record, answer=answer: answer)  # fmt: skip
        assert result.status == "max_iter"


def test_a_callback_cannot_overrule_a_status() -> None:
    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.5, callback=lambda r: r.best_gap <= 0.5)
    assert result.status == "converged"


@pytest.mark.parametrize("at", [0, 2])
def test_keyboard_interrupt_in_the_callback(at: int) -> None:
    seen = []

    def callback(record: Record) -> None:
        seen.append(record)
        if len(seen) == at + 1:
            raise KeyboardInterrupt

    result = solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_iter=500, callback=callback)
    assert result.status == "interrupted"
    assert len(result.history) == at + 1
    check_returned(result)


def test_keyboard_interrupt_in_the_solver() -> None:
    problem = make_problem(INSTANCE)
    solver = Scripted({2: 1e-3, 5: KeyboardInterrupt()})
    outcome = run(problem, solver, Budget(tol=0.0, max_iter=20))
    assert outcome.status == "interrupted"
    assert outcome.history[-1].iteration < 5
    assert outcome.certificate.primal == min(record.primal for record in outcome.history)


def system_error(cause: BaseException | None, context: BaseException | None) -> SystemError:
    """What numba raises where a kernel that returns a tuple is interrupted, or fails."""
    error = SystemError("CPUDispatcher(...) returned a result with an exception set")
    error.__cause__, error.__context__ = cause, context
    return error


@pytest.mark.parametrize("link", ["cause", "context", "both"])
def test_keyboard_interrupt_in_the_guise_of_a_system_error(link: str) -> None:
    end = KeyboardInterrupt()
    error = {
        "cause": system_error(end, None),
        "context": system_error(None, end),
        "both": system_error(ValueError(), system_error(None, end)),
    }[link]
    outcome = run(make_problem(INSTANCE), Scripted({5: error}), Budget(tol=0.0, max_iter=20))
    assert outcome.status == "interrupted"
    assert outcome.history[-1].iteration < 5


def test_other_errors_are_not_swallowed() -> None:
    loop = system_error(ValueError(), None)
    loop.__cause__.__cause__ = loop  # type: ignore[union-attr]
    for error in (ZeroDivisionError(), SystemError(), loop):
        with pytest.raises(type(error)):
            run(make_problem(INSTANCE), Scripted({3: error}), Budget(max_iter=9))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_diverged(bad: float) -> None:
    problem = make_problem(INSTANCE)
    outcome = run(problem, Scripted({3: bad}), Budget(tol=0.0, max_iter=20))
    assert outcome.status == "diverged"
    assert outcome.history[-1].iteration == 3
    assert outcome.history[-1].gap == math.inf
    assert np.isfinite(outcome.certificate.gap)  # the best point is still there
    assert np.isfinite(outcome.certificate.U).all()


def test_diverged_by_a_far_too_long_step() -> None:
    result = solve(INSTANCE, "hinge", "subgradient", step=1e308, tol=0.0, max_iter=500)
    assert result.status == "diverged"
    check_returned_finite(result)


def check_returned_finite(result: fenchel.Result) -> None:
    checker.check(result, INSTANCE.X, INSTANCE.y, loss="hinge", **INSTANCE.check_arguments())


# --- the decision alone ------------------------------------------------------------------------

QUIET = Record(iteration=10, passes=20.0, seconds=1.0, primal=1.0, dual=0.5, gap=0.5, nnz=3,
               point="last", best_gap=0.5, wall=2.0)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "budget", "at_zero", "expected"),
    [
        ({}, Budget(tol=0.1), 1.0, None),
        ({}, Budget(tol=0.5), 1.0, "converged"),
        ({}, Budget(tol=0.1), 5.0, "converged"),
        ({}, Budget(tol=0.0, gap=0.5), 1.0, "converged"),
        ({}, Budget(tol=0.0, gap=0.49), 1.0, None),
        ({"best_gap": 0.0}, Budget(tol=0.0), 1.0, "converged"),
        ({"gap": math.inf}, Budget(tol=0.1), 1.0, "diverged"),
        ({"gap": math.nan}, Budget(tol=0.1), 1.0, "diverged"),
        ({"gap": math.inf, "best_gap": 0.05}, Budget(tol=0.1), 1.0, "converged"),
        ({}, Budget(tol=0.0, max_iter=10), 1.0, "max_iter"),
        ({}, Budget(tol=0.0, max_iter=11), 1.0, None),
        ({}, Budget(tol=0.0, max_passes=20.0), 1.0, "max_passes"),
        ({}, Budget(tol=0.0, max_passes=20.5), 1.0, None),
        ({}, Budget(tol=0.0, max_time=2.0), 1.0, "max_time"),
        ({}, Budget(tol=0.0, max_time=2.5), 1.0, None),
        ({}, Budget(tol=0.0, max_time=1.5), 1.0, "max_time"),  # the wall, not the solver's clock
        ({}, Budget(tol=0.5, max_iter=1, max_time=0.1), 1.0, "converged"),  # the best news wins
    ],
)
def test_decide(change: dict, budget: Budget, at_zero: float, expected: str | None) -> None:
    assert decide(dataclasses.replace(QUIET, **change), budget, at_zero) == expected


# --- records, history, schedule ----------------------------------------------------------------


def test_records_are_read_only() -> None:
    caught = []

    def callback(record: Record) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.gap = 0.0  # type: ignore[misc]
        caught.append(record)

    solve(INSTANCE, "hinge", "mirror-prox", tol=0.0, max_iter=12, callback=callback)
    assert caught


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_the_history_is_in_order(solver: str) -> None:
    result = solve(INSTANCE, "hinge", solver, tol=1e-9, max_passes=200)
    records = result.history
    assert records[0].iteration == 0
    assert records[0].passes == 0.0
    assert len(records) >= 3
    for before, after in itertools.pairwise(records):
        assert after.iteration > before.iteration
        assert after.passes > before.passes
        assert after.seconds >= before.seconds
        assert after.wall >= before.wall
        assert after.best_gap <= before.best_gap
    for record in records:
        assert record.gap == record.primal - record.dual
        assert record.best_gap <= record.gap
        assert 0 <= record.nnz <= INSTANCE.X.shape[1] * INSTANCE.k
        assert record.seconds <= record.wall
    assert result.seconds == records[-1].seconds


def test_the_schedule_is_geometric_and_follows_no_clock() -> None:
    problem = make_problem(INSTANCE)
    runs = [run(problem, Scripted({}, spacing=5), Budget(tol=0.0, max_iter=1000)) for _ in range(2)]
    checks = [[record.iteration for record in outcome.history] for outcome in runs]
    assert checks[0] == checks[1]
    assert checks[0][-1] == 1000
    assert len(checks[0]) <= 30
    assert np.diff(checks[0])[:-1].min() >= 5
    growth = [b / a for a, b in zip(checks[0][4:-1], checks[0][5:-1], strict=False)]
    assert max(growth) <= 1.5


def test_notes_of_the_solver_are_kept() -> None:
    outcome = run(make_problem(INSTANCE), Scripted({}), Budget(tol=0.0, max_iter=3))
    assert [record.note for record in outcome.history] == ["", "step 1", "step 2", "step 3"]


def test_the_best_primal_and_dual_points_are_kept_apart() -> None:
    """A worse later point does not replace a better one."""
    problem = make_problem(INSTANCE)
    outcome = run(problem, Scripted({1: 10.0, 2: 1e4}), Budget(tol=0.0, max_iter=2))
    assert outcome.history[1].primal > outcome.history[0].primal
    assert outcome.certificate.primal == outcome.history[0].primal
    assert outcome.certificate.gap == outcome.history[-1].best_gap
    assert not np.any(outcome.certificate.U)


def test_the_horizon_is_the_budget() -> None:
    problem = make_problem(INSTANCE)
    for budget, horizon in (
        (Budget(tol=0.0, max_iter=5), 5),
        (Budget(tol=0.0, max_passes=9.0), 5),
        (Budget(tol=0.0, max_iter=3, max_passes=9.0), 3),
    ):
        solver = Scripted({}, pace=2.0)
        assert run(problem, solver, budget).history[-1].iteration == horizon
        assert solver.horizon == horizon


def test_the_best_points_hold_one_u_and_one_v() -> None:
    """Each is as large as the data has features or samples times classes."""
    points = [np.zeros((2, 2)) for _ in range(8)]
    first, lower, higher, worse = (
        Certificate(points[2 * i], points[2 * i + 1], primal, dual, "penalised", "last")
        for i, (primal, dual) in enumerate([(9.0, 0.0), (5.0, -1.0), (8.0, 3.0), (7.0, 2.0)])
    )
    best = _Best(first)
    for certificate in (lower, higher, worse):
        best.update(certificate)
    assert best.gap == 2.0
    assert {id(best.upper.U), id(best.lower.U)} == {id(lower.U)}
    assert {id(best.upper.V), id(best.lower.V)} == {id(higher.V)}
    found = best.certificate()
    assert found.U is lower.U
    assert found.V is higher.V
    assert (found.primal, found.dual) == (5.0, 3.0)


class Sharpening(Scripted):
    """A solver that is asked for a better dual point, and knows the labels' one."""

    asked = 0

    def sharpened(self, state: dict) -> np.ndarray:
        self.asked += 1
        problem = state["problem"]
        return np.eye(problem.k)[problem.y]


def test_a_worse_dual_point_changes_nothing(monkeypatch) -> None:
    monkeypatch.setattr("fenchel.driver.may_be_sharper", lambda *_: True)
    problem, budget = make_problem(INSTANCE), Budget(tol=0.0, max_iter=3)
    plain = run(problem, Scripted({}), budget)
    solver = Sharpening({})
    found = run(problem, solver, budget)
    assert solver.asked == 3
    assert [r.dual for r in found.history] == [r.dual for r in plain.history]
    assert found.certificate.dual == plain.certificate.dual > 0.0


def test_no_better_dual_point_is_asked_for_when_the_time_is_over(monkeypatch) -> None:
    monkeypatch.setattr("fenchel.driver.may_be_sharper", lambda *_: True)
    solver = Sharpening({})
    monkeypatch.setattr(solver, "advance", lambda state, steps: time.sleep(0.3))
    outcome = run(make_problem(INSTANCE), solver, Budget(tol=0.0, max_time=0.3))
    assert (solver.asked, outcome.status, outcome.history[-1].iteration) == (0, "max_time", 1)


# --- certificates that would tell nothing --------------------------------------------------------


class Far(Scripted):
    """Is far from its goal up to an iteration."""

    check_growth = 1.0

    def __init__(self, until: int) -> None:
        super().__init__({})
        self.until, self.asked = until, []

    def is_far(self, state: dict, goal: float, sharp: float) -> bool:
        self.asked.append((goal, sharp))
        return state["t"] < self.until


def seen(until: int, **budget: Any) -> tuple[list[int], Far]:
    solver = Far(until)
    outcome = run(make_problem(INSTANCE, "hinge"), solver, Budget(**budget))
    return [record.iteration for record in outcome.history], solver


def test_points_far_from_the_goal_are_not_certified() -> None:
    iterations, solver = seen(4, max_iter=6, tol=1e-4)
    assert iterations == [0, 4, 5, 6]
    # P(0) = 1, and where the point is sharp its gap is a quarter of the square
    assert np.allclose(solver.asked, (1e-4, 2e-2))
    assert np.allclose(seen(1, max_iter=2, tol=0.0, gap=0.04)[1].asked, (0.04, 0.1))


def test_no_more_than_three_points_in_a_row_are_left_out() -> None:
    assert seen(100, max_iter=10)[0] == [0, 4, 8, 10]


def test_the_last_point_is_certified_however_far_it_is() -> None:
    assert seen(100, max_iter=3)[0] == [0, 3]
    assert seen(100, max_passes=3)[0] == [0, 3]
    assert seen(100, max_time=0.0, max_iter=9)[0] == [0]


def test_in_the_second_half_of_the_time_every_point_is_certified(monkeypatch) -> None:
    """A pass may be cut off any time, and then what was not certified is lost."""

    def early(max_time: float | None) -> bool:
        began = time.perf_counter() - 6.0
        return _Progress(None, Budget(max_time=max_time), None, None, [], began, True).early

    assert [early(limit) for limit in (None, 1000.0, 10.0)] == [True, True, False]
    assert seen(100, max_iter=5, max_time=1000.0)[0] == [0, 4, 5]
    monkeypatch.setattr(_Progress, "early", False)
    assert seen(100, max_iter=5, max_time=1000.0)[0] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_fits_leave_certificates_out(loss: str, monkeypatch) -> None:
    result = solve(INSTANCE, loss, "primal-dual", tol=1e-6)
    assert result.status == "converged"
    assert len(result.history) - 1 < result.n_iter
    checker.check(result, INSTANCE.X, INSTANCE.y, loss=loss, **INSTANCE.check_arguments())
    monkeypatch.setattr("fenchel.solvers.proximal_newton.CHEAP", 0)
    large = solve(INSTANCE, loss, "primal-dual", tol=1e-6)
    assert (len(large.history) - 1 < large.n_iter) == (loss == "hinge")  # a survey says how far
    assert solve(INSTANCE, loss, "proximal-newton", tol=1e-6).history[1].iteration == 1
    monkeypatch.setattr("fenchel.solvers.proximal_newton.SURVEYED_LARGE", np.inf)
    every = solve(INSTANCE, loss, "primal-dual", tol=1e-6)
    assert len(every.history) - 1 == every.n_iter
