"""Stochastic mirror descent with both schemes."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.geometry.registry import make_geometries
from fenchel.kernels.sublinear_online import measure as measure_lazy
from fenchel.kernels.sublinear_state import last_dual, last_primal
from fenchel.problem import Problem
from fenchel.sampling import FullSampler, PartialSampler
from fenchel.solvers.base import Start
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.mirror_prox import MirrorProx
from fenchel.solvers.partial_sweep import PartialSweep
from fenchel.solvers.stochastic import FullSampling, PartialSampling, PlainIterates, measure
from fenchel.solvers.sublinear import Sublinear
from fenchel.steps.theory import stochastic_bound

RNG = np.random.default_rng


def make_problem(loss="hinge", sparse=False, radius=4.0, penalty="l1", n=30, d=8, k=5):
    rng = RNG(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    y = (X[:, :k] + 0.3 * rng.standard_normal((n, k))).argmax(axis=1)
    return Problem.from_data(
        sp.csr_array(X) if sparse else X, y, loss=loss, lam=0.02, radius=radius, penalty=penalty,
        sample_weight=rng.random(n) + 0.2, penalty_factor=1 + rng.random(d), classes=range(k),
    )  # fmt: skip


def run(solver, problem, steps, seed=0, start=None):
    state = solver.init(problem, start, RNG(seed), steps)
    solver.advance(state, steps)
    return state


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("radius", [4.0, None])
def test_fused_sweeps_equal_the_plain_iteration(loss, sparse, radius):
    """The same draws give the same iterates, sums and noisy sums."""
    problem = make_problem(loss, sparse, radius)
    R = problem.radius_bound()
    primal, dual = make_geometries(problem, R)
    sampler = PartialSampler(problem, primal, dual)
    fused = PartialSweep(problem, sampler, None, RNG(1), noisy=True)
    plain = PlainIterates(problem, sampler, primal.center(), dual.center(), RNG(1), 1, True)
    for t in range(400):
        rates = (0.3 * R**2 / (1 + t), 0.2 / R, 1.0 / (1 + t))
        fused.step(*rates)
        plain.step(*rates)
    for mine, theirs in zip(fused.point(), plain.point(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    for name in ("U_sum", "V_sum", "noisy_sum"):
        theirs = getattr(plain, name)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(getattr(fused, name), theirs, rtol=1e-9, atol=1e-11 * scale)
    assert np.abs(primal.coef(fused.point()[0])).max() > 0.01  # it has gone somewhere


def test_fused_sweeps_are_used_where_they_apply():
    fits = make_problem("softmax")
    assert isinstance(run(PartialSampling(), fits, 1).iterates, PartialSweep)
    cost = fenchel.losses.Hinge(cost=1 - np.eye(5))
    for solver, problem in (
        (PartialSampling(), make_problem("sparsemax")),
        (PartialSampling(), make_problem(cost)),
        (PartialSampling(dual="2x2"), make_problem()),
        (PartialSampling(batch=2), make_problem()),
        (FullSampling(), make_problem()),
    ):
        assert isinstance(run(solver, problem, 1).iterates, PlainIterates)


def test_enormous_steps_stay_finite():
    problem = make_problem()
    for loss in ("hinge", "softmax"):
        problem = make_problem(loss)
        for solver in (PartialSampling(step=1e6), FullSampling(step=1e6)):
            state = run(solver, problem, 300)
            point = solver.points(state)[0]
            assert np.isfinite(certify(problem, point.U, point.V).gap)


def test_warm_start_is_near_the_start():
    problem = make_problem()
    best = fenchel.driver.run(problem, MirrorProx(), fenchel.termination.Budget(tol=1e-3))
    start = Start(best.certificate.U, best.certificate.V)
    state = PartialSampling().init(problem, start, RNG(0), 10)
    u, V = state.iterates.point()
    U = state.sampler.primal.coef(u)
    np.testing.assert_allclose(U, start.U, atol=3e-3 * problem.radius)
    np.testing.assert_allclose(V, start.V, atol=2e-3)
    assert np.abs(u).sum() <= problem.radius * (1 + 1e-3)
    gap = certify(problem, U, V).gap
    assert gap < 0.2 * certify(problem, 0 * U, V).gap


@pytest.mark.parametrize("solver_type", [PartialSampling, FullSampling])
@pytest.mark.parametrize("average", ["iterates", "suffix", "noisy"])
def test_a_run_may_be_cut_into_slices(solver_type, average):
    problem = make_problem()
    solver = solver_type(average=average)
    whole = run(solver, problem, 1100)  # past the first epoch
    pieces = solver.init(problem, None, RNG(0), 1100)
    for steps in (1, 6, 400, 693):
        solver.advance(pieces, steps)
    a, b = solver.points(whole)[0], solver.points(pieces)[0]
    np.testing.assert_array_equal(a.U, b.U)
    np.testing.assert_array_equal(a.V, b.V)


@pytest.mark.parametrize("solver_type", [PartialSampling, FullSampling])
def test_bound_of_the_theorem(solver_type):
    """th:md-partial and th:md-full: the mean certified gap is below the promise."""
    problem = make_problem("softmax")
    T = 300
    solver = solver_type(step="theory")
    gaps = []
    for seed in range(8):
        state = run(solver, problem, T, seed)
        point = solver.points(state)[0]
        gaps.append(certify(problem, point.U, point.V).gap)
    sampler = state.sampler
    variances = sampler.variance_bounds()
    bound = stochastic_bound(
        sampler.lipschitz, sampler.primal, sampler.dual, variances, T, problem.loss.remainder(5)
    )
    assert 0 < np.mean(gaps) <= bound
    # and the printed second line of eq:md-partial-result is a weaker promise
    n, R = problem.n, problem.radius
    columns = problem.design.column_norms(problem.weights).max()
    rows = float(problem.weights @ problem.design.row_max_abs())
    log = np.log(2 * problem.d * problem.k)
    second = (16.2 * columns + 8 * rows) * log * R / np.sqrt(T) + problem.loss.remainder(5) / T
    assert bound <= second
    assert n == 30


@pytest.mark.parametrize("solver_type", [PartialSampling, FullSampling])
def test_noisy_average_is_sparse_and_says_what_it_is(solver_type):
    problem = make_problem(d=40)
    solver = solver_type(average="noisy")
    state = run(solver, problem, 12)
    (point,) = solver.points(state)
    assert point.which == "average of noisy iterates (dual: average)"
    per_draw = problem.k if solver_type is PartialSampling else 1
    assert 0 < np.count_nonzero(point.U) <= 12 * per_draw
    # over many draws it tends to the average of the iterates
    state = run(solver, problem, 8000)
    iterates = state.iterates
    (point,) = solver.points(state)
    average = iterates.U_sum / state.total
    assert np.abs(point.U - average).max() < 0.2 * np.abs(average).max()
    np.testing.assert_allclose(point.V, iterates.V_sum / state.total)


def test_suffix_average():
    problem = make_problem()
    solver = PartialSampling(step=0.01, average="suffix")
    state = solver.init(problem, None, RNG(0), 100)
    U = []
    for _ in range(100):
        U.append(state.sampler.primal.coef(state.iterates.point()[0]))
        solver.advance(state, 1)
    suffix, average = solver.points(state)
    np.testing.assert_allclose(suffix.U, np.mean(U[32:], axis=0))
    np.testing.assert_allclose(average.U, np.mean(U, axis=0))
    assert (suffix.which, average.which) == ("average of a suffix", "average")


@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        (solver(**geometries), penalty)
        for solver in (MirrorDescent, MirrorProx, PartialSampling)
        for geometries, penalty in (
            ({"dual": "2x2"}, "l1"),
            ({"primal": "1x2"}, "group"),
            ({"primal": "1x2", "dual": "2x2"}, "group"),
        )
    ],
)
def test_alternative_geometries(solver, penalty):
    """Every geometry of eq:geometry-possibilities solves its problem."""
    problem = make_problem(penalty=penalty)
    # 1 / gap of the deterministic solvers falls with T, that of sampling with sqrt(T)
    steps = {"mirror-prox": 800, "mirror-descent": 1500}.get(solver.name, 8000)
    point = solver.points(run(solver, problem, steps))[0]
    certificate = certify(problem, point.U, point.V)
    assert certificate.gap < 0.2
    assert certificate.primal < 0.7 * problem.at_zero


def test_projection_ends_on_ties():
    """Rounding may let an entry at the threshold back in; that must not go on for ever."""
    problem = make_problem()
    solver = PartialSampling(dual="2x2")
    state = run(solver, problem, 200)  # never returned once
    np.testing.assert_allclose(state.iterates.point()[1].sum(axis=1), 1.0)


def test_group_penalty_switches_whole_features_off():
    problem = make_problem(penalty="group", radius=None, d=20)
    problem = Problem.from_data(
        problem.design.X, problem.y, lam=0.08, penalty="group", classes=range(5)
    )
    budget = fenchel.termination.Budget(tol=1e-2, max_iter=2000)
    U = fenchel.driver.run(problem, MirrorProx(), budget).certificate.U
    rows = np.abs(U).sum(axis=1)
    assert 0 < np.count_nonzero(rows > 1e-3 * rows.max()) < 20


def test_full_sampling_refuses_the_group_penalty():
    with pytest.raises(ValueError, match="full sampling needs l1 geometry in the classes"):
        fenchel.solve(np.eye(4), [0, 1, 2, 0], lam=0.1, penalty="group", solver="full-sampling")


@pytest.mark.parametrize("solver", ["partial-sampling", "full-sampling"])
def test_online_rule_needs_no_constants(solver):
    """It does not see the units of X, and beats the theory step by far."""
    data = make_paper(30, rng=0)

    def gap(factor, step=None):
        return fenchel.solve(
            data.X * factor, data.y, lam=data.lam * factor, radius=data.radius / factor,
            classes=data.classes, solver=solver, step=step, max_iter=4000, rng=0,
        ).gap  # fmt: skip

    assert gap(1.0) == pytest.approx(gap(1024.0), rel=1e-9)
    assert gap(1.0) < 0.5 * gap(1.0, "theory")


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"average must be one of .*, found 'last'"):
        PartialSampling(average="last")
    with pytest.raises(ValueError, match="batch must be a positive integer, found 0"):
        FullSampling(batch=0)
    with pytest.raises(ValueError, match="step must be"):
        fenchel.solve(np.eye(3), [0, 1, 2], lam=0.1, solver="partial-sampling", step="fast")


def test_online_rule_of_the_lazy_solver_measures_what_the_plain_one_does():
    """Moments at the same point agree, up to the noise of some draws."""
    problem = make_problem(n=60, d=30, k=12)
    problem = Problem.from_data(
        problem.design.X, problem.y, lam=0.02, radius=5.0, classes=range(12),
        sample_weight=problem.weights,
    )  # fmt: skip
    lazy = Sublinear(step=2e-3)
    state = run(lazy, problem, 3000)
    U1, U2 = last_primal(state.lazy)
    u, V = np.concatenate([U1, U2]), last_dual(state.lazy)
    sampler = FullSampler(problem, *make_geometries(problem, 5.0))
    rng = RNG(0)
    plain = [astuple(measure(sampler, u, V, rng)) for _ in range(60)]
    mine = [astuple(measure_lazy(state.data, state.lazy, 5.0)) for _ in range(60)]
    spread = np.std(plain, axis=0) + np.std(mine, axis=0)
    difference = np.abs(np.mean(plain, axis=0) - np.mean(mine, axis=0))
    assert (difference <= 6 * spread / np.sqrt(60) + 1e-12).all()


@pytest.mark.parametrize("average", ["iterates", "noisy"])
def test_lazy_averages_weigh_iterates_by_their_steps(average):
    """The online rule shortens its step; the sums then follow, also through save and resume."""
    problem = make_problem(n=40, d=12, k=6)
    problem = Problem.from_data(problem.design.X, problem.y, lam=0.02, radius=4.0, classes=range(6))
    solver = Sublinear(average=average)
    state = solver.init(problem, None, RNG(3), 5000)
    U_sum, V_sum, weights, omegas = 0.0, 0.0, 0.0, set()
    for t in range(2600):
        if t == 1500:
            state = solver.resume(problem, solver.save(state))
        solver.advance(state, 1)
        omega = state.step.omega
        omegas.add(omega)
        U1, U2 = last_primal(state.lazy)
        U_sum, V_sum = U_sum + omega * (U1 - U2), V_sum + omega * last_dual(state.lazy)
        weights += omega
    assert len(omegas) > 1
    (point,) = solver.points(state)
    # the sums of the solver begin one iterate earlier, and change weight one iterate later
    np.testing.assert_allclose(point.V, V_sum / weights, atol=5e-3)
    assert np.abs(point.V - last_dual(state.lazy)).max() > 0.05
    scale = np.abs(U_sum / weights).max()
    tolerance = 5e-3 if average == "iterates" else 0.5
    assert np.abs(point.U - U_sum / weights).max() < tolerance * scale
    again = solver.init(problem, None, RNG(3), 5000)
    solver.advance(again, 2600)
    np.testing.assert_array_equal(solver.points(again)[0].U, point.U)


def test_sublinear_online_rule_on_sparse_data_equals_dense():
    problem = make_problem(n=40, d=12, k=6)
    gaps = [
        fenchel.solve(
            X, problem.y, lam=0.02, radius=4.0, classes=range(6), solver="sublinear",
            max_iter=3000, rng=0,
        ).gap
        for X in (problem.design.X, sp.csr_array(problem.design.X))
    ]  # fmt: skip
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-6)
