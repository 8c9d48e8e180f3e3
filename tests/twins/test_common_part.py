"""Products with what most classes share taken off: the same numbers for fewer multiplications."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel.certificate import certify
from fenchel.common_part import CommonPart, rows_beside_common
from fenchel.design import make_design
from fenchel.design.dense import DenseDesign, by_columns
from fenchel.kernels.common_value import common_values, residual_beside_common
from fenchel.problem import Problem
from fenchel.solvers.hybrid_gradient import HybridGradient, Products
from fenchel.solvers.linear_program import LinearProgram
from fenchel.solvers.primal_dual import PrimalDual, moving_classes
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_set import Columns, Entries, residual_of, violators

N, D, K = 60, 30, 20


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every product be dear, and the means of the classes as dear as it."""
    monkeypatch.setattr("fenchel.common_part.DEAR", 0)
    monkeypatch.setattr("fenchel.class_means.FEWER", np.inf)


def make(zipf: float = 1.0, **options) -> Problem:
    rng = np.random.default_rng(0)
    share = np.arange(1, K + 1.0) ** -zipf
    y = np.concatenate([np.arange(K), rng.choice(K, N - K, p=share / share.sum())])
    X = rng.standard_normal((N, D))
    X[np.arange(N), y] += 3.0
    return Problem.from_data(X, y, lam=0.05, **options)


def dual_point(problem: Problem) -> np.ndarray:
    """All classes equal but for the true one, two columns, and one entry."""
    rng = np.random.default_rng(1)
    V = np.repeat(rng.random((N, 1)), K, axis=1)
    V[:, [3, 7]] = rng.random((N, 2))
    V[np.arange(N), problem.y] = rng.random(N)
    V[5, 11] = 2.0
    return V / V.sum(axis=1, keepdims=True)


def test_common_values() -> None:
    V = np.array([[0.5, 0.1, 0.2, 0.1, 0.1], [0.3, 0.3, 0.3, 0.05, 0.05]])
    common = np.empty(2)
    assert common_values(V, np.array([0, 4]), common) == 2  # the 0.2, and the 0.05 of class 3
    np.testing.assert_array_equal(common, [0.1, 0.3])
    V = np.array([[0.2, 0.2, 0.1, 0.4, 0.1]])  # the true class has no vote
    assert common_values(V, np.array([3]), common[:1]) == 2
    V = np.array([[0.2, 0.1, 0.1, 0.3, 0.3]])
    common_values(V, np.array([4]), common[:1])
    assert common[0] == 0.1


@pytest.mark.usefixtures("dear")
def test_products_are_the_same_and_few_columns_are_multiplied(monkeypatch) -> None:
    problem = make()
    V = dual_point(problem)
    common = problem.common_part(V)
    assert common is not None
    multiplied, rmatmul = [], DenseDesign.rmatmul

    def counted(self, W):
        multiplied.append(0 if sp.issparse(W) else W.shape[1])
        return rmatmul(self, W)

    monkeypatch.setattr(DenseDesign, "rmatmul", counted)
    G = common.rmatmul(problem.residual(V, 0, K))
    frequent = np.count_nonzero(np.bincount(problem.y, minlength=K) > 0.05 * N)
    assert sum(multiplied) <= 2 + frequent < K
    monkeypatch.undo()
    np.testing.assert_allclose(G, problem.gradient(V), atol=1e-14)


def test_there_is_none_where_it_saves_nothing(monkeypatch) -> None:
    problem = make()
    V = dual_point(problem)
    assert problem.common_part(V) is None  # the product is cheap
    monkeypatch.setattr("fenchel.common_part.DEAR", 0)
    rough = np.random.default_rng(2).random((N, K))
    assert problem.common_part(rough) is None
    data = make_design(sp.csr_array(problem.design.X))
    assert CommonPart.of(data, V, problem.y, problem.weights) is None


@pytest.mark.parametrize("positive", [False, True])
def test_certificates_looks_and_gradients_do_not_change(monkeypatch, positive: bool) -> None:
    problem = make(positive=positive)
    V, U = dual_point(problem), sp.csc_array((D, K))
    products = Products.of(problem)

    def all_of_them() -> list:
        G = np.empty((K, D))
        products.gradient(V, G)
        found = certify(problem, U, V)
        feature, klass, excess, scale = violators(problem, V, 50)
        order = np.lexsort((klass, feature))
        return [G, found.V, found.dual, feature[order], klass[order], excess[order], scale]

    plain = all_of_them()
    monkeypatch.setattr("fenchel.common_part.DEAR", 0)
    monkeypatch.setattr("fenchel.problem.BLOCK_ENTRIES", 7 * N)  # several blocks of classes
    calls, rmatmul = [], CommonPart.rmatmul
    monkeypatch.setattr(CommonPart, "rmatmul", lambda self, W: calls.append(1) or rmatmul(self, W))
    for before, after in zip(plain, all_of_them(), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-14)
    # by the gradient, the certificate in blocks, and the look
    assert len(calls) == 1 + -(-K // 7) + 1


def test_the_residual_beside_what_is_common() -> None:
    problem = make()
    V = dual_point(problem)
    column, pointer, klass, added, largest = residual_beside_common(
        V, problem.y, problem.weights, V.size
    )
    rest = sp.csr_array((added, klass.astype(int), pointer), shape=V.shape).toarray()
    R = problem.residual(V, 0, K)
    np.testing.assert_allclose(column[:, None] + rest, R, atol=1e-16)
    np.testing.assert_allclose(largest, np.abs(R).max(axis=1), rtol=1e-14)
    assert added.size < 0.5 * V.size
    few = residual_beside_common(V, problem.y, problem.weights, added.size - 1)
    assert few[1].size == 0
    assert residual_beside_common(V, problem.y, problem.weights, added.size)[1].size == N + 1
    V[3, problem.y[3] - 1] = np.nan
    largest = residual_beside_common(V, problem.y, problem.weights, V.size)[-1]
    assert np.isnan(largest[3])


@pytest.mark.parametrize("positive", [False, True])
def test_certificates_and_looks_of_sparse_data_do_not_change(monkeypatch, positive: bool) -> None:
    rough = make(positive=positive)
    X = sp.csr_array(np.where(np.abs(rough.design.X) > 0.8, rough.design.X, 0.0))
    problem = replace(rough, design=make_design(X))
    V, U, found = dual_point(problem), sp.csc_array((D, K)), []
    monkeypatch.setattr("fenchel.common_part.MANY_CLASSES", K)
    for most in (1.0, 0.0):
        monkeypatch.setattr("fenchel.common_part.DIFFERENT_SPARSE", most)
        rows = rows_beside_common(problem.design, V, problem.y, problem.weights)
        assert (rows is None) == (most == 0.0)
        point = certify(problem, U, V)
        feature, klass, excess, scale = violators(problem, V, 10**6)
        order = np.lexsort((klass, feature))
        norms = problem.gradient_row_norms(V)
        found.append(
            [point.V, point.dual, feature[order], klass[order], excess[order], scale, norms]
        )
    assert found[0][2].size > 10
    for few, dense in zip(*found, strict=True):
        np.testing.assert_allclose(few, dense, rtol=1e-12, atol=1e-14)
    G = problem.constrained_part(problem.gradient(V))
    np.testing.assert_allclose(found[0][-1], G.max(axis=1), rtol=1e-12)


@pytest.mark.usefixtures("dear")
def test_few_moving_classes_begin_with_newton_steps() -> None:
    few, equal = make(zipf=2.0).with_penalty(0.3), make(zipf=0.0)
    rng = np.random.default_rng(0)
    assert 0 < moving_classes(few) <= K // 4 < moving_classes(equal)
    solver = PrimalDual()
    begun = solver.init(few, None, rng, 1)
    assert isinstance(begun.method, ProximalNewton)
    assert f"{moving_classes(few)} of {K} " in solver.note(begun)
    begun = solver.init(equal, None, rng, 1)
    assert isinstance(begun.method, HybridGradient)
    assert solver.note(begun) == ""


def test_where_products_are_cheap_nothing_changes() -> None:
    few = make(zipf=2.0).with_penalty(0.3)
    begun = PrimalDual().init(few, None, np.random.default_rng(0), 1)
    assert isinstance(begun.method, HybridGradient)


@pytest.mark.usefixtures("dear")
def test_the_history_says_why_and_the_bound_is_true() -> None:
    problem = make(zipf=2.0)
    data, options = (problem.design.X, problem.y), {"lam": 0.3, "classes": problem.classes}
    result = fenchel.solve(*data, **options, tol=1e-6)
    assert any("product with X is dear" in record.note for record in result.history)
    assert result.status == "converged"
    other = fenchel.solve(*data, **options, tol=1e-6, solver="proximal-newton")
    assert max(result.dual, other.dual) <= min(result.primal, other.primal) + 1e-12
    for record in result.history:
        assert record.dual <= other.primal + 1e-12


def test_no_linear_program_at_gap_zero_where_it_is_refused(monkeypatch) -> None:
    problem = make()
    monkeypatch.setattr(LinearProgram, "refuses", staticmethod(lambda problem: "it is too large"))
    state = PrimalDual().init(problem, None, np.random.default_rng(0), 1)
    state.inner.gap = -1e-17  # rounding
    PrimalDual._try_vertex(state)
    assert isinstance(state.method, HybridGradient)


def test_scores_and_gradients_in_few_classes_are_those_in_all(monkeypatch) -> None:
    problem = make()
    rng = np.random.default_rng(3)
    V = rng.random((N, K))
    U = np.zeros((D, K))
    U[[1, 4, 2], [6, 6, 9]] = rng.standard_normal(3)
    entries, columns = Entries.of(U), Columns.of(problem.design)
    found = []
    for part in (0.25, 0.0):  # of the classes: the second is never met
        monkeypatch.setattr("fenchel.solvers.working_set.FEW_CLASSES", part)
        Z = np.ones((N, K))
        columns.along(Z, entries, entries.u)(0.5)
        found.append((Z, columns.gradient_of_dense(entries, problem, V)))
    np.testing.assert_allclose(found[0][0], 1.0 + 0.5 * problem.design.X @ U, atol=1e-14)
    for few, all_classes in zip(*found, strict=True):
        np.testing.assert_array_equal(few, all_classes)
    classes = np.array([0, 6, 9, 19])
    expected = problem.residual(V, 0, K)[:, classes]
    np.testing.assert_array_equal(residual_of(problem, V, classes), expected)
    assert columns.gradient_of_dense(Entries.empty(), problem, V).size == 0


@pytest.mark.parametrize("few", [0, 1 << 16], ids=["some rows at a time", "at once"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_by_columns(dtype: type, few: int, monkeypatch) -> None:
    monkeypatch.setattr("fenchel.design.dense.FEW_ENTRIES", few)
    X = np.random.default_rng(0).random((130, 7)).astype(dtype)
    found = by_columns(X)
    assert found.flags.c_contiguous
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, X.T)
