"""The compiled pieces of the primal-dual solver against plain numpy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf

from fenchel.design import make_design
from fenchel.kernels import l1_newton
from fenchel.kernels.block_factors import precondition
from fenchel.kernels.class_blocks import linearise, n_residuals
from fenchel.kernels.curvature import residual_columns
from fenchel.kernels.row_hessian import rearrange
from fenchel.problem import Problem
from fenchel.solvers import l1_model
from fenchel.solvers.diagonal_blocks import class_bounds
from fenchel.solvers.face import FaceMatrix
from fenchel.solvers.kept_hessian import ROW_COST, KeptHessian, Room
from fenchel.solvers.linearised import linearised
from fenchel.solvers.packed_quadratic import PackedQuadratic
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_set import Columns, Entries, many, violators
from instances import BY_NAME
from support import make_problem

N, D, K = 17, 6, 4


@pytest.fixture(params=["dense", "sparse"])
def setting(request):
    """Random data, sparse dual rows, and a working set sorted by class."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    V = rng.random((N, K)) * (rng.random((N, K)) < 0.5) + 1e-3 * np.eye(K)[np.arange(N) % K]
    V /= V.sum(axis=1, keepdims=True)
    w = rng.random(N)
    y = rng.integers(0, K, N)
    chosen = np.flatnonzero(rng.random(D * K) < 0.7)
    entries = Entries(chosen % D, chosen // D, rng.standard_normal(chosen.size))
    design = make_design(sp.csr_array(X) if request.param == "sparse" else X)
    return X, V, w / w.sum(), y, entries, Columns.of(design), rng


@pytest.fixture(params=["packed", "shared"])
def gathered(request, setting):
    """The values of X at the positions of curvature, and these positions, in both forms."""
    _, V, w, _, entries, columns, _ = setting
    if request.param == "packed":
        return columns.pack(entries, V, w)
    return columns.share(entries, V, w)


def full_hessian(X, H, w):
    """sum_i w_i (diag(h) - h h^T / sum h) (x) x x^T, features fastest."""
    total = np.zeros((K * D, K * D))
    for i in range(N):
        h = H[i]
        total += w[i] * np.kron(np.diag(h) - np.outer(h, h) / h.sum(), np.outer(X[i], X[i]))
    return total


def test_positions_are_what_entries_meet(setting) -> None:
    X, V, w, _, entries, columns, _ = setting
    V[3] = np.eye(K)[1]  # a row without curvature
    w[5] = 0.0
    (start, stop, base, position, x), (row, weight, share) = columns.pack(entries, V, w)
    curved = ((V > 0.0).sum(axis=1) > 1) & (w > 0.0)
    met = set()
    for e, (j, l) in enumerate(zip(entries.feature, entries.klass, strict=True)):
        of = slice(start[e], stop[e])
        rows = np.flatnonzero(curved & (V[:, l] > 0.0) & ((X[:, j] != 0.0) | ~columns.sparse))
        np.testing.assert_array_equal(row[position[of]], rows)
        np.testing.assert_array_equal(x[of], X[rows, j])
        np.testing.assert_allclose(weight[position[of]], w[rows] * V[rows, l], rtol=1e-15)
        np.testing.assert_allclose(share[position[of]], V[rows, l], rtol=1e-14)  # they sum to one
        met |= {(l, i) for i in rows}
    assert row.size == len(met)  # nothing else is a position, and none is there twice
    assert not base.any()


def test_gradient_and_product(setting) -> None:
    X, V, w, y, entries, columns, _ = setting
    G = X.T @ (w[:, None] * (V - np.eye(K)[y]))
    found = columns.gradient(entries, residual_columns(V, y, w, entries.classes))
    np.testing.assert_allclose(found, G[entries.feature, entries.klass], atol=1e-14)
    S = entries.matrix(entries.u, (D, K)).toarray()
    np.testing.assert_allclose(columns.product(entries, entries.u, K), X @ S, atol=1e-13)


def test_hessian_in_three_ways(setting, gathered) -> None:
    X, V, w, _, entries, _, rng = setting
    packed, positions = gathered
    damping = rng.random(entries.u.size)
    index = entries.klass * D + entries.feature
    H = full_hessian(X, V, w)[np.ix_(index, index)] + np.diag(damping)
    quadratic = PackedQuadratic(entries.klass, packed, positions, damping)
    np.testing.assert_allclose(quadratic.hessian(Room(0)), H, atol=1e-14)
    d = rng.standard_normal(index.size)
    out = np.empty_like(d)
    space = np.empty(positions[0].size), np.empty(N)
    everything = np.arange(index.size)
    l1_newton.multiply(everything, packed, positions, damping, d, *space, out)
    np.testing.assert_allclose(out, H @ d, atol=1e-13)
    quadratic.begin()
    bounds, factors = quadratic.blocks.factors(everything, damping)
    precondition(bounds, factors, d, out)
    same = entries.klass[:, None] == entries.klass[None, :]
    np.testing.assert_allclose(out, np.linalg.solve(np.where(same, H, 0.0), d), rtol=1e-9)


@pytest.mark.parametrize("gather", ["packed", "shared"])
def test_preconditioner_of_full_dense_data(gather: str) -> None:
    """Where every entry has all samples, its blocks are made two rows at a time."""
    rng = np.random.default_rng(8)
    X, V, w = rng.standard_normal((N, D)), rng.random((N, K)) + 0.1, rng.random(N)
    V /= V.sum(axis=1, keepdims=True)
    chosen = np.flatnonzero(rng.random(D * K) < 0.7)
    entries = Entries(chosen % D, chosen // D, rng.standard_normal(chosen.size))
    columns = Columns.of(make_design(X))
    if gather == "packed":
        packed, positions = columns.pack(entries, V, w)
    else:
        packed, positions = columns.share(entries, V, w)
    damping, d = rng.random(chosen.size), rng.standard_normal(chosen.size)
    everything, out = np.arange(chosen.size), np.empty(chosen.size)
    quadratic = PackedQuadratic(entries.klass, packed, positions, damping)
    quadratic.begin()
    bounds, factors = quadratic.blocks.factors(everything, damping)
    precondition(bounds, factors, d, out)
    H = full_hessian(X, V, w)[np.ix_(chosen, chosen)] + np.diag(damping)
    same = entries.klass[:, None] == entries.klass[None, :]
    np.testing.assert_allclose(out, np.linalg.solve(np.where(same, H, 0.0), d), rtol=1e-9)


def test_runs_of_a_class_in_pieces() -> None:
    klass = np.array([0, 0, 0, 2, 2, 5])
    assert class_bounds(klass, 3).tolist() == [0, 3, 5, 6]
    assert class_bounds(klass, 2).tolist() == [0, 2, 3, 5, 6]
    assert class_bounds(np.empty(0, np.int64), 2).tolist() == [0]


def test_largest_subgradient() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        g, penalty = 2.0 * rng.standard_normal(4), rng.random(4)
        u = rng.standard_normal(4) * (rng.random(4) < 0.5)
        below = np.where(rng.random(4) < 0.5, np.inf, penalty)
        outside = np.maximum(np.maximum(-g - penalty, g - below), 0.0)
        smallest = np.where(u != 0, np.abs(g + penalty * np.sign(u)), outside)
        found = l1_newton.largest_subgradient(g, u, penalty, below)
        assert found == smallest.max()
    g[1] = np.nan
    assert np.isnan(l1_newton.largest_subgradient(g, u, penalty, below))
    assert l1_newton.largest_subgradient(g[:0], u[:0], penalty[:0], below[:0]) == 0.0


def test_a_working_set_with_new_entries() -> None:
    """Sorted by class and feature, each entry once, and what was not zero keeps its value."""
    entries = Entries(np.array([1, 4, 0]), np.array([0, 0, 2]), np.array([1.0, 0.0, -2.0]))
    joined = entries.with_new(np.array([3, 0, 1]), np.array([1, 2, 0]))
    assert joined.klass.tolist() == [0, 1, 2]
    assert joined.feature.tolist() == [1, 3, 0]
    assert joined.u.tolist() == [1.0, 0.0, -2.0]
    nothing = Entries.empty().with_new(np.empty(0, np.int64), np.empty(0, np.int64))
    assert nothing.u.size == 0


def test_hessian_of_dense_data_sample_by_sample(setting) -> None:
    X, V, w, _, entries, columns, _ = setting
    if columns.sparse:
        pytest.skip("for dense data")
    w[3] = 0.0
    V[5] = np.eye(K)[1]  # one class alone: no curvature
    index = entries.klass * D + entries.feature
    room = Room(entries.u.size)
    found = KeptHessian.none(K).at(columns, entries, V, w, room)
    H = full_hessian(X, V, w)[np.ix_(index, index)]
    np.testing.assert_allclose(found.H, H, atol=1e-14)
    # from there to another V, by the samples that have changed
    other = V.copy()
    other[7], other[8], other[9] = np.eye(K)[2], V[9], V[8]
    found = found.at(columns, entries, other, w, room)
    H = full_hessian(X, other, w)[np.ix_(index, index)]
    np.testing.assert_allclose(found.H, H, atol=1e-14)
    # and to other entries: some come, some go, one class goes for good
    fewer = Entries(*(part[(entries.klass != 2) & (np.arange(index.size) % 3 > 0)] for part in
                      (entries.feature, entries.klass, entries.u)))  # fmt: skip
    for wanted in (fewer, entries):
        found = found.at(columns, wanted, V, w, room)
        index = wanted.klass * D + wanted.feature
        H = full_hessian(X, V, w)[np.ix_(index, index)]
        np.testing.assert_allclose(found.H, H, atol=1e-14)
        assert found.entries is wanted


def test_a_matrix_is_rearranged_in_its_own_room() -> None:
    """Some rows and columns go, others come in as zeros, and it may end smaller or larger."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        before, size = rng.integers(0, 8, 2)
        place = np.full(size, -1)
        kept = rng.integers(0, min(before, size) + 1)
        stays = np.sort(rng.choice(before, kept, replace=False))
        place[np.sort(rng.choice(size, kept, replace=False))] = stays
        H, room = rng.standard_normal((before, before)), rng.standard_normal(64)
        room[: before * before] = H.ravel()
        rearrange(room, before, place)
        padded = np.zeros((before + 1, before + 1))
        padded[:before, :before] = H
        expected = padded[np.ix_(place, place)]  # -1 is the last, which is zero
        np.testing.assert_array_equal(room[: size * size].reshape(size, size), expected)


@pytest.mark.parametrize("support", [2, 8], ids=["by sample", "by column"])
def test_a_hessian_grows_without_a_second_one(support: int) -> None:
    """What numpy allocates on the way from 300 entries to 600 of 1600 is far less than either."""
    rng = np.random.default_rng(1)
    n, d, k = 50, 200, 8
    columns, V, w = (
        Columns.of(make_design(rng.standard_normal((n, d)))),
        np.zeros((n, k)),
        rng.dirichlet(np.ones(n)),
    )
    for i in range(n):
        V[i, rng.permutation(k)[:support]] = rng.dirichlet(np.ones(support))
    V[3], w[4] = np.eye(k)[1], 0.0  # no curvature, no weight
    assert many(V) == (support == k)
    feature, klass = np.tile(np.arange(d), k), np.repeat(np.arange(k), d)
    few, more = (Entries(*(part[some] for part in (feature, klass, np.zeros(d * k)))) for some in
                 (np.sort(rng.permutation(d * k)[:size]) for size in (300, 600)))  # fmt: skip
    room = Room(600)
    found = KeptHessian.none(k).at(columns, few, V, w, room)
    tracemalloc.start()
    found = found.at(columns, more, V, w, room)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 0.5 * few.u.size**2 * 8
    anew = KeptHessian.none(k).at(columns, more, V, w, Room(600))
    np.testing.assert_allclose(found.H, anew.H, atol=1e-14)


def test_what_a_hessian_costs(setting, monkeypatch) -> None:
    _, V, w, _, entries, columns, _ = setting
    if columns.sparse:
        pytest.skip("for dense data")
    w[3], V[5] = 0.0, np.eye(K)[1]
    monkeypatch.setattr("fenchel.solvers.kept_hessian.many", lambda h: bool(h.all()))
    meets, curved = (V > 0)[:, entries.klass].sum(axis=1), ((V > 0).sum(axis=1) > 1) & (w > 0)
    nothing = KeptHessian.none(K)
    changed, anew, by_blas, product = nothing.work(columns, entries, V, w)
    squares = float((meets[curved] ** 2).sum())
    assert changed == anew == pytest.approx(ROW_COST / 8 * squares)
    assert by_blas == entries.u.size**2 * curved.sum() / 8
    assert product == 2 * meets[curved].sum()
    # from one with fewer entries and another V: for these entries first, then the change
    other = V.copy()
    other[7], other[8] = V[8], 0.5 * (np.eye(K)[0] + np.eye(K)[3])
    lacking = np.arange(entries.u.size) % 4 == 0
    some = Entries(*(part[~lacking] for part in (entries.feature, entries.klass, entries.u)))
    changed, again, _, _ = KeptHessian(some, other, np.empty((0, 0))).work(columns, entries, V, w)
    had, had_curved = (other > 0)[:, entries.klass].sum(axis=1), (other > 0).sum(axis=1) > 1
    had_curved &= w > 0
    new = (other > 0)[:, entries.klass[lacking]].sum(axis=1)
    work = float((new * had)[had_curved].sum())
    for i in np.flatnonzero((other != V).any(axis=1) & (w > 0)):
        work += float(meets[i] ** 2 * curved[i] + had[i] ** 2 * had_curved[i])
    assert changed == pytest.approx(ROW_COST / 8 * work)
    assert again == anew
    # where V has few zeros nothing but BLAS is thought of
    assert nothing.work(columns, entries, V + 0.1, w)[:2] == (np.inf, np.inf)


@pytest.mark.parametrize("damping", [1.0, 1e-8])
def test_a_step_on_a_face_keeps_signs_and_lowers_the_model(damping: float) -> None:
    rng = np.random.default_rng(2)
    size = 30
    M = rng.standard_normal((size, 10))
    K = M @ M.T + damping * np.eye(size)
    lengths = set()
    for _ in range(20):
        now, slope = rng.standard_normal(size), rng.standard_normal(size)
        free = rng.random(size) < 0.2
        d = np.linalg.solve(K, -slope)
        moved, product = np.empty(size), np.empty(size)
        below = np.where(np.tri(size, k=-1) > 0, K, np.nan)  # no more of it is read
        args = below, K.diagonal(), slope, now, d, free, 0.4
        l1_newton.move_on_face(*args, moved, product)
        for t in l1_model._lengths(now, d, free):
            expected = l1_model.kept_signs(now, t * d, free) - now
            if (slope + 0.5 * K @ expected) @ expected <= 0.0:
                break
        lengths.add(t)
        np.testing.assert_allclose(moved, expected, atol=1e-12 * np.abs(d).max())
        np.testing.assert_allclose(product, K @ expected, atol=1e-9 * np.abs(d).max())
    assert len(lengths) > 1


def test_a_nearly_singular_model_is_minimised() -> None:
    """More entries than rank, next to no damping: steps on a face are cut short all the time."""
    rng = np.random.default_rng(0)
    size = 120
    M = rng.standard_normal((size, 40))
    H = M @ M.T + 1e-7 * np.eye(size)
    g, u, penalty = rng.standard_normal(size), rng.standard_normal(size), np.full(size, 0.05)
    s = l1_model.minimise_dense(H, g, u, penalty, penalty, 1e-9)
    slope = g + H @ s
    smallest = np.where(
        u + s != 0, np.abs(slope + penalty * np.sign(u + s)), np.maximum(abs(slope) - penalty, 0)
    )
    assert smallest.max() <= 1e-6


def test_entries_without_penalty_may_change_their_sign() -> None:
    """And their mean over the classes, which no loss sees, stays what it was."""
    H = np.array([[1.0, -1.0, 0.3], [-1.0, 1.0, -0.3], [0.3, -0.3, 1.0]]) + 1e-9 * np.eye(3)
    g, u = np.array([2.0, -2.0, 0.0]), np.array([0.5, -0.5, 1.0])
    penalty = np.array([0.0, 0.0, 0.1])
    s = l1_model.minimise_dense(H, g, u, penalty, penalty, 1e-10)
    assert (u + s)[0] < 0.0 < (u + s)[1]
    np.testing.assert_allclose(s[0] + s[1], 0.0, atol=1e-6)
    np.testing.assert_allclose((g + H @ s)[:2], 0.0, atol=1e-9)


@pytest.mark.parametrize("u", [0.0, 1e-3], ids=["from zero", "to zero"])
def test_a_model_whose_minimum_is_zero(u: float) -> None:
    H, g, penalty = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.1, -0.1]), np.full(2, 5.0)
    s = l1_model.minimise_dense(H, g, np.full(2, u), penalty, penalty, 0.0)
    np.testing.assert_array_equal(s, -np.full(2, u))


def test_frequent_features_are_not_gathered_for_every_class() -> None:
    """A feature of all samples, in all classes: X itself is read, unless V has few non-zeros."""
    columns = Columns.of(make_design(sp.csr_array(np.ones((N, D)))))
    entries = Entries(np.tile(np.arange(2), K), np.repeat(np.arange(K), 2), np.zeros(2 * K))
    V = np.full((N, K), 1.0 / K)
    assert not columns.packs(entries, V)
    assert columns.packs(entries, np.eye(K)[np.arange(N) % K])
    half = V * (np.arange(K) < 0.5 * K)  # gathered, half of the values take less memory
    assert columns.packs(entries, half)
    many = Entries(np.tile(np.arange(4), K), np.repeat(np.arange(K), 4), np.zeros(4 * K))
    assert not columns.packs(many, half)
    packed, positions = columns.share(entries, V, np.full(N, 1.0 / N))
    assert packed[-1] is columns.data[2]
    assert positions[0].size == N * K


def test_dense_features_are_gathered_as_long_as_they_are_fewer_than_those_of_x() -> None:
    columns = Columns.of(make_design(np.ones((N, D))))
    V = np.full((N, K), 1.0 / K)
    few, many = (Entries(np.arange(m) % D, np.arange(m) // D, np.zeros(m)) for m in (D, D + 1))
    assert columns.packs(few, V)
    assert not columns.packs(many, V)
    assert columns.packs(many, np.eye(K)[np.arange(N) % K])
    packed, _ = columns.share(many, V, np.full(N, 1.0 / N))
    assert np.shares_memory(packed[-1], columns.data[0])


def test_the_dual_point_of_a_model_has_its_gradient(setting) -> None:
    """``X^T (V' - Y)`` is ``G_U + H s`` on all entries, as long as no row leaves the simplex."""
    X, _, w, y, entries, columns, rng = setting
    problem = Problem.from_data(X, y, loss="softmax", lam=0.1, classes=range(K), sample_weight=w)
    V = rng.dirichlet(np.ones(K), N)
    s = 1e-2 * rng.standard_normal(entries.u.size)
    found, left = linearised(problem, columns, entries, s, V)
    assert left == 0
    H, everything = full_hessian(X, V, w), entries.matrix(s, (D, K)).toarray().T.ravel()
    expected = X.T @ (w[:, None] * (V - np.eye(K)[y])) + (H @ everything).reshape(K, D).T
    np.testing.assert_allclose(problem.gradient(found), expected, atol=1e-14)


def test_rows_that_leave_the_simplex_are_brought_back_and_counted() -> None:
    V = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    D = np.array([[0.1, 0.0, -0.1], [20.0, 10.0, 0.0]])
    inside = V[0] + V[0] * (D[0] - V[0] @ D[0])
    assert linearise(V, V, D) == 1
    # 0.1 + 0.1 (20 - 3), 0.1 + 0.1 (10 - 3) and a negative one
    np.testing.assert_allclose(D, [inside, [1.8 / 2.6, 0.8 / 2.6, 0.0]], atol=1e-15)


@pytest.mark.parametrize("positive", [False, True], ids=["both signs", "positive"])
@pytest.mark.parametrize("direct", [False, True], ids=["conjugate gradients", "direct"])
def test_model_is_minimised(setting, gathered, direct, positive) -> None:
    """The subgradient of the model at the answer is small, entry by entry."""
    _, _, _, _, entries, _, rng = setting
    packed, positions = gathered
    E = entries.u.size
    g, damping = rng.standard_normal(E), np.full(E, 1e-3)
    penalty = rng.random(E)
    below = np.full(E, np.inf) if positive else penalty
    before = np.maximum(entries.u, 0.0) if positive else entries.u
    quadratic = PackedQuadratic(entries.klass, packed, positions, damping)
    H = quadratic.hessian(Room(0))
    if direct:
        s = l1_model.minimise_dense(H, g, before, penalty, below, 1e-10)
    else:
        effort = l1_model.Effort(rounds=50, sweeps=5, cg=200, products=0)
        s, _ = l1_model.minimise_quadratic(
            quadratic, g, before, penalty, below, damping, 1e-10, effort
        )
    u, slope = before + s, g + H @ s
    assert not positive or (u >= 0).all()
    assert (u == 0).any()
    assert (u != 0).any()
    smallest = np.where(
        u != 0,
        np.abs(slope + penalty * np.sign(u)),
        np.maximum(np.maximum(-slope - penalty, slope - below), 0),
    )
    assert smallest.max() <= 1e-8


@pytest.mark.parametrize("name", ["sparse", "penalty-factors"])
def test_violators_are_the_violated_constraints(name: str, monkeypatch) -> None:
    problem = make_problem(BY_NAME[name])
    V = problem.loss.argmax(np.zeros((problem.n, problem.k)), problem.y)
    G = np.abs(problem.gradient(V))
    bound = problem.lam * problem.penalty_factor[:, None]
    # one class a block, so that the blocks are put together
    monkeypatch.setattr("fenchel.solvers.working_set.BLOCK_ENTRIES", 1)
    expected = set(zip(*np.nonzero(bound < G), strict=True))
    for gradient in (None, problem.gradient(V)):
        feature, klass, excess, scale = violators(problem, V, 10**6, gradient)
        assert set(zip(feature, klass, strict=True)) == expected
        np.testing.assert_allclose(excess, (G - bound)[feature, klass])
        assert scale == pytest.approx(min(1.0, (bound / G)[(G > 0) & (bound > 0)].min()))
    _, _, worst, _ = violators(problem, V, 2)
    np.testing.assert_allclose(np.sort(worst), np.sort(excess)[-2:])


def test_new_entries_join_the_non_zeros() -> None:
    entries = Entries(np.array([0, 2, 1]), np.array([0, 0, 1]), np.array([1.0, 0.0, 3.0]))
    joined = entries.with_new(np.array([0, 1]), np.array([0, 0]))
    assert joined.feature.tolist() == [0, 1, 1]
    assert joined.klass.tolist() == [0, 0, 1]
    assert joined.u.tolist() == [1.0, 0.0, 3.0]


def test_residual_columns_of_many_classes() -> None:
    """More classes than are looked at together, and labels far from the support of V."""
    rng = np.random.default_rng(6)
    n, k = 12, 75
    V, y, w = np.zeros((n, k)), rng.integers(0, k, n), rng.random(n)
    for i in range(n):
        V[i, rng.choice(k, 3, replace=False)] = rng.dirichlet(np.ones(3))
    V[0] = np.eye(k)[y[0]]
    residual = w[:, None] * (V - np.eye(k)[y])
    for classes in (np.arange(k), np.array([3, 40, 74])):
        pointer, row, value = residual_columns(V, y, w, classes)
        found = np.zeros((n, k))
        for l in range(k):
            column = slice(pointer[l], pointer[l + 1])
            assert (np.diff(row[column]) > 0).all()
            assert (value[column] != 0.0).all()
            found[row[column], l] = value[column]
        expected = np.zeros((n, k))
        expected[:, classes] = residual[:, classes]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("definite", [False, True], ids=["indefinite", "definite"])
def test_the_face_is_solved_whether_definite_or_not(definite: bool) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    K, b = A @ A.T if definite else A + A.T, rng.standard_normal(6)
    assert (np.linalg.eigvalsh(K).min() > 0) == definite
    matrix = FaceMatrix(K, np.arange(6))
    for _ in range(2):  # with the factor that is there
        np.testing.assert_allclose(matrix.solve(b), np.linalg.solve(K, b), rtol=1e-9)
    below = np.tri(6, k=-1) > 0
    np.testing.assert_array_equal(matrix.K[below], K[below])  # the rest is room for the factor
    np.testing.assert_array_equal(matrix.diagonal, K.diagonal())


@pytest.mark.parametrize("part", [0.0, 1.0], ids=["factored anew", "factor changed"])
@pytest.mark.parametrize("definite", [False, True], ids=["indefinite", "definite"])
def test_what_leaves_a_face_leaves_its_factor(definite: bool, part: float, monkeypatch) -> None:
    """The first and the last row, neighbours, and more of them after that."""
    monkeypatch.setattr("fenchel.solvers.face.FEW", part)
    factored = []
    monkeypatch.setattr(
        "fenchel.solvers.face.dpotrf", lambda *a, **o: factored.append(1) or dpotrf(*a, **o)
    )
    rng = np.random.default_rng(1)
    size = 40
    A = rng.standard_normal((size, size))
    H = A @ A.T + 1e-3 * np.eye(size) if definite else A + A.T
    face = np.sort(rng.choice(size, 30, replace=False))
    matrix = FaceMatrix(H, face)
    for leave in ([], [0, 7, 8, 29], [3], [24], list(range(0, 24, 3))):
        kept = np.setdiff1d(np.arange(face.size), leave)
        matrix.keep(kept)
        face = face[kept]
        K, b = H[np.ix_(face, face)], rng.standard_normal(face.size)
        np.testing.assert_allclose(matrix.solve(b), np.linalg.solve(K, b), rtol=1e-6)
        if definite:
            R = np.triu(matrix.K)
            np.testing.assert_allclose(R.T @ R, K, atol=1e-12 * np.abs(K).max())
    expected = 1 if definite and part > 0.0 else 5
    assert len(factored) == expected


def test_part_of_a_matrix_in_its_own_place() -> None:
    H, index = np.arange(49.0).reshape(7, 7), np.array([0, 2, 3, 6])
    expected = H[np.ix_(index, index)]
    apart, within = np.empty((4, 4)), H.ravel()[:16].reshape(4, 4)
    l1_newton.submatrix(H, index, apart)
    np.testing.assert_array_equal(apart, expected)
    l1_newton.submatrix(H, index, within)
    np.testing.assert_array_equal(within, expected)


@pytest.mark.parametrize("at_label", [0.0, 0.9], ids=["by BLAS", "row by row"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_gradient_of_all_entries(at_label: float, order: str) -> None:
    """Row by row where V is the label itself in most rows, whatever the others are."""
    rng = np.random.default_rng(5)
    n, d, k = 60, 7, 5
    y = np.arange(n) % k
    V = rng.dirichlet(np.ones(k), n)
    V[rng.random(n) < at_label] = 0.0
    V[V.sum(axis=1) == 0.0, y[V.sum(axis=1) == 0.0]] = 1.0
    V[4] = np.eye(k)[(y[4] + 1) % k]  # all on one wrong class
    X = np.array(rng.standard_normal((n, d)), order=order)
    problem = Problem.from_data(X, y, lam=0.1, sample_weight=rng.random(n))
    assert n_residuals(V, y) == np.count_nonzero(V - np.eye(k)[y])
    np.testing.assert_allclose(problem.full_gradient(V), problem.gradient(V), atol=1e-15)
    sparse = Problem.from_data(sp.csr_array(X), y, lam=0.1)
    assert sparse.full_gradient(V) is None


@pytest.mark.parametrize(
    ("by_rows", "damping", "blas"), [(3.0, 1e-4, True), (2.0, 1e-4, False), (3.0, 1e-9, False)]
)
def test_blas_makes_the_hessian_where_it_is_faster_in_its_precision(
    by_rows, damping, blas, monkeypatch
) -> None:
    problem = make_problem(BY_NAME["three-classes"], "sparsemax")
    method = ProximalNewton()
    state = method.init(problem, None, np.random.default_rng(0), 1)
    method.advance(state, 1)
    state.hessian, calls = None, []
    by_blas = Columns.dense_hessian
    monkeypatch.setattr(KeptHessian, "work", lambda *_: (np.inf, by_rows, 5.0, 1.0))
    monkeypatch.setattr(
        Columns, "dense_hessian", lambda *args: calls.append(True) or by_blas(*args)
    )
    state.dense_hessian(problem.loss.curvature(state.V, 1.0, problem.y), damping, 1e9)
    assert bool(calls) == blas
