"""One contract that every solver keeps: the driver may cut, repeat and inspect a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import checker
import reference
from fenchel.certificate import certify
from fenchel.problem import Problem
from fenchel.solvers.base import Solver, Start
from fenchel.solvers.registry import SOLVERS, get_solver
from instances import BY_NAME, Instance
from support import SOLVER_NAMES, make_problem, refusal, same_bits, solve

every_solver = pytest.mark.parametrize("name", SOLVER_NAMES)

CASES = [("three-classes", "hinge"), ("sparse", "softmax"), ("weighted", "sparsemax")]
every_case = pytest.mark.parametrize(("instance", "loss"), CASES)


def start_run(
    name: str, problem: Problem, start: Start | None = None, seed: int = 0
) -> tuple[Solver, Any]:
    solver = get_solver(name, None)
    return solver, solver.init(problem, start, np.random.default_rng(seed), 100)


def taken(name: str, instance: str, loss: str) -> Instance:
    if refusal(name, loss, BY_NAME[instance]):
        pytest.skip("refused, as tests/optimality asserts")
    return BY_NAME[instance]


def same_points(a: list, b: list) -> bool:
    return len(a) == len(b) and all(
        p.which == q.which and same_bits(p.U, q.U) and same_bits(p.V, q.V)
        for p, q in zip(a, b, strict=True)
    )


def moved(X: Any, offset: int) -> Any:
    """A copy of X whose entries begin ``offset`` entries behind the start of a cache line."""
    if sp.issparse(X):
        return sp.csr_array((moved(X.data, offset), X.indices, X.indptr), shape=X.shape)
    memory = np.empty(X.size + 16)
    start = -memory.ctypes.data % 64 // 8 + offset
    memory[start : start + X.size] = X.ravel()
    return memory[start : start + X.size].reshape(X.shape)


@every_solver
@every_case
def test_cutting_a_run_changes_no_bit(name: str, instance: str, loss: str) -> None:
    problem = make_problem(taken(name, instance, loss), loss)
    solver, whole = start_run(name, problem)
    solver.advance(whole, 12)
    _, cut = start_run(name, problem)
    for steps in (1, 4, 7):
        solver.advance(cut, steps)
        solver.points(cut)  # looking does not disturb either
        solver.note(cut)
    assert same_points(solver.points(whole), solver.points(cut))


@every_solver
@every_case
def test_the_same_seed_gives_the_same_bits(name: str, instance: str, loss: str) -> None:
    case = taken(name, instance, loss)
    first, second = (solve(case, loss, name, max_passes=20, rng=7) for _ in range(2))
    assert same_bits(first.U, second.U)
    assert same_bits(first.V, second.V)
    assert [r.iteration for r in first.history] == [r.iteration for r in second.history]
    assert [r.gap for r in first.history] == [r.gap for r in second.history]


@every_solver
@every_case
def test_where_the_data_lie_changes_no_bit(name: str, instance: str, loss: str) -> None:
    case = taken(name, instance, loss)
    first = solve(case, loss, name, max_passes=20, rng=7)
    for offset in (1, 2, 4):
        other = solve(replace(case, X=moved(case.X, offset)), loss, name, max_passes=20, rng=7)
        assert same_bits(first.U, other.U)
        assert same_bits(first.V, other.V)
        assert [r.gap for r in first.history] == [r.gap for r in other.history]


@every_solver
@every_case
def test_looking_at_the_points_does_not_move_them(name: str, instance: str, loss: str) -> None:
    problem = make_problem(taken(name, instance, loss), loss)
    solver, state = start_run(name, problem)
    solver.advance(state, 5)
    seen = [certify(problem, point.U, point.V) for point in solver.points(state)]
    kept = [(checker.dense(certificate.U), checker.dense(certificate.V)) for certificate in seen]
    solver.advance(state, 3)
    _, quiet = start_run(name, problem)
    solver.advance(quiet, 8)
    assert same_points(solver.points(state), solver.points(quiet))
    for certificate, (U, V) in zip(seen, kept, strict=True):  # the driver keeps the best of them
        assert same_bits(certificate.U, U)
        assert same_bits(certificate.V, V)


@every_solver
@every_case
def test_points_can_be_certified(name: str, instance: str, loss: str) -> None:
    case = taken(name, instance, loss)
    problem = make_problem(case, loss)
    solver, state = start_run(name, problem)
    for steps in (1, 1, 10):
        solver.advance(state, steps)
        for point in solver.points(state):
            assert point.U.shape == (problem.d, problem.k)
            assert point.V.shape == (problem.n, problem.k)
            assert point.which
            certificate = certify(problem, point.U, point.V, point.which)
            found = checker.bounds(
                case.X, case.y, certificate.U, certificate.V, loss=loss, **case.check_arguments()
            )
            assert found.primal == pytest.approx(certificate.primal, abs=1e-9)
            assert found.dual == pytest.approx(certificate.dual, abs=1e-9)


@every_solver
def test_inputs_are_not_changed(name: str) -> None:
    for instance in (BY_NAME["absent-class"], BY_NAME["sparse"]):
        arrays = [instance.X, instance.y, instance.weights, instance.penalty_factor]
        if sp.issparse(instance.X):
            arrays = [instance.X.data, instance.X.indices, instance.X.indptr, instance.y]
        before = [None if a is None else a.copy() for a in arrays]
        first = solve(instance, "hinge", name, max_passes=20)
        U, V = checker.dense(first.U), checker.dense(first.V)
        solve(instance, "hinge", name, max_passes=20, start=(U, V))
        for a, b in zip(arrays, before, strict=True):
            assert a is b is None or np.array_equal(a, b)
        assert same_bits(first.U, U)
        assert same_bits(first.V, V)


@every_solver
def test_a_warm_start_is_taken(name: str) -> None:
    instance = BY_NAME["three-classes"]
    first = solve(instance, "hinge", name, max_passes=200, tol=1e-9)
    starts = [first, (first.U, first.V), first.U, Start(first.U), Start(first.U, first.V)]
    starts.append((sp.csr_array(first.U), sp.csr_array(first.V)))
    for start in starts:
        again = solve(instance, "hinge", name, max_passes=8, start=start)
        checker.check(again, instance.X, instance.y, loss="hinge", **instance.check_arguments())
        assert again.primal <= first.primal + 1e-12
        assert again.history[0].primal == pytest.approx(first.primal, abs=1e-12)


@every_solver
def test_a_warm_start_is_used_and_not_only_remembered(name: str) -> None:
    """After a few steps from near the optimum the solver's own point is still near it."""
    instance = BY_NAME["three-classes"]
    good = solve(instance, "hinge", "mirror-prox", max_iter=3000, tol=1e-9)
    problem = make_problem(instance)
    solver, warm = start_run(name, problem, Start(good.U, good.V))
    _, cold = start_run(name, problem)
    solver.advance(warm, 2)
    solver.advance(cold, 2)
    primal_warm, primal_cold = (
        min(certify(problem, p.U, p.V).primal for p in solver.points(s)) for s in (warm, cold)
    )
    assert primal_warm <= primal_cold


@every_solver
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_dense_and_sparse_data_give_the_same_answer(name: str, loss: str) -> None:
    instance = taken(name, "sparse", loss)
    dense = replace(instance, X=instance.X.toarray())
    # their way to the solution may have other steps where the data is sparse
    exact = name in ("primal-dual", "proximal-newton")
    budget = {"tol": 1e-9} if exact else {"max_passes": 20}
    a, b = (solve(case, loss, name, **budget) for case in (instance, dense))
    assert a.primal == pytest.approx(b.primal, rel=1e-7)
    assert a.dual == pytest.approx(b.dual, rel=1e-7, abs=1e-9)


@every_solver
def test_costs_and_names_are_stated(name: str) -> None:
    solver = get_solver(name, None)
    problem = make_problem(BY_NAME["sparse"])
    assert solver.name == name
    assert SOLVERS[name] is type(solver)
    assert solver.passes(problem) > 0
    assert solver.iterations_per_check(problem) >= 1
    assert solver.default_max_iter >= 1
    result = solve(BY_NAME["sparse"], "hinge", name, max_passes=10, tol=0.0)
    assert result.solver == name
    assert result.passes >= 10
    assert (
        result.passes - solver.passes(problem) < 10
    )  # the budget is overdrawn by one step at most


@pytest.mark.parametrize("name", ["mirror-descent", "mirror-prox"])
@pytest.mark.parametrize(
    ("primal", "dual", "instance"),
    [("1x1", "2x2", "ball"), ("euclidean", "2x1", "ball"), ("euclidean", "2x2", "weighted"),
     ("1x2", "2x1", "group"), ("1x2", "2x2", "group")],
)  # fmt: skip
def test_other_geometries_solve_the_same_problem(
    name: str, primal: str, dual: str, instance: str
) -> None:
    case = BY_NAME[instance]
    for loss in ("hinge", "softmax"):
        result = solve(case, loss, SOLVERS[name](primal=primal, dual=dual), max_iter=300)
        checker.check(result, case.X, case.y, loss=loss, **case.check_arguments())
        optimum = reference.optimum(case, loss)
        assert result.dual - reference.TOLERANCE <= optimum <= result.primal + reference.TOLERANCE
        assert result.gap < 0.7 * result.history[0].gap
