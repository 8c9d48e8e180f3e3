"""Hybrid gradient steps against the same steps in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.kernels import hybrid_gradient as kernels
from fenchel.problem import Problem
from fenchel.solvers.hybrid_gradient import (
    LOOK,
    REPAIRS,
    ROUGH,
    TRIED,
    HybridGradient,
    Products,
)
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.proximal_newton import ProximalNewton


def whole(lists: tuple, columns: int) -> np.ndarray:
    """The matrix that lists of its non-zeros stand for."""
    return sp.csr_array(lists[::-1], shape=(lists[0].size - 1, columns)).toarray()


def small_problem(sparse: bool, loss: str, **options: object) -> Problem:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((23, 9)) * (rng.random((23, 9)) < 0.6)
    X[:, 3] = 0.0  # a feature that says nothing
    y = rng.integers(0, 5, 23)
    return Problem.from_data(
        sp.csr_array(X) if sparse else X, y, loss=loss, lam=0.03, classes=np.arange(5),
        sample_weight=rng.random(23), penalty_factor=1.0 + rng.random(9), **options,
    )  # fmt: skip


def twin(problem: Problem, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The last point after some steps, from the formulas with whole matrices."""
    X = problem.design.X.toarray() if problem.design.is_sparse else problem.design.X
    w, lam, c = problem.weights[:, None], problem.lam, problem.penalty_factor[:, None]
    Y = np.eye(problem.k)[problem.y]
    U, V = np.zeros((problem.d, problem.k)), np.full((problem.n, problem.k), 1.0 / problem.k)
    squares = (w * X**2).sum(axis=0)[:, None]
    scale = 1.0 / np.where(squares > 0, squares, 1.0)
    omega, eta, tried = 0.7 * problem.at_zero * np.sqrt(problem.k), 1.0, TRIED
    pace = np.ones(problem.k)
    origin, sums, total, restart_gap = (U, V), (0.0, 0.0), 0.0, np.inf

    def gap(U: np.ndarray, V: np.ndarray) -> float:
        G = problem.constrained_part(X.T @ (w * (V - Y)))
        shrink = min(1.0, (lam * c / np.maximum(G, 1e-300)).min())
        return problem.primal(U) + shrink * problem.conjugate(V)

    for step in range(1, steps + 1):
        while True:
            tau, sigma = eta * omega * scale * pace, eta / omega
            W = U - tau * (X.T @ (w * (V - Y)))
            U_new = np.sign(W) * np.maximum(np.abs(W) - tau * lam * c, 0.0)
            if problem.positive:
                U_new = np.maximum(W - tau * lam * c, 0.0)
            V_new = problem.loss.prox_euclidean(V, X @ (2 * U_new - U), sigma, problem.y)
            dU, dV = U_new - U, V_new - V
            moved = (dU**2 / scale).sum(axis=0) / omega / pace + omega * (w * dV**2).sum(axis=0)
            crossed = (w * dV * (X @ dU)).sum(axis=0)
            limit = moved.sum() / (2 * abs(crossed.sum()))
            wrong = moved < 2 * eta * abs(crossed)
            pace = np.where(wrong, np.maximum(0.7 * pace, 0.05), np.minimum(1.02 * pace, 1.0))
            used, tried = eta, tried + 1
            eta = min((1 - (tried + 1) ** -0.3) * limit, (1 + (tried + 1) ** -0.6) * eta)
            if used <= limit:
                break
        U, V = U_new, V_new
        sums, total = (sums[0] + used * U, sums[1] + used * V), total + used
        if step % LOOK == 0:
            points = [(U, V), (sums[0] / total, sums[1] / total)][: 1 + (step > LOOK)]
            gaps = [gap(*point) for point in points]
            if min(gaps) <= 0.5 * restart_gap:
                restart_gap, (U, V) = min(gaps), points[int(np.argmin(gaps))]
                far_U = np.sqrt(((U - origin[0]) ** 2 / scale).sum())
                far_V = np.sqrt((w * (V - origin[1]) ** 2).sum())
                omega = np.sqrt(omega * far_U / far_V)
                origin, sums, total = (U, V), (0.0, 0.0), 0.0
    return U, V


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "sparsemax", "softmax"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("steps", [LOOK - 1, 6 * LOOK])  # without a restart, and with some
def test_steps_are_those_of_the_formulas(
    sparse: bool, loss: str, positive: bool, steps: int
) -> None:
    problem = small_problem(sparse, loss, positive=positive)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, steps)
    U, V = twin(problem, steps)
    np.testing.assert_allclose(whole(state.now.U, problem.d).T, U, atol=1e-7)
    np.testing.assert_allclose(state.now.V, V, atol=1e-7)


def test_products_and_lists() -> None:
    rng = np.random.default_rng(0)
    # with and without a rest after groups of four, and with so many rows that X is cut
    for rows, d in ((1, 13), (4, 13), (11, 13), (5000, 150)):
        A = rng.standard_normal((6, rows)) * (rng.random((6, rows)) < 0.7)
        A[2] = 0.0
        X = rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.5)
        lists, csr, out = kernels.nonzeros(A, A.size), sp.csr_array(X), np.full((6, d), np.nan)
        assert (whole(lists, rows) == A).all()
        kernels.dense_combine(X, *lists, out)
        np.testing.assert_allclose(out, A @ X, atol=1e-12)
        out[:] = np.nan
        kernels.sparse_combine(csr.indptr, csr.indices, csr.data, *lists, out)
        np.testing.assert_allclose(out, A @ X, atol=1e-12)


def test_lists_that_are_too_long_are_not_made() -> None:
    A = np.zeros((5, 70))
    A[1:4, [0, 40]], A[4, 69] = np.nan, -1.0  # a number that is none counts, too
    for most in (7, 8):
        pointer, index, _ = kernels.nonzeros(A, most)
        np.testing.assert_array_equal(pointer, [0, 0, 2, 4, 6, 7])
        np.testing.assert_array_equal(index, [0, 40, 0, 40, 0, 40, 69])
    pointer, index, _ = kernels.nonzeros(A, 3)
    assert pointer[-1] == index.size == 4  # read no further


@pytest.mark.parametrize("share", [0.05, 0.9])  # room for the list is enough, and is not
def test_a_primal_step(share: float) -> None:
    rng = np.random.default_rng(1)
    k, d = 7, 45
    U = rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.1)
    G = rng.standard_normal((k, d)) * (rng.random((k, d)) < share)
    tau, above, pace = rng.random(d) + 0.1, 0.1 * rng.random(d), rng.random(k) + 0.1
    below = np.where(rng.random(d) < 0.3, np.inf, above)
    G[3, 5], below[5] = np.nan, above[5]
    W, times = U - pace[:, None] * tau * G, pace[:, None]
    expected = np.maximum(W - times * above, 0.0) + np.minimum(W + times * below, 0.0)
    found, moved = kernels.primal_step(*kernels.nonzeros(U, U.size), G, tau, above, below, pace)
    np.testing.assert_allclose(whole(found, d), expected, atol=1e-15)  # a NaN stays
    assert np.isnan(moved[3])
    G[3, 5] = 0.0
    found, moved = kernels.primal_step(*kernels.nonzeros(U, U.size), G, tau, above, below, pace)
    np.testing.assert_allclose(moved, ((whole(found, d) - U) ** 2 / tau).sum(axis=1), rtol=1e-13)


def test_sums_over_lists() -> None:
    rng = np.random.default_rng(2)
    A, B, total = rng.standard_normal((3, 6, 9))
    U = rng.standard_normal((6, 9)) * (rng.random((6, 9)) < 0.3)
    lists = kernels.nonzeros(U, U.size)
    found = np.ones(6)
    kernels.add_pairing(*lists, A, B, found)
    np.testing.assert_allclose(found, 1.0 + (U * (B - A)).sum(axis=1))
    expected = total + 0.3 * U
    kernels.accumulate(total, 0.3, *lists)
    np.testing.assert_allclose(total, expected, rtol=1e-14)
    w, found = rng.random(6), np.ones(9)
    kernels.add_change(A, B, w, found)
    np.testing.assert_allclose(found, 1.0 + w @ (B - A) ** 2)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_rows_of_what_is_by_class(k: int) -> None:
    Z, old = np.random.default_rng(3).standard_normal((2, k, 30))
    out = np.empty((11, k))
    kernels.rows_of(Z, old, 6, 1.0, out)
    np.testing.assert_allclose(out, (2.0 * Z - old)[:, 6:17].T, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("share", [0.1, 1.0])  # by lists, and where X is dense by BLAS
def test_gradients(sparse: bool, share: float) -> None:
    problem = small_problem(sparse, "hinge")
    rng = np.random.default_rng(5)
    V = rng.random((problem.n, problem.k)) * (rng.random((problem.n, problem.k)) < share)
    V[0], V[1] = 0.0, np.eye(problem.k)[problem.y[1]]  # no entry at the label, and no other
    products, out = Products.of(problem), np.empty((problem.k, problem.d))
    lists = products.gradient(V, out)
    np.testing.assert_allclose(out.T, problem.gradient(V), atol=1e-15)
    assert (lists is None) == (share == 1.0 and not sparse)
    products.gradient_of_equal(out)
    equal = np.full_like(V, 1.0 / problem.k)
    np.testing.assert_allclose(out.T, problem.gradient(equal), atol=1e-15)


def test_products_are_in_single_precision_until_the_gap_is_small(monkeypatch) -> None:
    problem = small_problem(False, "hinge")
    monkeypatch.setattr("fenchel.solvers.hybrid_gradient.LARGE", problem.n * problem.d)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    X = [state.products.by_sample[0], state.products.by_feature[0].T]
    assert all(A.dtype == np.float32 for A in X)
    while state.gap > ROUGH * problem.at_zero:
        assert state.products.by_sample[0] is X[0]
        solver.advance(state, LOOK)
    assert state.products.by_sample[0] is problem.design.X
    np.testing.assert_array_equal(state.products.by_feature[0].T, problem.design.X)
    state.products.make_exact()  # nothing is left to be made
    assert state.products.by_sample[0] is problem.design.X


@pytest.mark.parametrize(("size", "large"), [(1e-30, 108), (1e30, 108), (1.0, 109), (1.0, 108)])
def test_data_are_left_as_they_are_out_of_range_or_where_they_are_small(
    monkeypatch, size: float, large: int
) -> None:
    monkeypatch.setattr("fenchel.solvers.hybrid_gradient.LARGE", large)
    X = np.random.default_rng(0).standard_normal((12, 9))
    X[:, 4] *= size
    problem = Problem.from_data(X, np.arange(12) % 3, lam=0.01)
    state = HybridGradient().init(problem, None, np.random.default_rng(0), 1)
    single = size == 1.0 and large == 108
    assert state.products.by_sample[0].dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "sparsemax"])
def test_a_dual_point_is_repaired_class_by_class(positive: bool, loss: str) -> None:
    problem = small_problem(False, loss, positive=positive)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, LOOK - 1)
    Y, rows = np.eye(problem.k)[problem.y], np.arange(problem.n)
    V = np.random.default_rng(1).dirichlet(np.full(problem.k, 0.3), problem.n)
    state.average.V[:] = V
    state.products.gradient(V, state.average.G)

    def worst(W: np.ndarray) -> np.ndarray:
        G = problem.constrained_part(problem.gradient(W))
        return (G / (problem.lam * problem.penalty_factor)[:, None]).max(axis=0)

    factor, W = np.ones(problem.k), V
    for _ in range(REPAIRS):
        factor = factor / np.maximum(worst(W), 1.0)
        W = Y + np.minimum(factor, factor[problem.y][:, None]) * (V - Y)
        W[rows, problem.y] = 0.0
        W[rows, problem.y] = 1.0 - W.sum(axis=1)
    value = solver._repaired(state, state.average)
    np.testing.assert_allclose(state.new.V, W, atol=1e-15)
    np.testing.assert_allclose(value, -problem.conjugate(W) / max(1.0, worst(W).max()))
    plain = -problem.conjugate(V) / worst(V).max()
    assert value > plain
    found = certify(problem, np.zeros((problem.d, problem.k)), W)
    assert found.dual >= value - 1e-12  # what a look says of it, the certificate confirms


def test_what_a_look_knows_is_what_the_certificate_says() -> None:
    """No certificate is made where a look knows that the gap is above the limit."""
    data = make_paper(40, rng=1)
    problem = Problem.from_data(data.X, data.y, lam=data.lam, classes=data.classes)
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    for _ in range(12):
        solver.advance(state, LOOK)
        (point,) = solver.points(state)
        found = certify(problem, point.U, point.V)
        np.testing.assert_allclose(found.primal, state.primal[0], rtol=1e-12)
        assert state.dual[0] - 1e-12 <= found.dual <= state.dual[0] + 1e-3 * state.gap + 1e-12
    assert solver.is_far(state, 0.99 * state.gap, 1.0)
    assert not solver.is_far(state, state.gap, 1.0)


def test_restarts_close_the_gap() -> None:
    """After a restart the average begins afresh, and the gap of the best pair falls."""
    problem = small_problem(False, "hinge")
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, LOOK)
    assert state.total == 0.0  # the first look restarts
    first = state.gap
    solver.advance(state, 30 * LOOK)
    assert state.gap < 0.05 * first


def test_hand_over_from_hybrid_gradient_to_newton_steps() -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 2000)), np.arange(60) % 3
    result = fenchel.solve(X, y, lam=1e-2, tol=1e-7)
    assert result.status == "converged"
    notes = [record.note for record in result.history if record.note]
    assert any("then Newton steps" in note for note in notes)


@pytest.mark.parametrize(("loss", "sparse"), [("softmax", False), ("hinge", True)])
def test_newton_steps_at_once_where_rough_steps_do_not_pay(loss: str, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40)) * (rng.random((60, 40)) < 0.05)
    problem = Problem.from_data(
        sp.csr_array(X) if sparse else X, rng.integers(0, 3, 60), loss=loss, lam=0.01
    )
    state = PrimalDual().init(problem, None, rng, 1)
    assert isinstance(state.method, ProximalNewton)


def test_between_looks_the_best_pair_stays_as_it_was() -> None:
    """The iterates' arrays are used again and again; the best pair is a copy."""
    problem = small_problem(False, "hinge")
    solver = HybridGradient()
    state = solver.init(problem, None, np.random.default_rng(0), 1)
    solver.advance(state, 3 * LOOK)
    seen = solver.points(state)[0]
    solver.advance(state, LOOK - 1)
    again = solver.points(state)[0]
    assert (seen.U == again.U).all()
    assert (seen.V == again.V).all()
