"""G_U is made once for solver and certificate, and never taken for that of another V."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel
from fenchel.certificate import _onto_simplex
from fenchel.design.dense import DenseDesign
from fenchel.kernels.class_blocks import same
from fenchel.kernels.labels import toward_labels
from fenchel.problem import Problem
from instances import BY_NAME, LOSS_NAMES, with_cost
from support import make_problem, same_bits

N, D, K = 90, 12, 7


def made(seed: int = 0) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((N, D)), np.arange(N) % K
    problem = Problem.from_data(X, y, lam=0.01, sample_weight=rng.random(N), loss="softmax")
    return problem, rng.dirichlet(np.ones(K), N)


@pytest.fixture
def products(monkeypatch) -> list:
    """Tells of every dense product with X^T."""
    asked, plain = [], DenseDesign.rmatmul

    def counted(self: DenseDesign, W: np.ndarray) -> np.ndarray:
        asked.append(W.shape)
        return plain(self, W)

    monkeypatch.setattr(DenseDesign, "rmatmul", counted)
    return asked


def test_the_same_point_is_multiplied_once(products: list) -> None:
    problem, V = made()
    G = problem.full_gradient(V)
    np.testing.assert_allclose(G, problem.gradient(V), atol=1e-15)
    products.clear()
    assert problem.full_gradient(V.copy()) is G
    assert problem.with_penalty(1.0).full_gradient(V) is G  # which has no part in it
    np.testing.assert_array_equal(problem.gradient_row_norms(V), np.abs(G).max(axis=1))
    assert not products
    with pytest.raises(ValueError, match="read-only"):
        G[0, 0] = 1.0


@pytest.mark.parametrize("at", [(0, 0), (N - 1, K - 1)], ids=["first", "last"])
def test_a_point_that_was_changed_in_place_is_another(at: tuple[int, int]) -> None:
    """A solver works on in the array whose product is known: by one bit, in any number."""
    problem, V = made()
    before = problem.full_gradient(V)
    V[at] = np.nextafter(V[at], 1.0)
    assert problem.full_gradient(V) is not before
    V[at] += 0.1
    np.testing.assert_allclose(problem.full_gradient(V), problem.gradient(V), atol=1e-15)
    V[at] = np.nan
    assert np.isnan(problem.gradient_row_norms(V)).any()


def test_the_same_numbers() -> None:
    A = np.random.default_rng(0).random((5, 9))
    assert same(A, A.copy())
    for at in ((0, 0), (2, 3), (4, 8)):
        B = A.copy()
        B[at] = np.nextafter(B[at], 2.0)
        assert not same(A, B)
    A[1, 1] = np.nan
    assert not same(A, A)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["three-classes", "fifty-classes", "weighted"])
def test_a_run_is_the_same_to_the_bit_with_fewer_products(
    name: str, loss: str, products: list, monkeypatch
) -> None:
    instance = BY_NAME[name]
    found, asked = [], []
    for kept in (1 << 20, -1):
        monkeypatch.setattr("fenchel.full_gradient.MOST_KEPT", kept)
        products.clear()
        arguments = instance.arguments()
        found.append(
            fenchel.solve(
                instance.X, instance.y, loss=loss, solver="proximal-newton", tol=1e-6, **arguments
            )
        )
        asked.append(len(products))
    one, other = found
    assert same_bits(one.U, other.U)
    assert same_bits(one.V, other.V)
    assert (one.primal, one.dual, one.n_iter) == (other.primal, other.dual, other.n_iter)
    if loss == "softmax":  # V - Y of the others has so many zeros that no such product is made
        assert asked[0] < asked[1]


def test_rows_that_sum_to_one_stay_as_they_are() -> None:
    V = np.random.default_rng(0).dirichlet(np.ones(K), N)
    found = _onto_simplex(V)
    assert found is not V
    np.testing.assert_array_equal(found, V)
    away = (1.0 + 1e-9) * V
    np.testing.assert_allclose(_onto_simplex(away).sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert not np.array_equal(_onto_simplex(away), away)
    for other in (V.astype(np.float32), np.asfortranarray(V), np.asfortranarray(away)):
        found = _onto_simplex(other)
        assert found.dtype == np.float64
        assert found.flags.c_contiguous


@pytest.mark.parametrize("loss", [*LOSS_NAMES, "prices"])
@pytest.mark.parametrize("name", ["weighted", "absent-class", "sparse"])
def test_what_is_known_of_zero_coefficients(name: str, loss: str) -> None:
    """By class it is the same as by sample; with prices classes differ."""
    instance = with_cost(BY_NAME[name]) if loss == "prices" else BY_NAME[name]
    problem = make_problem(instance, loss)
    Z = np.zeros((problem.n, problem.k))
    expected = float(problem.weights @ problem.loss.value(Z, problem.y))
    assert problem.at_zero == pytest.approx(expected, rel=1e-14)
    np.testing.assert_array_equal(problem.dual_at_zero(), problem.loss.argmax(Z, problem.y))


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0, 1.2])
def test_on_the_way_to_the_labels(s: float) -> None:
    rng = np.random.default_rng(0)
    V, y = rng.dirichlet(np.full(K, 0.3), N), rng.integers(0, K, N)
    V[0] = np.eye(K)[(y[0] + 1) % K]  # beyond it only rounding is below zero, which becomes zero
    expected = s * V
    expected[np.arange(N), y] = np.maximum(expected[np.arange(N), y] + (1.0 - s), 0.0)
    out = np.empty_like(V)
    toward_labels(V, y, s, out)
    np.testing.assert_array_equal(out, expected)
    toward_labels(V, y, s, V)
    np.testing.assert_array_equal(V, expected)
