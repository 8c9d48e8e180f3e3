"""What the Newton steps do for the hinge loss on sparse data, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.design import make_design
from fenchel.kernels.curvature import residual_rows
from fenchel.losses import get_loss
from fenchel.losses.base import Loss
from fenchel.problem import Problem
from fenchel.solvers import along_path, proximal_newton, working_set
from fenchel.solvers.base import Start
from fenchel.solvers.class_newton import Blocks
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_set import Columns, Entries, violators


def sparse_rows(rng: np.random.Generator, n: int, k: int, size: int) -> np.ndarray:
    """Rows of the simplex with few non-zeros."""
    V = np.zeros((n, k))
    for i in range(n):
        V[i, rng.choice(k, size, replace=False)] = rng.dirichlet(np.ones(size))
    return V


def text(lam: float, loss: str = "hinge") -> Problem:
    rng = np.random.default_rng(3)
    n, d, k = 300, 80, 6
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.05)
    y = np.argmax(X @ rng.standard_normal((d, k)) + 0.1 * rng.standard_normal((n, k)), axis=1)
    return Problem.from_data(sp.csr_array(X), y, loss=loss, lam=lam, classes=np.arange(k))


@pytest.mark.parametrize("k", [2, 7, 75])
@pytest.mark.parametrize("eta", [0.05, 3.0, 1e4])
def test_the_smoothed_hinge_loss_is_that_of_its_proximal_step(k: int, eta: float) -> None:
    rng = np.random.default_rng(k)
    n, loss = 40, get_loss("hinge")
    V0, Z, y = sparse_rows(rng, n, k, 2), rng.standard_normal((n, k)), rng.integers(0, k, n)
    Z[np.arange(10), y[:10]] += 9.0 + 3.0 / eta  # far on the right side
    V, expected = np.empty((n, k)), np.empty((n, k))
    losses = Loss.smoothed(loss, V0, Z, eta, y, expected)
    for before in (np.zeros((n, k)), rng.random((n, k)), expected):
        V[:] = before  # whatever support it begins with
        found = loss.smoothed(V0, Z, eta, y, V)
        np.testing.assert_allclose(V, expected, atol=1e-9)
        np.testing.assert_array_equal(V[:10], np.eye(k)[y[:10]])  # what one pass tells
        np.testing.assert_allclose(V.sum(axis=1), 1.0, rtol=1e-9)
        np.testing.assert_allclose(found, losses, atol=1e-9)
    Z[3, 0] = np.nan
    assert np.isnan(loss.smoothed(V0, Z, eta, y, V)[3])  # no row is taken for settled


@pytest.mark.parametrize("k", [2, 7, 75])
def test_the_hinge_loss_is_that_of_its_margins(k: int) -> None:
    """To the last bit, whatever the scores: the certificate is built on it."""
    rng = np.random.default_rng(k)
    n, loss = 60, get_loss("hinge")
    Z, y = rng.standard_normal((n, k)) * 10.0 ** rng.integers(-8, 8, (n, 1)), np.arange(n) % k
    Z[0, 0], Z[1, -1], Z[2, 0], Z[3, -1], Z[4] = np.nan, np.nan, np.inf, -np.inf, np.inf
    Z[5, 0] = np.nan  # before the true class
    with np.errstate(invalid="ignore"):
        expected = loss.margins(Z, y).max(axis=1) - Z[np.arange(n), y]
    np.testing.assert_array_equal(loss.value(Z, y), expected)
    np.testing.assert_array_equal(loss.value(np.asfortranarray(Z), y), expected)


def test_the_centre_of_a_smaller_penalty_stays_in_the_simplices() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 3
    problem = Problem.from_data(X, y, lam=0.02)
    solver = ProximalNewton()
    state = solver.init(problem, None, rng, 1)
    solver.advance(state, 3)
    V, lost = state.V.copy(), problem.loss.value(state.Z, y) > along_path.SETTLED
    solver.follow(state, problem.with_penalty(0.01), Start(np.zeros((5, 3))), rng, 1)
    Y = np.eye(3)[y]
    assert lost.any()
    assert not lost.all()
    expected = np.where(lost[:, None], V, 0.5 * (V + Y))
    np.testing.assert_allclose(state.centre, expected, atol=1e-15)


@pytest.mark.parametrize("positive", [False, True])
def test_products_with_few_non_zeros_of_v(positive: bool, monkeypatch) -> None:
    """Violated constraints and norms read off the rows of a sparse V, and off all of it."""
    monkeypatch.setattr(working_set, "FEW", 0.1)
    rng = np.random.default_rng(8)
    n, d, k = 50, 900, 70
    X = sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3))
    y = rng.integers(0, k, n)
    problem = Problem.from_data(
        X, y, loss="hinge", lam=0.02, positive=positive, fit_intercept=True, classes=np.arange(k)
    )
    V = sparse_rows(rng, n, k, 4)
    R = problem.weights[:, None] * (V - np.eye(k)[y])
    pointer, klass, value = residual_rows(V, problem.y, problem.weights)
    found = sp.csr_array((value, klass, pointer), shape=V.shape)
    np.testing.assert_allclose(found.toarray(), R, atol=1e-17)
    assert (value != 0.0).all()
    G = problem.constrained_part(problem.design.rmatmul(R))
    bound = 0.02 * problem.penalty_factor[:, None]
    feature, klass, excess, scale = violators(problem, V, 10**6)
    assert set(zip(feature, klass, strict=True)) == set(zip(*np.nonzero(bound < G), strict=True))
    assert len(feature) == len(set(zip(feature, klass, strict=True))) > 1024
    np.testing.assert_allclose(excess, (G - bound)[feature, klass], atol=1e-15)
    assert scale == pytest.approx(0.02 / G[:-1].max())
    norms = problem.gradient_row_norms(sp.csr_array(V))
    np.testing.assert_allclose(norms, G.max(axis=1), atol=1e-15)


def test_norms_of_a_sparse_v_that_is_not_a_number_are_not() -> None:
    X = sp.csr_array(np.ones((3, 2)))
    problem = Problem.from_data(X, [0, 1, 1], loss="hinge", lam=0.1, classes=np.arange(50))
    V = sp.csr_array(([1.0, np.nan, 1.0], ([0, 1, 2], [0, 1, 1])), shape=(3, 50))
    assert np.isnan(problem.gradient_row_norms(V)).all()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_way_along_a_step(make) -> None:
    rng = np.random.default_rng(0)
    X, S = rng.standard_normal((9, 5)), rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.5)
    entries, Z = Entries.of(S), rng.standard_normal((9, 3))
    expected = Z + 0.75 * X @ S
    move = Columns.of(make_design(make(X))).along(Z, entries, entries.u)
    move(1.0)
    move(-0.25)
    np.testing.assert_allclose(Z, expected, atol=1e-13)


def counted(monkeypatch, name: str) -> list[int]:
    calls: list[int] = []
    method = getattr(ProximalNewton, name)

    def count(self, *args):
        calls.append(1)
        return method(self, *args)

    monkeypatch.setattr(ProximalNewton, name, count)
    return calls


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_an_iteration_ends_after_a_step_that_took_long(loss: str, monkeypatch) -> None:
    """And the next goes on from there: the solution is the same."""
    problem = text(1e-3, loss)
    newton, by_class = counted(monkeypatch, "_newton"), counted(monkeypatch, "_class_step")
    solver = ProximalNewton()

    def steps(n_iterations: int) -> list[int]:
        state = solver.init(problem, None, np.random.default_rng(0), 1)
        made = []
        for _ in range(n_iterations):
            before = len(newton) + len(by_class)
            solver.advance(state, 1)
            made.append(len(newton) + len(by_class) - before)
        return made

    assert max(steps(15)) > 2
    monkeypatch.setattr(proximal_newton, "LONG", 0)
    monkeypatch.setattr(proximal_newton, "LONG_FOR_EACH", 0)
    assert max(steps(15)) == 1
    assert newton
    assert by_class
    result = fenchel.solve(
        problem.design.X, problem.y, loss=loss, lam=1e-3, classes=np.arange(6),
        solver="proximal-newton", tol=1e-5, max_iter=300,
    )  # fmt: skip
    assert result.status == "converged"


def test_single_classes_come_first_for_the_hinge_loss_until_the_centre_moves(monkeypatch) -> None:
    problem, solver = text(1e-3), ProximalNewton()
    by_class = counted(monkeypatch, "_class_step")
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    eta = state.eta
    while state.eta == eta:
        assert state.by_class is not None
        solver.advance(state, 1)
    n_steps = len(by_class)
    assert n_steps > 3
    assert state.by_class.slow
    solver.advance(state, 5)
    assert len(by_class) == n_steps
    point = solver.points(state)[0]
    warm = solver.init(problem, Start(point.U, point.V), np.random.default_rng(0), 1)
    assert warm.by_class is None


def test_the_blocks_of_a_smoothed_loss_count_the_true_class(monkeypatch) -> None:
    """At U = 0 it has no mass, but it will."""
    problem, solver = text(1e-3), ProximalNewton()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    assert (state.V[np.arange(problem.n), problem.y] == 0.0).all()
    seen = []
    monkeypatch.setattr(
        "fenchel.solvers.class_newton.kernels.class_curvature",
        lambda h, part, scale, *_: seen.append(scale * h),
    )
    entries = Entries(np.arange(3), np.zeros(3, np.int64), np.zeros(3))
    Blocks.of(problem, state.columns, entries, state.V, 2.0)
    np.testing.assert_array_equal(seen[0], np.full((problem.n, problem.k), 2.0))


def test_the_first_newton_step_at_a_centre_has_the_curvature_of_its_support(monkeypatch) -> None:
    problem, solver = text(1e-3), ProximalNewton()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    seen = []
    packs = Columns.packs

    def see(columns, entries, h):
        seen.append((state.eta, h.copy(), state.V.copy(), state.centre.copy()))
        return packs(columns, entries, h)

    monkeypatch.setattr(Columns, "packs", see)
    first, eta = True, state.eta
    solver.advance(state, 12)
    lost = 0
    for step, h, V, centre in seen:
        first, eta = step != eta, step
        support = (V > 0.0) | (centre > 0.0) if first else V > 0.0
        np.testing.assert_array_equal(h, support.astype(float))  # in units of eta
        lost += int(first and (support & (V == 0.0)).any())
    assert lost > 1


@pytest.mark.parametrize("length", [9.0, 30.0, 3000.0])
def test_a_step_that_is_too_long_ends_at_the_lowest_point_of_a_parabola(length, monkeypatch):
    """With a sparse X, where an evaluation is dear; with a dense one it is halved but on paths."""
    problem, solver, tried = text(0.002), ProximalNewton(), []
    shorter = ProximalNewton._shorter

    def noted(state, t, change, slope):
        tried.append((t, change, slope, shorter(state, t, change, slope)))
        return tried[-1][-1]

    monkeypatch.setattr(ProximalNewton, "_shorter", staticmethod(noted))
    monkeypatch.setattr(proximal_newton, "MANY_SCORES", problem.n * problem.k)
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver._look(state)
    _, g, penalty = state.subgradient()
    s = -length * np.sign(g) * np.maximum(np.abs(g) - penalty, 0.0) / np.abs(g).max()
    before = state.objective()
    t = solver._move(state, s, g, penalty)
    assert tried
    for last, change, slope, new in tried:
        x = np.linspace(0.1 * last, 0.5 * last, 2001)
        parabola = slope * x + (change - slope * last) * (x / last) ** 2
        assert new == pytest.approx(x[np.argmin(parabola)], abs=2e-4 * last)
    assert t == tried[-1][-1]
    assert len(tried) <= np.log2(1.0 / t)  # no more than by halves
    assert state.objective() < before
    U = state.entries.matrix(state.entries.u, (problem.d, problem.k))
    np.testing.assert_allclose(state.Z, problem.design.matmul(U), atol=1e-12)
    monkeypatch.setattr(proximal_newton, "MANY_SCORES", problem.n * problem.k + 1)
    assert shorter(state, 0.25, 1.0, -1.0) == 0.125
    monkeypatch.setattr(proximal_newton, "MANY_SCORES", 0)
    assert shorter(state, 0.25, 1.0, -1.0) < 0.1
    assert shorter(state, 0.25, np.nan, -1.0) == shorter(state, 0.25, np.inf, -1.0) == 0.125
    state.columns = Columns.of(make_design(problem.design.X.toarray()))
    assert shorter(state, 0.25, 1.0, -1.0) == 0.125
    state.on_path = True
    assert shorter(state, 0.25, 1.0, -1.0) < 0.1


def test_steps_that_end_at_a_parabola_come_to_the_solution(monkeypatch) -> None:
    """Damping follows from how much of a step was gone, whatever type that part has."""
    monkeypatch.setattr(proximal_newton, "MANY_SCORES", 0)
    problem, found = text(0.002), []
    shorter = ProximalNewton._shorter
    monkeypatch.setattr(
        ProximalNewton, "_shorter", staticmethod(lambda *a: found.append(shorter(*a)) or found[-1])
    )
    result = fenchel.solve(
        problem.design.X, problem.y, lam=problem.lam, solver="proximal-newton", tol=1e-6
    )
    assert result.status == "converged"
    assert found
    assert {type(t) for t in found} == {float}
