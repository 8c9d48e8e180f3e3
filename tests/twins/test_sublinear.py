"""The sublinear solver against its plain twin, and its invariants."""

import numpy as np
import pytest
import scipy.sparse as sp
from sublinear_twin import Twin, Uniforms

from fenchel.certificate import certify
from fenchel.kernels import sublinear as lazy
from fenchel.kernels.sublinear_draws import draw_class_of_row, draw_entry, draw_row, uniform
from fenchel.kernels.sublinear_state import average_dual, average_primal, last_dual, last_primal
from fenchel.problem import Problem
from fenchel.solvers.base import Start
from fenchel.solvers.sublinear import Sublinear, theory_step


def make_problem(n=70, d=90, k=50, *, sparse=False, lam=1e-3, radius=20.0, seed=1, **kwargs):
    """Ten classes have no sample; n, d and k are no multiples of a tile or a block."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if sparse:
        X[rng.random((n, d)) < 0.8] = 0.0
        X[:, 3] = 0.0
        X[5] = 0.0
        X = sp.csr_array(X)
    y = rng.integers(0, max(2, k - 10), n)
    y[:2] = 0, 1
    return Problem.from_data(X, y, lam=lam, radius=radius, classes=np.arange(k), **kwargs)


def start_run(problem, solver, seed=7, horizon=2000, start=None):
    return solver.init(problem, start, np.random.default_rng(seed), horizon)


def twin_of(problem, run):
    X = problem.design.X
    X = X.toarray() if sp.issparse(X) else X
    return Twin(X, problem.y, problem.k, problem.weights, problem.lam, run.radius, run.lazy.rng[0])


def row_sums(s):
    """The row sums of V, from what is stored."""
    return last_dual(s).sum(axis=1)


def maintained_and_recomputed(s):
    """Pairs of sums that the solver keeps up and the same sums from scratch."""
    U1, U2 = last_primal(s)
    V = last_dual(s)
    alpha = s.scalar[lazy.ALPHA]
    n, used, size = s.y.size, s.count[lazy.DUAL_USED], s.count[lazy.SIZE]
    fields = s.rows.reshape(-1, lazy.FIELDS, lazy.TILE).swapaxes(0, 1).reshape(lazy.FIELDS, -1)
    beta, w_tau = fields[lazy.BETA // lazy.TILE, :n], fields[lazy.W_TAU // lazy.TILE, :n]
    V_other = V.copy()
    V_other[np.arange(n), s.y] = 0.0
    in_order = V_other[:, s.order[:used]]
    starts = np.arange(0, used, size)
    rho = np.abs(V - np.eye(V.shape[1])[s.y]).sum(axis=1)
    return {
        "class masses": (alpha * s.class_mass, (U1 + U2).sum(axis=0)),
        "class laws": (alpha * s.class_sigma, s.sigma @ (U1 + U2)),
        "groups": (s.group_mass.sum(), s.class_mass.sum()),
        "blocks": (beta * s.block[: starts.size, :n], np.add.reduceat(in_order, starts, axis=1).T),
        "rho": (s.tile_rho.sum(), 0.5 * w_tau @ rho),
    }


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("lam", "gamma"), [(1e-3, 2e-4), (1e-2, 1e-3), (0.0, 1e-3)])
def test_equals_the_twin(sparse, lam, gamma):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 70)
    weights[10:13] = 0.0
    problem = make_problem(sparse=sparse, lam=lam, sample_weight=weights)
    solver = Sublinear(step=gamma, average="noisy")
    run = start_run(problem, solver)
    twin = twin_of(problem, run)
    for steps in (1, 499, 1500):
        solver.advance(run, steps)
        for _ in range(steps):
            twin.step(gamma)
        s = run.lazy
        U1, U2 = last_primal(s)
        np.testing.assert_allclose(np.vstack([U1, U2]), twin.U, rtol=0, atol=1e-9)
        np.testing.assert_allclose(last_dual(s), twin.V, rtol=0, atol=1e-9)
        U, V = twin.averages()
        np.testing.assert_allclose(average_primal(s), U, rtol=0, atol=1e-9)
        np.testing.assert_allclose(average_dual(s), V, rtol=0, atol=1e-9)
        noisy = solver.points(run)[0].U
        np.testing.assert_allclose(noisy, twin.noisy_sum / len(twin.draws), rtol=0, atol=1e-9)
        # row norms, and the law of the features that follows from them
        pi = np.concatenate([U1, U2]).sum(axis=1)
        np.testing.assert_allclose(pi, twin.pi, rtol=0, atol=1e-9)
        law = alpha_sigma = s.scalar[lazy.ALPHA] * s.class_sigma
        np.testing.assert_allclose(law, (twin.sigma[:, None] * twin.U).sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(alpha_sigma.sum(), twin.sigma @ twin.pi, atol=1e-9)
        np.testing.assert_allclose(
            2 * s.tile_rho.sum(), (twin.w * twin.tau * twin.rho).sum(), rtol=0, atol=1e-9
        )
    assert run.lazy.count[lazy.RENORMALISED] > 0


def test_generator_is_the_twins():
    state, twin = np.array([123456789, 0], dtype=np.uint64), Uniforms(123456789)
    assert [uniform(state) for _ in range(100)] == [twin() for _ in range(100)]


def test_draws_follow_their_laws():
    problem = make_problem(n=9, d=7, k=6, radius=3.0)
    solver = Sublinear(step=2e-2)
    run = start_run(problem, solver)
    solver.advance(run, 60)
    s = run.lazy
    V, (U1, U2) = last_dual(s), last_primal(s)
    N = 200_000
    rows, entries = np.zeros((9, 6)), np.zeros((2, 7, 6))
    for _ in range(N):
        j, _ = draw_row(s)
        l, sign = draw_class_of_row(s, j)
        assert sign == (-1.0 if l == problem.y[j] else 1.0)
        rows[j, l] += 1
        i, l, sign, _ = draw_entry(s)
        entries[0 if sign > 0 else 1, i, l] += 1
    law = (problem.weights * s.tau)[:, None] * np.abs(V - np.eye(6)[problem.y])
    law_entries = s.sigma[:, None] * np.stack([U1, U2])
    for counts, p in ((rows, law / law.sum()), (entries, law_entries / law_entries.sum())):
        deviation = np.abs(counts - N * p) / np.sqrt(N * p * (1 - p) + 1.0)
        assert deviation.max() < 5.0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [1.0, 160.0, 1e6, 1e300])
def test_no_step_is_too_large(sparse, factor):
    problem = make_problem(n=37, d=23, k=30, sparse=sparse, radius=None, lam=1e-2)
    gamma = factor * theory_step(
        start_run(problem, Sublinear()).lazy, problem.weights, problem.radius_bound(), 2000
    )
    solver = Sublinear(step=min(gamma, 1e300))
    run = start_run(problem, solver)
    for _ in range(4):
        solver.advance(run, 500)
        for array in run.lazy:
            if array.dtype == float:
                used = array if array.ndim < 2 else array[: run.lazy.count[lazy.DUAL_USED]]
                assert np.isfinite(used).all()
        np.testing.assert_allclose(row_sums(run.lazy), 1.0, rtol=0, atol=1e-9)
        total = run.lazy.scalar[lazy.ALPHA] * run.lazy.class_mass.sum()
        assert total <= run.radius * (1 + 1e-12)
        for found, expected in maintained_and_recomputed(run.lazy).values():
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
        point = solver.points(run)[0]
        assert certify(problem, point.U, point.V).gap >= 0


def test_no_drift_in_ten_million_iterations():
    problem = make_problem(n=5, d=6, k=4, lam=1e-2, radius=5.0)
    solver = Sublinear(step=2e-3)
    run = start_run(problem, solver)
    worst = 0.0
    for _ in range(100):
        solver.advance(run, 100_000 + 77)  # not always right after a renormalisation
        worst = max(worst, np.abs(row_sums(run.lazy) - 1.0).max())
        for found, expected in maintained_and_recomputed(run.lazy).values():
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    assert worst < 1e-9
    assert run.lazy.count[lazy.T] > 10**7
    assert run.lazy.count[lazy.RENORMALISED] >= 10_000  # explicit, and counted
    assert run.lazy.free.max() <= 1.0  # also where all classes are stored
    point = solver.points(run)[0]
    assert 0 <= certify(problem, point.U, point.V).gap < problem.at_zero


@pytest.mark.parametrize("sparse", [False, True])
def test_slices_and_resumption_change_no_bit(sparse):
    problem = make_problem(sparse=sparse)
    solver = Sublinear(step=1e-3, average="noisy")
    whole = start_run(problem, solver)
    solver.advance(whole, 3000)
    parts = start_run(problem, solver)
    solver.advance(parts, 1234)
    saved = {name: np.array(array) for name, array in solver.save(parts).items()}
    solver.advance(parts, 1)  # what was saved must not change with the run
    parts = solver.resume(problem, saved)
    solver.advance(parts, 1)
    solver.advance(parts, 1765)
    for name, array in solver.save(whole).items():
        np.testing.assert_array_equal(array, solver.save(parts)[name], err_msg=name)


def test_weights_are_repetitions():
    # the same draws: a row repeated three times is a row of weight three
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 10)), rng.integers(0, 4, 12)
    counts = rng.integers(1, 4, 12)
    weighted = Problem.from_data(X, y, lam=1e-2, radius=3.0, sample_weight=counts)
    repeated = Problem.from_data(X.repeat(counts, axis=0), y.repeat(counts), lam=1e-2, radius=3.0)
    solver = Sublinear(step=1e-3)
    runs = [start_run(problem, solver) for problem in (weighted, repeated)]
    for run in runs:
        solver.advance(run, 500)
    a, b = (solver.points(run)[0] for run in runs)
    np.testing.assert_allclose(a.U, b.U, atol=1e-10)
    np.testing.assert_allclose(a.V.repeat(counts, axis=0), b.V, atol=1e-10)


def test_penalty_factors_are_feature_scales():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 10)), rng.integers(0, 4, 12)
    c = rng.uniform(0.5, 2.0, 10)
    solver = Sublinear(step=1e-3)
    factors = Problem.from_data(X, y, lam=0.1, penalty_factor=c)
    scaled = Problem.from_data(X / c, y, lam=0.1)
    a, b = start_run(factors, solver), start_run(scaled, solver)
    for run in (a, b):
        solver.advance(run, 500)
    U = solver.points(a)[0].U
    np.testing.assert_allclose(U * c[:, None], solver.points(b)[0].U, atol=1e-12)


def test_warm_start_begins_near_it():
    problem = make_problem(n=30, d=20, k=12, radius=5.0)
    rng = np.random.default_rng(0)
    U = rng.standard_normal((20, 12)) * (rng.random((20, 12)) < 0.1)
    U *= 4.0 / np.abs(U).sum()
    V = rng.dirichlet(np.full(12, 0.1), 30)
    solver = Sublinear(step=1e-6)
    run = start_run(problem, solver, start=Start(U, V))
    solver.advance(run, 3)
    point = solver.points(run)[0]
    np.testing.assert_allclose(point.U, U, atol=0.02 * np.abs(U).max())
    np.testing.assert_allclose(point.V, V, atol=0.02)
    for found, expected in maintained_and_recomputed(run.lazy).values():
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_gap_falls():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, :4].argmax(axis=1)
    problem = Problem.from_data(X, y, lam=0.02, radius=6.0)
    solver = Sublinear(step=3e-4)
    run = start_run(problem, solver)
    gaps = []
    for steps in (100, 2000, 40_000):
        solver.advance(run, steps)
        point = solver.points(run)[0]
        gaps.append(certify(problem, point.U, point.V).gap)
    assert gaps[2] < 0.5 * gaps[1] < 0.5 * gaps[0]
    assert gaps[2] < 0.1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"loss": "softmax"}, "loss='hinge'"),
        ({"penalty": "group"}, "penalty='l1'"),
        ({"penalty_factor": np.linspace(1, 2, 9)}, "leave radius out"),
        ({"penalty_factor": np.r_[0.0, np.ones(8)], "radius": None}, "penalty_factor"),
    ],
)
def test_refusals_name_argument_and_remedy(arguments, words):
    problem = make_problem(n=11, d=9, k=7, **arguments)
    with pytest.raises(ValueError, match=words):
        start_run(problem, Sublinear())
