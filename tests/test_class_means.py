"""The means of the classes: a lower bound, and where a run begins if a product is dear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import checker
import fenchel
from fenchel.class_means import ClassMeans
from fenchel.design import make_design
from fenchel.problem import Problem
from fenchel.solvers.base import Start
from fenchel.solvers.of_class_means import OfClassMeans, best_multiple
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.proximal_newton import ProximalNewton

N, D, K = 90, 30, 12


@pytest.fixture(autouse=True)
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every product be dear."""
    monkeypatch.setattr("fenchel.common_part.DEAR", 0)


def make_data(weighted: bool = False) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Samples, labels and options: class 5 has no sample, class 7 none with a weight."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.delete(np.arange(K), 5), rng.integers(0, 4, N - K + 1)])
    X = rng.standard_normal((N, D))
    X[np.arange(N), y] += 3.0
    weights = rng.random(N) * (y != 7) if weighted else None
    return X, y, {"lam": 0.05, "classes": np.arange(K), "sample_weight": weights}


def make(weighted: bool = False, **options: Any) -> Problem:
    X, y, given = make_data(weighted)
    return Problem.from_data(X, y, **(given | options))


def means_of(problem: Problem) -> ClassMeans:
    assert problem.class_means is not None
    return problem.class_means


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_of_the_means_are_points_of_the_problem(loss: str, weighted: bool) -> None:
    problem = make(weighted, loss=loss)
    means, rng = means_of(problem), np.random.default_rng(1)
    small = means.problem
    assert small.n == K - 1
    T = rng.dirichlet(np.ones(K), small.n)
    V = means.lifted(T)
    np.testing.assert_array_equal(V[3], T[list(small.y).index(problem.y[3])])
    X, w, Y = problem.design.X, problem.weights, np.eye(K)[problem.y]
    G = X.T @ (w[:, None] * (V - Y))
    np.testing.assert_allclose(small.gradient(T), G, atol=1e-14)
    assert small.conjugate(T) == pytest.approx(w @ checker.f_values(V, problem.y, loss))
    for scale in (0.1, 1.0, 10.0):  # Jensen
        U = scale * rng.standard_normal((D, K))
        assert small.risk(U) <= w @ checker.losses(X @ U, problem.y, loss) + 1e-12


def test_a_product_is_that_of_the_means_only_where_samples_of_a_class_agree(monkeypatch) -> None:
    problem = make()
    means, rng = means_of(problem), np.random.default_rng(1)
    V = means.lifted(rng.dirichlet(np.ones(K), means.problem.n))
    other = V.copy()
    other[-1] = np.roll(V[-1], 1)
    asked, plain = [], Problem.gradient_row_norms

    def counted(self: Problem, V: np.ndarray, enough: np.ndarray | None = None) -> np.ndarray:
        asked.append(self.n)
        return plain(self, V, enough)

    monkeypatch.setattr(Problem, "gradient_row_norms", counted)
    for point, sizes in ((V, [N, means.problem.n]), (other, [N])):
        asked.clear()
        found = problem.gradient_row_norms(point)
        assert asked == sizes
        G = problem.design.X.T @ (problem.weights[:, None] * (point - np.eye(K)[problem.y]))
        np.testing.assert_allclose(found, np.abs(G).max(axis=1), rtol=1e-12)


def test_another_penalty_has_the_same_means() -> None:
    problem = make()
    X = means_of(problem).problem.design.X
    other = means_of(problem.with_penalty(0.5))
    assert other.problem.design.X is X
    assert other.problem.lam == 0.5


def test_auto_begins_with_the_means_and_the_bound_is_true() -> None:
    X, y, options = make_data(weighted=True)
    rough = fenchel.solve(X, y, **options, max_iter=1)
    assert "means of 11 classes" in rough.history[1].note
    assert "class means" in rough.point
    best = fenchel.solve(X, y, **options, tol=1e-7, solver="proximal-newton")
    result = fenchel.solve(X, y, **options, tol=1e-7)
    assert any("all samples after" in record.note for record in result.history)
    assert result.status == "converged"
    for some in (rough, result):
        w = options["sample_weight"]
        checker.check(some, X, y, loss="hinge", lam=options["lam"], weights=w)
        assert some.dual <= best.primal + 1e-12
        assert some.primal >= best.dual - 1e-12
    assert rough.gap < 0.8 * rough.history[0].gap


def first_method(problem: Problem, start: Start | None = None) -> type:
    return type(PrimalDual().init(problem, start, np.random.default_rng(0), 1).method)


def test_where_it_begins_with_the_means(monkeypatch) -> None:
    X, y, options = make_data()
    assert first_method(make()) is OfClassMeans
    assert first_method(make(), Start(np.zeros((D, K)))) is ProximalNewton
    assert first_method(make(loss="softmax")) is not OfClassMeans
    few = Problem.from_data(X[:20], y[:20], **options)  # samples of 11 classes
    sparse = Problem.from_data(sp.csr_array(X), y, **options)
    assert few.class_means is sparse.class_means is None
    assert first_method(few) is not OfClassMeans
    monkeypatch.setattr("fenchel.common_part.DEAR", N * D * K + 1)
    assert make().class_means is None


def test_the_multiple_of_u_is_the_best() -> None:
    problem = make()
    rng = np.random.default_rng(2)
    U = sp.csc_array(0.2 * np.eye(D, K) + 0.01 * rng.random((D, K)))
    for scale in (0.1, 1.0, 30.0):
        found = problem.primal(best_multiple(problem, scale * U))
        around = [problem.primal(t * scale * U) for t in np.linspace(0.0, 2.0, 41)]
        assert found <= min(around) + 1e-6


def test_columns_are_copied_as_they_are_asked_for(monkeypatch) -> None:
    problem = make()
    whole = ProximalNewton().init(problem, None, np.random.default_rng(0), 1)
    monkeypatch.setattr("fenchel.solvers.working_set.COLUMN_BY_COLUMN", 0)
    some = ProximalNewton().init(problem, None, np.random.default_rng(0), 1)
    some.columns.data[0][:] = np.nan  # what is not made is not read
    for state in (whole, some):
        ProximalNewton().advance(state, 4)
    np.testing.assert_array_equal(whole.Z, some.Z)
    Xt, made = some.columns.data[0], some.entries.feature
    assert 0 < np.unique(made).size < D
    np.testing.assert_array_equal(Xt[made], problem.design.X.T[made])
    some.columns.make()
    np.testing.assert_array_equal(Xt, problem.design.X.T)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("features", [2, D])
def test_a_sparse_u_is_multiplied_by_the_features_in_use(dtype: type, features: int) -> None:
    X = make_data()[0].astype(dtype)
    U = np.zeros((D, K))
    U[-features:, 3] = np.arange(features) - 0.5
    found = make_design(X).matmul(sp.csc_array(U))
    np.testing.assert_allclose(found, X.astype(np.float64) @ U, rtol=1e-12)
