"""The linear program of what is active ends at a solution of the whole problem."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
import reference
from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.solvers import linear_program, primal_dual
from fenchel.solvers.base import Start
from fenchel.solvers.linear_program import LinearProgram
from instances import INSTANCES, Instance
from support import make_problem, refusal

TAKEN = [i for i in INSTANCES if refusal("proximal-newton", "hinge", i) is None]


def end_of(problem: Problem) -> tuple[linear_program.State, float]:
    """The last state from no start at all, and its certified gap."""
    solver = LinearProgram()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, 40)
    (point,) = solver.points(state)
    return state, certify(problem, point.U, point.V).gap


@pytest.mark.parametrize("instance", TAKEN, ids=lambda instance: instance.name)
def test_it_ends_at_the_optimum(instance: Instance) -> None:
    problem = make_problem(instance)
    state, gap = end_of(problem)
    assert state.solved
    assert not state.failed
    optimum = reference.optimum(instance, "hinge")
    assert problem.primal(state.U) == pytest.approx(optimum, abs=2e-7 * max(1.0, optimum))
    if instance.penalty_factor is None or (instance.penalty_factor > 0).all():
        assert gap <= 1e-8 * problem.at_zero


def test_a_start_with_nothing_active() -> None:
    """Every margin is far beyond one and V is Y: the first program has no constraints."""
    X, y = np.array([[-9.0, 1.0], [9.0, 1.0]]), np.array([0, 1])
    problem = Problem.from_data(X, y, lam=0.01, penalty_factor=[0.0, 1.0])
    solver, start = LinearProgram(), Start(np.array([[-1.0, 1.0], [0.0, 0.0]]), np.eye(2)[y])
    state = solver.init(problem, start, np.random.default_rng(0), 1)
    solver.advance(state, 10)
    assert problem.primal(state.U) <= 1e-12


def test_an_intercept_and_a_sparse_design() -> None:
    rng = np.random.default_rng(3)
    X = sp.random_array((60, 9), density=0.5, rng=rng, format="csr")
    y = rng.integers(0, 3, 60)
    problem = Problem.from_data(X, y, lam=0.01, fit_intercept=True)
    state, _ = end_of(problem)
    expected = fenchel.solve(X, y, lam=0.01, fit_intercept=True, tol=1e-8)
    assert problem.primal(state.U) == pytest.approx(expected.primal, abs=2e-8)


def test_the_certified_solver_ends_with_it() -> None:
    data = make_paper(30, rng=1)
    result = fenchel.solve(data.X, data.y, lam=0.01, classes=data.classes, tol=1e-12)
    assert result.status == "converged"
    assert any("linear program" in record.note for record in result.history)


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1.0, 1e9])
def test_features_and_penalties_of_any_size(size: float) -> None:
    """HiGHS takes numbers below 1e-9 for zero, and costs below its tolerance for none."""
    rng = np.random.default_rng(0)
    X, y = size * rng.standard_normal((12, 50)), np.arange(12) % 2
    problem = Problem.from_data(X, y, lam=1e-7 * size)
    state, gap = end_of(problem)
    assert state.solved
    assert gap <= 1e-12


def test_the_method_before_goes_on_where_the_solution_is_not_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make_paper(30, rng=1)
    solve = LinearProgram._solve

    def roughly(state: linear_program.State) -> None:
        solve(state)
        state.U = np.round(state.U, 2)

    monkeypatch.setattr(LinearProgram, "_solve", staticmethod(roughly))
    monkeypatch.setattr(primal_dual, "FINISH_NEWTON", 1e-4)
    result = fenchel.solve(data.X, data.y, lam=0.01, classes=data.classes, tol=1e-8, max_iter=400)
    assert result.status == "converged"
    assert any("not exact enough" in record.note for record in result.history)


def test_the_method_before_goes_on_where_the_program_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make_paper(30, rng=1)
    monkeypatch.setattr(linear_program, "ITERATIONS", 0)  # every program is given up
    monkeypatch.setattr(primal_dual, "FINISH_NEWTON", 1e-4)
    result = fenchel.solve(data.X, data.y, lam=0.01, classes=data.classes, tol=1e-8)
    assert result.status == "converged"
    assert any("too large" in record.note for record in result.history)


@pytest.mark.parametrize(
    ("loss", "size", "why"),
    [("softmax", 1 << 22, "the hinge loss"), ("hinge", 9, "too large")],
)
def test_what_it_refuses(loss: str, size: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_program, "DENSE_ENTRIES", size)
    with pytest.raises(ValueError, match=why):
        LinearProgram().init(make_problem(TAKEN[0], loss), None, np.random.default_rng(0), 1)
