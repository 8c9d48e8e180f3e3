"""The kernel behind ``experiments/heavy_tails.py`` against the solvers of the package."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fenchel.certificate import certify
from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem
from fenchel.sampling import SAMPLERS
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.stochastic import PlainIterates

FOLDER = Path(__file__).resolve().parents[1] / "experiments"
if not FOLDER.is_dir():
    pytest.skip("the experiments are not installed", allow_module_level=True)
sys.path.insert(0, str(FOLDER))
import heavy_tails  # noqa: E402
from heavy_tails_kernel import EXACT, FULL, PARTIAL, fill_law, smd_iterations  # noqa: E402

sys.path.remove(str(FOLDER))

N, D, K, R = 25, 12, 4, 2.0


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.5, (N, D))
    y = X[:, :K].argmax(axis=1)
    return Problem.from_data(
        X, y, lam=0.02, radius=R, classes=range(K), sample_weight=rng.uniform(0.5, 2.0, N),
        penalty_factor=rng.uniform(0.5, 2.0, D),
    )  # fmt: skip


def kernel(problem, scheme, rates, T, seed=0, mix=0.0, cap=np.inf):
    primal, dual = make_geometries(problem, R)
    sampler = SAMPLERS["partial"](problem, primal, dual)
    return smd_iterations(
        problem.design.X, problem.y, K, problem.weights, np.ones(N),
        problem.lam * problem.penalty_factor, R, sampler.columns, sampler.rows, *rates, T, scheme,
        mix, cap, np.random.default_rng(seed),
    )  # fmt: skip


def test_exact_products_are_mirror_descent(problem: Problem) -> None:
    gamma, T = 0.05, 60
    primal, dual = make_geometries(problem, R)
    solver = MirrorDescent(step=gamma)
    state = solver.init(problem, None, np.random.default_rng(0), T)
    solver.advance(state, T)
    point = solver.points(state)[0]
    rates = 2 * gamma * primal.omega_bound, 2 * gamma * dual.omega_bound
    U, V = kernel(problem, EXACT, rates, T)
    np.testing.assert_allclose(U, point.U, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(V, point.V, rtol=1e-9)


@pytest.mark.parametrize("scheme", ["partial", "full"])
def test_laws_are_those_of_the_package(problem: Problem, scheme: str) -> None:
    primal, dual = make_geometries(problem, R)
    sampler = SAMPLERS[scheme](problem, primal, dual)
    rng = np.random.default_rng(1)
    u, V = rng.random((2 * D, K)) ** 3, rng.dirichlet(np.ones(K), N)
    W = V - np.eye(K)[problem.y]
    code = FULL if scheme == "full" else PARTIAL
    columns = np.tile(sampler.columns, 2)
    for A, sizes, wanted in (
        (u, columns, sampler.primal_law(u)),
        (W, problem.weights * sampler.rows, sampler.dual_law(V)),
    ):
        law = np.empty_like(A)
        fill_law(law, A, sizes, code, 0.0, np.inf)
        np.testing.assert_allclose(law if scheme == "full" else law[:, 0], wanted)
        fill_law(law, A, sizes, code, 0.5, 1.2)
        changed = np.minimum(1.2 / wanted.size, 0.5 * wanted + 0.5 / wanted.size)
        assert changed.sum() < 1.0  # some outcomes are clipped
        found = law if scheme == "full" else law[:, 0]
        np.testing.assert_allclose(found, changed / changed.sum())


@pytest.mark.parametrize("scheme", ["partial", "full"])
def test_sampled_runs_are_as_good_as_those_of_the_package(problem: Problem, scheme: str) -> None:
    """The same gap on the mean over seeds; a wrong scale of an estimate changes it by far more."""
    T, rates, seeds = 400, (0.05, 0.05), 8
    primal, dual = make_geometries(problem, R)
    sampler = SAMPLERS[scheme](problem, primal, dual)
    ours, theirs = [], []
    for seed in range(seeds):
        U, V = kernel(problem, FULL if scheme == "full" else PARTIAL, rates, T, seed)
        ours.append(certify(problem, U, V).gap)
        rng = np.random.default_rng(seed)
        run = PlainIterates(problem, sampler, primal.center(), dual.center(), rng, 1, False)
        for _ in range(T):
            run.step(*rates, 1.0)
        theirs.append(certify(problem, run.U_sum / T, run.V_sum / T).gap)
    error = 4 * np.hypot(np.std(ours), np.std(theirs)) / np.sqrt(seeds)
    assert abs(np.mean(ours) - np.mean(theirs)) <= error < 0.4 * np.mean(theirs)


def test_remedies_leave_the_problem_as_it_is() -> None:
    """``remedies`` compares the objectives itself, and a row scaled alone is another problem."""
    problem, U = heavy_tails.base_problem("t2.2")
    assert len(heavy_tails.remedies(problem, U)) == 6
    scale = np.abs(problem.design.X).max(axis=1)
    moved = Problem.from_data(
        problem.design.X / scale[:, None], problem.y, lam=problem.lam, sample_weight=scale,
        classes=problem.classes,
    )  # fmt: skip
    assert abs(moved.primal(U) - problem.primal(U)) > 0.01
    other = heavy_tails.scaled_rows(problem, scale)
    rng = np.random.default_rng(0)
    V = rng.dirichlet(np.ones(problem.k), problem.n)
    assert certify(other, U, V).dual == pytest.approx(certify(problem, U, V).dual)


@pytest.mark.parametrize("method", heavy_tails.METHODS)
def test_every_case_of_the_study_has_a_gap(method: str) -> None:
    """The study's own path to the kernel, for the loss as it is and for scaled rows."""
    problem, U = heavy_tails.base_problem("heavy rows")
    cases = {"none": heavy_tails.Case(problem), **heavy_tails.remedies(problem, U)}
    assert len(cases) > 3
    for name, case in cases.items():
        found = heavy_tails.gap(case, method, 4, 20, seed=0)
        assert 0.0 < found < 100.0, name
