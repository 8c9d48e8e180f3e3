"""The kernels of steps on single classes against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax, xlogy

from fenchel.design import make_design
from fenchel.kernels.class_blocks import (
    class_curvature,
    class_steps,
    curved_rows,
    lasting,
    one_over_row_sums,
    products_at,
    sparse_class_steps,
    sparse_diagonals,
)
from fenchel.kernels.softmax import entropy_rows, softmax_rows
from fenchel.losses import get_loss
from fenchel.problem import Problem
from fenchel.solvers import working_set
from fenchel.solvers.class_newton import Progress, costs
from fenchel.solvers.working_set import HESSIAN_ENTRIES, Columns, Entries, violators


@pytest.fixture
def case():
    rng = np.random.default_rng(4)
    n, d, k = 40, 30, 4
    X = rng.standard_normal((n, d))
    V = softmax(rng.standard_normal((n, k)), axis=1)
    w = rng.random(n)
    U = np.zeros((d, k))
    U[:25, 0] = rng.standard_normal(25)  # a block large enough for BLAS
    U[[1, 4, 7], 1] = 1.0
    U[[0, 2], 3] = -1.0  # and no entry of class 2
    return X, V, w / w.sum(), Entries.of(U), Columns.of(make_design(X)), rng


def diagonal(V: np.ndarray, w: np.ndarray) -> np.ndarray:
    return w[:, None] * (V - V**2 / V.sum(axis=1, keepdims=True))


def test_class_curvature_is_the_diagonal_of_the_hessian_and_a_part_of_its_mean(case) -> None:
    _, V, w, _, _, rng = case
    n = V.shape[0]
    H = V * rng.random((n, 1))  # rows of any sum
    H[3] = 0.0
    y = np.where(np.arange(n) % 2, 2, 3)
    classes = np.array([0, 3])
    out = np.empty((2, n))
    part = np.empty(n)
    one_over_row_sums(0.5 * H, part)
    class_curvature(0.5 * H, part, 2.0, y, w, classes, 0.2, True, out)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(diagonal(H, w))[:, classes].T
        p = H[:, 3] / H.sum(axis=1)
    # the bound of the logistic function in place of p (1 - p), for samples of the class
    z = np.log(p / (1.0 - p))
    bound = np.tanh(z / 2.0) / (2.0 * z)
    grows = (y == 3) & (np.arange(n) != 3) & (p < 0.499)
    assert 0 < grows.sum() < (y == 3).sum() - 1
    expected[1] *= np.where(grows, bound / (p * (1.0 - p)), 1.0)
    expected = expected + 0.2 * expected.sum(axis=1, keepdims=True) * w
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_the_curvature_of_a_true_class_with_hardly_any_mass_is_finite() -> None:
    """Its factor would overflow at the smallest numbers, and a step be not a number."""
    H = np.array([[5e-324, 1.0], [0.0, 1.0], [0.5, 0.5]])
    out = np.empty((1, 3))
    part, y = np.ones(3), np.zeros(3, np.intp)
    class_curvature(H, part, 1.0, y, np.ones(3), np.array([0]), 0.0, True, out)
    z = np.log(1e-300)
    np.testing.assert_allclose(out[0], [np.tanh(z / 2) / (2 * z)] * 2 + [0.25], rtol=1e-12)


def test_the_lasting_curvature_bounds_the_logistic_loss_upwards() -> None:
    for start in (-20.0, -3.0, -1e-4, 0.0, 2.0, 15.0):
        z = np.linspace(start, 30.0, 2001)
        p = 1.0 / (1.0 + np.exp(-start))
        curvature = lasting(p) * p * (1.0 - p)
        above = np.log1p(np.exp(start)) + p * (z - start) + 0.5 * curvature * (z - start) ** 2
        assert (np.logaddexp(0.0, z) <= above + 1e-6).all()
        assert curvature <= 0.25 + 1e-6


def blocks_of(case) -> tuple[list[np.ndarray], tuple]:
    X, V, w, entries, columns, _ = case
    classes, first = np.unique(entries.klass, return_index=True)
    bounds = np.append(first, entries.klass.size)
    offset = np.concatenate([[0], np.cumsum(np.diff(bounds) ** 2)])
    h = np.ascontiguousarray(diagonal(V, w)[:, classes].T)
    values = columns.blocks(entries, h)
    np.testing.assert_array_equal(entries.offset, offset)
    expected = []
    for t in range(classes.size):
        M = X[:, entries.feature[bounds[t] : bounds[t + 1]]]
        expected.append(M.T @ (h[t][:, None] * M))
    return expected, (values, offset, bounds)


def test_blocks_are_those_of_the_hessian(case) -> None:
    expected, (values, _, _) = blocks_of(case)
    np.testing.assert_allclose(values, np.concatenate([K.ravel() for K in expected]), atol=1e-14)


def test_class_steps_minimise_every_block(case) -> None:
    """To the optimality conditions, with a bound below for some entries."""
    *_, entries, _, rng = case
    blocks, (values, offset, bounds) = blocks_of(case)
    size, scale = entries.u.size, 1.7
    blocks = [K + 0.1 * np.eye(len(K)) for K in blocks]
    values = np.concatenate([K.ravel() for K in blocks])
    g, u = 0.3 * rng.standard_normal(size), np.where(rng.random(size) < 0.5, entries.u, 0.0)
    penalty = np.full(size, 0.1)
    below = np.where(rng.random(size) < 0.3, np.inf, penalty)
    u = np.where(np.isinf(below), np.abs(u), u)
    s = np.empty(size)
    quadratic = class_steps(values, offset, bounds, scale, g, u, penalty, below, 10_000, 1e-13, s)
    K = np.zeros((size, size))
    for t, block in enumerate(blocks):
        K[bounds[t] : bounds[t + 1], bounds[t] : bounds[t + 1]] = block
    slope, new = g + scale * K @ s, u + s
    assert (new[np.isinf(below)] >= 0.0).all()
    np.testing.assert_allclose(slope[new > 0], -penalty[new > 0], atol=1e-8)
    np.testing.assert_allclose(slope[new < 0], penalty[new < 0], atol=1e-8)
    zero = slope[new == 0]
    assert (zero >= -penalty[new == 0] - 1e-8).all()
    assert (zero <= below[new == 0] + 1e-8).all()
    assert 0 < np.count_nonzero(new) < size
    assert quadratic == pytest.approx(s @ K @ s)


def test_steps_on_sparse_data_are_those_on_dense_data(case) -> None:
    X, V, w, entries, _, rng = case
    X[rng.random(X.shape) < 0.6] = 0.0
    X[:, entries.feature[2]] = 0.0
    columns = Columns.of(make_design(X))
    _, (values, offset, bounds) = blocks_of((X, V, w, entries, columns, rng))
    csc = Columns.of(make_design(sp.csr_array(X))).data[:3]
    h = np.ascontiguousarray(diagonal(V, w)[:, np.unique(entries.klass)].T)
    g, penalty = 0.3 * rng.standard_normal(entries.u.size), np.full(entries.u.size, 0.02)
    below = np.where(rng.random(entries.u.size) < 0.3, np.inf, penalty)
    u = np.where(np.isinf(below), 0.0, entries.u)
    own, added = np.empty(u.size), 0.1 * rng.random(u.size)
    sparse_diagonals(*csc, entries.feature, bounds, h, own)
    for low, high, first in zip(bounds, bounds[1:], offset, strict=False):
        places = first + np.arange(high - low) * (high - low + 1)  # on its diagonal
        np.testing.assert_allclose(own[low:high], values[places], atol=1e-14)
        added[low:high][values[places] == 0.0] = 0.0
        values[places] += added[low:high]
    for sweeps, tol in ((1, 0.0), (7, 0.1)):
        s, t = np.empty(u.size), np.empty(u.size)
        args = 1.3, g, u, penalty, below, sweeps, tol
        expected = class_steps(values, offset, bounds, *args, s)
        of_columns = *csc, entries.feature, bounds, h, own + added, added
        found = sparse_class_steps(*of_columns, *args, t)
        np.testing.assert_allclose(t, s, rtol=1e-9, atol=1e-12)
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_limit_on_the_sweeps_is_kept(case) -> None:
    *_, entries, _, rng = case
    _, (values, offset, bounds) = blocks_of(case)
    g, zero = rng.standard_normal(entries.u.size), np.zeros(entries.u.size)
    found = []
    for sweeps, tol in ((1, 0.0), (50, 1.0), (2, 0.0)):
        s = np.empty(entries.u.size)
        class_steps(values, offset, bounds, 1.0, g, zero, zero, zero, sweeps, tol, s)
        found.append(s)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


@pytest.mark.parametrize("size", [3, 40])
def test_gradients_at_entries_of_dense_data(case, size: int) -> None:
    X, V, w, entries, columns, _ = case
    entries = Entries(entries.feature[-size:], entries.klass[-size:], entries.u[-size:])
    R = w[:, None] * V
    expected = (X.T @ R)[entries.feature, entries.klass]
    np.testing.assert_allclose(columns.dense_gradient(entries, R), expected, atol=1e-14)
    out = np.empty(expected.size)
    products_at(X.T.copy(), R.T.copy(), entries.feature, entries.klass, out)
    np.testing.assert_allclose(out, expected, atol=1e-14)


@pytest.mark.parametrize("nonzeros", [4, 30])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_products_with_few_and_with_many_steps(case, make, nonzeros: int) -> None:
    X, *_, entries, _, rng = case
    columns = Columns.of(make_design(make(X)))
    s = np.zeros(entries.u.size)
    s[:nonzeros] = rng.standard_normal(s[:nonzeros].size)
    S = entries.matrix(s, (X.shape[1], 4)).toarray()
    np.testing.assert_allclose(columns.product(entries, s, 4), X @ S, atol=1e-13)
    Z = rng.standard_normal((X.shape[0], 4))
    expected = Z + X @ S
    columns.add_product(Z, entries, s)
    np.testing.assert_allclose(Z, expected, atol=1e-13)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_gradients_at_entries_are_those_of_the_problem(case, make) -> None:
    X, V, w, entries, _, rng = case
    X[rng.random(X.shape) < 0.5] = 0.0
    y = np.arange(X.shape[0]) % 4
    problem = Problem.from_data(make(X), y, lam=0.1, sample_weight=w)
    columns = Columns.of(problem.design)
    expected = problem.gradient(V)[entries.feature, entries.klass]
    found = columns.gradient_of_dense(entries, problem, V)
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize(
    "certain", [0, 0.1, 0.6, 1], ids=["no row at a corner", "few", "most", "all"]
)
@pytest.mark.parametrize("at_a_time", [HESSIAN_ENTRIES, 30], ids=["at once", "in parts"])
def test_the_dense_hessian_is_that_of_the_loss(
    case, certain: float, at_a_time: int, monkeypatch
) -> None:
    monkeypatch.setattr(working_set, "HESSIAN_ENTRIES", at_a_time)
    monkeypatch.setattr(working_set, "COPIED_ENTRIES", 2 * at_a_time)
    monkeypatch.setattr(working_set, "LEAST_SAMPLES", 1)
    X, V, w, entries, columns, _ = case
    V[: int(certain * V.shape[0])] = np.eye(V.shape[1])[1]
    H = columns.dense_hessian(entries, V, w)
    for e, (j, l) in enumerate(zip(entries.feature, entries.klass, strict=True)):
        for f, (i, m) in enumerate(zip(entries.feature, entries.klass, strict=True)):
            h = V[:, l] * (float(l == m) - V[:, m])  # rows of V sum to one
            assert H[e, f] == pytest.approx(float((w * h * X[:, j]) @ X[:, i]), abs=1e-13)


def test_rows_with_curvature_have_more_than_one_class() -> None:
    H = np.array([[0.2, 0.0, 0.3], [0.0, 0.7, 0.0], [0.0, 0.0, 0.0], [1e-12, 1.0, 0.0]])
    sums, rows = curved_rows(H, 1e-9)
    np.testing.assert_array_equal(sums, H.sum(axis=1))
    np.testing.assert_array_equal(rows, [0])
    np.testing.assert_array_equal(curved_rows(H, 1e-15)[1], [0, 3])


def test_the_hessian_in_single_precision_is_as_good_for_features_of_any_size(case) -> None:
    """Squares of such features overflow in single precision, or vanish."""
    X, V, w, entries, columns, _ = case
    scale = np.logspace(-30, 30, X.shape[1])
    scaled = Columns.of(make_design(X * scale))
    size = scale * np.sqrt(w @ X**2)
    H = scaled.dense_hessian(entries, V, w, size)
    unit = scale[entries.feature] * scale[entries.feature][:, None]
    assert H.dtype == np.float64
    np.testing.assert_allclose(H / unit, columns.dense_hessian(entries, V, w), atol=1e-5)
    assert not np.array_equal(H, scaled.dense_hessian(entries, V, w))


def test_the_product_of_a_sparse_x_and_a_sparse_u() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 7)) * (rng.random((20, 7)) < 0.4)
    U = rng.standard_normal((7, 5)) * (rng.random((7, 5)) < 0.3)
    design = make_design(sp.csr_array(X))
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array):
        np.testing.assert_allclose(design.matmul(kind(U)), X @ U, atol=1e-14)
    single = sp.csr_array(U.astype(np.float32))
    np.testing.assert_allclose(design.matmul(single), X @ U.astype(np.float32), atol=1e-14)


@pytest.mark.parametrize("least", [0.0, 0.45])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_violators_of_a_dense_and_of_a_sparse_v(
    make, positive: bool, least: float, monkeypatch
) -> None:
    monkeypatch.setattr(working_set, "MANY_BLAS", 0.5)  # of three classes a third is little
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 8)), np.arange(30) % 3
    X[:, 3] *= 1e-3  # cannot violate anything
    problem = Problem.from_data(
        make(X), y, loss="softmax", lam=0.05, positive=positive, fit_intercept=True
    )
    V = softmax(2.0 * rng.standard_normal((30, 3)), axis=1)
    V[(least > V) & (V.max(axis=1, keepdims=True) > V)] = 0.0
    V /= V.sum(axis=1, keepdims=True)
    R = problem.weights[:, None] * (V - np.eye(3)[problem.y])
    np.testing.assert_allclose(problem.residual(V, 0, 3), R, atol=1e-16)
    np.testing.assert_allclose(problem.residual(V, 1, 3), R[:, 1:], atol=1e-16)
    feature, klass, excess, scale = violators(problem, V, 10**6)
    G = problem.constrained_part(problem.design.rmatmul(R))
    bound = 0.05 * problem.penalty_factor[:, None]
    assert set(zip(feature, klass, strict=True)) == set(zip(*np.nonzero(bound < G), strict=True))
    np.testing.assert_allclose(excess, (G - bound)[feature, klass], atol=1e-15)
    assert scale == pytest.approx(min(1.0, 0.05 / G[:-1].max()))
    assert 0 < len(feature) < G.size
    norms = problem.gradient_row_norms(V)
    np.testing.assert_allclose(norms, G.max(axis=1), atol=1e-15)


def test_the_norm_of_what_is_not_a_number_is_not() -> None:
    X = sp.csr_array(np.ones((3, 2)))
    problem = Problem.from_data(X, [0, 1, 1], loss="softmax", lam=0.1)
    V = np.array([[0.5, 0.5], [np.nan, 1.0], [0.5, 0.5]])
    assert np.isnan(problem.gradient_row_norms(V)).all()


def test_room_for_violators_grows() -> None:
    rng = np.random.default_rng(2)
    X = sp.csr_array(rng.standard_normal((20, 900)))
    problem = Problem.from_data(X, np.arange(20) % 4, loss="softmax", lam=1e-6)
    V = softmax(rng.standard_normal((20, 4)), axis=1)
    feature, klass, excess, _ = violators(problem, V, 10**6)
    assert feature.size > 3000
    G = np.abs(problem.gradient(V))
    np.testing.assert_allclose(excess, G[feature, klass] - 1e-6, atol=1e-15)


def test_softmax_rows_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    for k in (1, 3, 50):
        Z = 30.0 * rng.standard_normal((200, k))
        Z[0] = 1e3 * rng.standard_normal(k)
        y = rng.integers(k, size=200)
        losses, V = np.empty(200), np.empty((200, k))
        softmax_rows(Z, y, losses, V)
        np.testing.assert_allclose(V, softmax(Z, axis=1), rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(
            losses, -log_softmax(Z, axis=1)[np.arange(200), y], rtol=1e-13, atol=1e-13
        )
        out = np.empty(200)
        entropy_rows(V, out)
        np.testing.assert_allclose(out, xlogy(V, V).sum(axis=1), rtol=1e-12, atol=1e-15)


def test_the_loss_of_scores_that_are_not_finite_is_not() -> None:
    Z = np.array([[0.0, np.nan, 1.0], [np.inf, 0.0, 0.0], [1.0, 2.0, 3.0]])
    losses = get_loss("softmax").value(Z, np.zeros(3, dtype=np.intp))
    assert not np.isfinite(losses[:2]).any()
    assert np.isfinite(losses[2])


def test_a_slow_look_is_given_up_once_it_has_cost_a_newton_step() -> None:
    progress = Progress()
    progress.looked(1.0, True, cost=1.0, newton=1.5)
    assert not progress.slow  # nothing to compare with
    progress.looked(0.9, False, cost=1.0, newton=1.5)
    assert not progress.slow  # the non-zeros have not settled
    progress.looked(0.8, True, cost=1.0, newton=1.5)
    assert not progress.slow  # slow, but for less than a Newton step
    progress.looked(0.001, True, cost=1.0, newton=1.5)
    assert not progress.slow  # fast, which costs nothing and gives nothing back
    assert progress.spent == 1.0
    progress.looked(0.001, True, cost=1.0, newton=1.5)
    assert progress.slow


def test_gains_that_go_up_and_down_are_slow() -> None:
    progress = Progress()
    for look in range(12):
        progress.looked(1.0 + look % 2, True, cost=1.0, newton=5.0)
    assert progress.slow


def test_costs_grow_with_the_size_of_the_blocks() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 20))
    problem = Problem.from_data(X, np.arange(50) % 2, lam=0.1)
    columns = Columns.of(problem.design)
    together = Entries(np.arange(20), np.zeros(20, dtype=int), np.zeros(20))
    spread = Entries(np.arange(20), np.repeat([0, 1], 10), np.zeros(20))
    assert (
        costs(problem, columns, together, 1, False)[0]
        > costs(problem, columns, spread, 1, False)[0]
    )
    steps, newton = costs(problem, columns, together, 1, False)
    assert costs(problem, columns, together, 2, False) == (2 * steps, newton)
    assert costs(problem, columns, spread, 1, False)[1] == newton


def test_stored_values_are_counted_once_an_entry() -> None:
    X = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
    entries = Entries(np.array([0, 1, 0]), np.array([0, 0, 1]), np.zeros(3))
    assert Columns.of(make_design(X)).stored(entries) == 6
    assert Columns.of(make_design(sp.csr_array(X))).stored(entries) == 4
