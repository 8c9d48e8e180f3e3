"""Hybrid gradient steps against the same steps in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.datasets import make_paper
from fenchel.kernels import hybrid_gradient as kernels
from fenchel.problem import Problem
from fenchel.solvers.hybrid_gradient import LOOK, HybridGradient
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.proximal_newton import ProximalNewton


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
    omega, eta, tried = 0.5 * problem.at_zero * np.sqrt(problem.k), 1.0, 0
    origin, sums, total, restart_gap = (U, V), (0.0, 0.0), 0.0, np.inf

    def gap(U: np.ndarray, V: np.ndarray) -> float:
        G = problem.constrained_part(X.T @ (w * (V - Y)))
        shrink = min(1.0, (lam * c / np.maximum(G, 1e-300)).min())
        return problem.primal(U) + shrink * problem.conjugate(V)

    for step in range(1, steps + 1):
        while True:
            tau, sigma = eta * omega * scale, eta / omega
            W = U - tau * (X.T @ (w * (V - Y)))
            U_new = np.sign(W) * np.maximum(np.abs(W) - tau * lam * c, 0.0)
            if problem.positive:
                U_new = np.maximum(W - tau * lam * c, 0.0)
            V_new = problem.loss.prox_euclidean(V, X @ (2 * U_new - U), sigma, problem.y)
            dU, dV = U_new - U, V_new - V
            moved = (dU**2 / scale).sum() / omega + omega * (w * dV**2).sum()
            limit = moved / (2 * abs((w * dV * (X @ dU)).sum()))
            used, tried = eta, tried + 1
            eta = min((1 - (tried + 1) ** -0.3) * limit, (1 + (tried + 1) ** -0.6) * eta)
            if used <= limit:
                break
        U, V = U_new, V_new
        sums, total = (sums[0] + used * U, sums[1] + used * V), total + used
        if step % LOOK == 0:
            points = [(U, V), (sums[0] / total, sums[1] / total)]
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
    np.testing.assert_allclose(state.now.U.T, U, atol=1e-7)
    np.testing.assert_allclose(state.now.V, V, atol=1e-7)


def test_products_and_lists() -> None:
    rng = np.random.default_rng(0)
    # with and without a rest after groups of four, and with so many rows that X is cut
    for rows, d in ((1, 13), (4, 13), (11, 13), (2100, 150)):
        A = rng.standard_normal((6, rows)) * (rng.random((6, rows)) < 0.7)
        X = rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.5)
        lists, csr, out = kernels.nonzeros(A), sp.csr_array(X), np.full((6, d), np.nan)
        assert (sp.csr_array(lists[::-1], shape=A.shape).toarray() == A).all()
        kernels.dense_combine(X, *lists, out)
        np.testing.assert_allclose(out, A @ X, atol=1e-12)
        kernels.sparse_combine(csr.indptr, csr.indices, csr.data, *lists, out)
        np.testing.assert_allclose(out, A @ X, atol=1e-12)
    A, out = rng.standard_normal((19, 30)), np.empty((30, 19))
    kernels.transpose(A, out)
    assert (out == A.T).all()


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
    data = make_paper(40, rng=0)
    result = fenchel.solve(data.X, data.y, classes=data.classes, lam=1e-3, tol=1e-7)
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
