"""Two columns for the classes that no step has worked on, against a column for every class."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.certificate import certify
from fenchel.equal_columns import EqualColumns, every_column
from fenchel.kernels.common_value import residual_beside_last
from fenchel.losses.hinge import Hinge, JointHinge
from fenchel.problem import Problem
from fenchel.solvers import alike as module
from fenchel.solvers import working_set
from fenchel.solvers.alike import Alike
from fenchel.solvers.base import Start
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.time_limit import until

N, D, K = 90, 40, 24


def make(**options) -> Problem:
    """Text of which a few classes are frequent."""
    rng = np.random.default_rng(1)
    X = rng.random((N, D)) * (rng.random((N, D)) < 0.15)
    y = np.where(rng.random(N) < 0.7, np.argmax(X[:, :4], axis=1), rng.integers(0, K, N))
    options = {"loss": "hinge", "lam": 0.01, "sample_weight": rng.random(N) + 0.1} | options
    return Problem.from_data(sp.csr_array(X), y, classes=np.arange(K), **options)


@pytest.fixture(autouse=True)
def small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no problem be too small, and the working set begin with a few entries."""
    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(working_set, "first_entries", lambda d, k, by_class: 3)


def rows_alike(known: Alike, seed: int, same: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the simplex by the columns of ``known``, and the same with all classes."""
    rng, problem, m = np.random.default_rng(seed), known.problem, known.classes.size
    full = np.empty((N, K))
    for i in range(N):
        row = rng.random(K) * (rng.random(K) < 0.6)
        row[problem.y[i]] += 0.1
        others = np.setdiff1d(np.arange(K), np.append(known.classes, problem.y[i]))
        row[others] = (rng.random() if i % 3 else 0.0) if same is None else same
        full[i] = row if same is not None else row / row.sum()
    full[7] = np.eye(K)[problem.y[7]]
    untouched = np.setdiff1d(np.arange(K), known.classes)
    small = np.empty((N, m + 2))
    for i in range(N):
        wrong = untouched[0] if untouched[0] != problem.y[i] else untouched[1]
        own = wrong if problem.y[i] in known.classes else problem.y[i]
        small[i] = [*full[i, known.classes], full[i, own], full[i, wrong]]
    return small, full


def projected(a: np.ndarray) -> np.ndarray:
    """The Euclidean projection onto the simplex, by sorting."""
    s = np.sort(a)[::-1]
    means = (np.cumsum(s) - 1.0) / np.arange(1, a.size + 1)
    return np.maximum(a - means[np.flatnonzero(s > means)[-1]], 0.0)


@pytest.mark.parametrize("eta", [0.05, 3.0, 1e4])
def test_the_smoothed_loss(eta: float) -> None:
    problem, rng = make(), np.random.default_rng(2)
    known = Alike(problem, np.array([0, 2, 3, 11]))
    centre, V0 = rows_alike(known, 3)
    small, Z = rows_alike(known, 4, same=0.0)
    Z *= 2.0
    small *= 2.0
    y, loss = known.small.y, known.small.loss
    assert isinstance(loss, JointHinge)
    assert loss.times == K - 5
    A = V0 + eta * (Z + 1.0 - np.eye(K)[problem.y])
    expected = np.array([projected(a) for a in A])
    rows = np.arange(N)
    losses = ((expected - np.eye(K)[problem.y]) * Z).sum(axis=1) + 1.0 - expected[rows, problem.y]
    losses -= ((expected - V0) ** 2).sum(axis=1) / (2.0 * eta)
    V = np.zeros_like(small)
    for before in (np.zeros_like(V), rng.random(V.shape), np.ones_like(V)):
        V[:] = before  # whatever support it begins with
        found = loss.smoothed(centre, small, eta, y, V)
        np.testing.assert_allclose(known.spread(V), expected, atol=1e-9)
        np.testing.assert_allclose(found, losses, rtol=1e-9, atol=1e-9)
    assert eta > 1.0 or (expected > 0.0).sum(axis=1).max() > K / 2
    h = (expected > 0.0).astype(float)
    for found in (loss.support(V, 1.0, y), loss.curvature(V, 1.0, y)):
        np.testing.assert_array_equal(found.sum(axis=1, dtype=float), h.sum(axis=1))
        np.testing.assert_array_equal(found[:, :4], h[:, known.classes])


def test_the_columns_of_any_class() -> None:
    known = Alike(make(), np.array([1, 2, 9]))
    small, full = rows_alike(known, 5)
    np.testing.assert_array_equal(known.spread(small), full)
    more = Alike(known.problem, np.array([0, 1, 2, 9, 20]))
    found = known.with_new(small, more)
    np.testing.assert_array_equal(more.spread(found), full)
    np.testing.assert_array_equal(found[:, -1], small[:, -1])


@pytest.mark.parametrize("positive", [False, True])
def test_what_is_violated_in_all_classes(positive: bool) -> None:
    known = Alike(make(positive=positive, lam=0.004), np.array([1, 2, 9]))
    problem = known.problem
    V, full = rows_alike(known, 6)
    column, pointer, klass, added, largest = residual_beside_last(
        V, known.small.y, problem.weights, known.classes, problem.y
    )
    rest = sp.csr_array((added, klass.astype(int), pointer), shape=full.shape)
    R = problem.weights[:, None] * (full - np.eye(K)[problem.y])
    assert added.size < 0.3 * full.size
    np.testing.assert_allclose(column[:, None] + rest.toarray(), R, atol=1e-16)
    np.testing.assert_allclose(largest, np.abs(R).max(axis=1), rtol=1e-14)
    found, expected = known.violators(V, 10**6), working_set.violators(problem, full, 10**6)
    orders = [np.lexsort((of[1], of[0])) for of in (found, expected)]
    for mine, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_allclose(mine[orders[0]], other[orders[1]], atol=1e-15)
    assert found[3] == pytest.approx(expected[3], rel=1e-12)
    assert found[0].size > 9
    assert known.violators(V, 5)[2].min() >= np.sort(expected[2])[-6]


def run(problem: Problem, *penalties: float, start: Start | None = None) -> list:
    """U, V and the value after some iterations with each penalty, and how many columns V had."""
    solver, rng = ProximalNewton(), np.random.default_rng(0)
    state, found = solver.init(problem, start, rng, 1), []
    for lam in (problem.lam, *penalties):
        if lam != problem.lam:
            problem = problem.with_penalty(lam)
            state = solver.follow(state, problem, Start(found[-1][0]), rng, 1)
        for _ in range(9):
            solver.advance(state, 1)
            (point,) = solver.points(state)
            found.append((point.U, every_column(point.V), state.value, state.V.shape[1]))
    return found


@pytest.mark.parametrize("part", [0.95, 0.3])
def test_steps_are_those_with_a_column_for_every_class(part: float, monkeypatch) -> None:
    """Also where classes come one by one, until all have their column."""
    problem, sizes = make(lam=0.02), []
    monkeypatch.setattr(module, "FEW_CLASSES", part)
    few = run(problem, 0.012)
    monkeypatch.setattr(module, "FEW_CLASSES", 0.0)
    for mine, every in zip(few, run(problem, 0.012), strict=True):
        for a, b in zip(mine[:3], every[:3], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7)
        assert every[3] == K
        sizes.append(mine[3])
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 2
    assert sizes[0] < 0.5 * K
    assert (sizes[-1] == K) == (part == 0.3)


def test_a_start_with_coefficients_alone(monkeypatch) -> None:
    problem = make()
    U = run(problem)[4][0]
    few = run(problem, start=Start(U))
    monkeypatch.setattr(module, "LARGE", 1 << 40)
    for mine, every in zip(few, run(problem, start=Start(U)), strict=True):
        np.testing.assert_allclose(mine[1], every[1], atol=1e-7)
        assert mine[3] < every[3] == K


def test_where_every_class_has_its_column(monkeypatch) -> None:
    nothing = np.empty(0, np.int64)
    assert Alike.of(make(), nothing) is not None
    cost = 1.0 - np.eye(K)
    cost[2, 3] = 2.0
    dense = make()
    dense = Problem.from_data(dense.design.X.toarray(), dense.y, lam=0.01, classes=np.arange(K))
    free = make(penalty_factor=np.arange(D) > 0)
    others = (make(loss=Hinge(cost)), make(loss="softmax"), make(fit_intercept=True), free, dense)
    for other in others:
        assert Alike.of(other, nothing) is None
    assert Alike.of(make(), np.arange(20)) is None
    monkeypatch.setattr(module, "MOST", K - 1)
    assert Alike.of(make(), nothing) is None
    state = ProximalNewton().init(
        make(), Start(np.zeros((D, K)), np.full((N, K), 1.0 / K)), np.random.default_rng(0), 1
    )
    assert state.alike is None  # any centre may have been given


def test_a_fit_is_certified_with_all_classes() -> None:
    problem = make()
    X, y = problem.design.X, problem.y
    found = fenchel.solve(X, y, lam=0.01, classes=np.arange(K), tol=1e-6)
    assert found.status == "converged"
    assert found.U.shape == (D, K)
    certificate = certify(replace(problem, weights=np.full(N, 1.0 / N)), found.U, found.V)
    assert certificate.gap <= 1e-6
    assert certificate.dual == pytest.approx(found.dual, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"positive": True}, {"lam": 1e-4}, {"radius": 0.3}])
def test_a_certificate_is_that_with_all_classes(options: dict) -> None:
    problem = make(**options)
    known = Alike(problem.with_radius(None), np.array([1, 2, 9]))
    V, full = rows_alike(known, 8)
    U = sp.csr_array((np.array([0.4, -0.2]), (np.array([3, 5]), np.array([1, 20]))), (D, K))
    for off in (1.0, 1.0 + 1e-9):  # the rows, as far as a certificate allows
        given = off * V
        found = certify(problem, U, EqualColumns(given, known))
        expected = certify(problem, U, off * full)
        assert found.dual == pytest.approx(expected.dual, rel=1e-12, abs=1e-14)
        assert found.primal == expected.primal
        assert isinstance(found.V, EqualColumns)
        np.testing.assert_allclose(found.V.toarray(), expected.V, atol=1e-15)
        np.testing.assert_array_equal(given, off * V)  # the solver's own: it goes on with it
    assert 0.0 < abs(expected.dual) < 1.0
    with pytest.raises(ValueError, match="not a dual point"):
        certify(problem, U, EqualColumns(1.001 * V, known))
    with pytest.raises(ValueError, match="other labels"):
        certify(replace(problem, y=problem.y[::-1]), U, EqualColumns(V, known))


def test_a_feature_without_penalty_asks_for_all_classes() -> None:
    known = Alike(make(), np.array([1, 2, 9]))
    problem, (V, full) = make(fit_intercept=True), rows_alike(known, 9)
    U = sp.csr_array((problem.d, K))
    found, expected = certify(problem, U, EqualColumns(V, known)), certify(problem, U, full)
    np.testing.assert_allclose(found.V, expected.V, atol=1e-15)
    assert found.dual == pytest.approx(expected.dual, rel=1e-12)


def test_what_is_handed_out_has_a_column_for_every_class() -> None:
    problem, solver = make(), ProximalNewton()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, 3)
    assert isinstance(solver.points(state)[0].V, EqualColumns)
    X, y, options = problem.design.X, problem.y, {"lam": 0.01, "classes": np.arange(K)}
    found = fenchel.solve(X, y, solver="proximal-newton", tol=1e-6, max_iter=3, **options)
    assert found.point == "last"
    assert isinstance(found.V, np.ndarray)
    assert found.V.shape == (N, K)


def test_a_survey_without_time_leaves_the_point(monkeypatch) -> None:
    """The iteration was made, and what it has found is certified."""
    monkeypatch.setattr(module, "LARGE", 1 << 40)
    monkeypatch.setattr(working_set, "BLOCK_ENTRIES", 1)
    monkeypatch.setattr(working_set, "few", lambda V: False)
    problem, solver = make(), ProximalNewton()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver._look(state)
    state.looked = True
    steps = solver._steps

    def slowly(state):
        steps(state)
        time.sleep(0.2)

    monkeypatch.setattr(solver, "_steps", slowly)
    now = time.perf_counter()
    with until(now + 0.15, now + 0.15):
        solver.advance(state, 1)
    assert state.survey is None
    assert np.count_nonzero(state.entries.u)
