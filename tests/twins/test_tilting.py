"""The nearest point in relative entropy that satisfies equalities, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlogy

from fenchel import tilting
from fenchel.tilting import residual, tilted

PLENTY = 1 << 40


def made(n: int, r: int, k: int, seed: int = 0, noise: float = 3.0):
    """V, Q, w, y, where scores of the columns of Q tell little of the class."""
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, k, n), rng.uniform(0.5, 2.0, n)
    w /= w.sum()
    A = np.eye(k)[y][:, :r] + noise * rng.standard_normal((n, r))
    Q = np.linalg.qr(np.sqrt(w)[:, None] * A)[0] / np.sqrt(w)[:, None]
    return rng.dirichlet(np.ones(k), n), Q, w, y


@pytest.mark.parametrize("chunk", [tilting.CHUNK, 50])
def test_it_is_the_nearest(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among all V of the equalities; scipy finds it from the same problem in V."""
    monkeypatch.setattr(tilting, "CHUNK", chunk)
    n, r, k = 14, 2, 3
    V, Q, w, y = made(n, r, k)
    found = tilted(V, Q, w, y, PLENTY)
    assert found is not None
    Y = np.eye(k)[y]
    by_scipy = minimize(
        lambda W: float(w @ (xlogy(W.reshape(n, k), W.reshape(n, k) / V)).sum(axis=1)),
        np.full(n * k, 1 / k),
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * (n * k),
        constraints=[
            {"type": "eq", "fun": lambda W: W.reshape(n, k).sum(axis=1) - 1.0},
            {"type": "eq",
             "fun": lambda W: (Q.T @ (w[:, None] * (W.reshape(n, k) - Y)))[:, :-1].ravel()},
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(found, by_scipy.x.reshape(n, k), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_zero_stays_zero_and_the_equalities_hold(seed: int) -> None:
    V, Q, w, y = made(200, 4, 6, seed)
    V[np.random.default_rng(seed).random(V.shape) < 0.3] = 0.0
    V[:20] = np.eye(6)[0]  # rows that cannot change
    V[V.sum(axis=1) == 0.0] = 1 / 6
    V /= V.sum(axis=1, keepdims=True)
    before = V.copy()
    found = tilted(V, Q, w, y, PLENTY)
    assert found is not None
    np.testing.assert_array_equal(V, before)
    np.testing.assert_array_equal(found > 0.0, V > 0.0)
    np.testing.assert_array_equal(found[:20], V[:20])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    expected = Q.T @ (w[:, None] * (found - np.eye(6)[y]))
    assert np.abs(expected).max() <= tilting.ENOUGH
    np.testing.assert_allclose(residual(found, Q, w, y), expected, atol=1e-16)


def test_what_is_separated_goes_to_zero() -> None:
    """One free feature, of another sign for each of two classes: no V but Y has the equalities."""
    y = np.arange(30) % 2
    a = (2.0 * y - 1.0) * np.linspace(1.0, 2.0, 30)
    w = np.full(30, 1 / 30)
    Q = (a / np.sqrt(w @ a**2))[:, None]
    found = tilted(np.full((30, 2), 0.5), Q, w, y, PLENTY)
    assert found is not None
    np.testing.assert_allclose(found, np.eye(2)[y], atol=1e-10)


def test_scores_of_what_is_zero_shorten_no_step() -> None:
    V, S = np.array([[0.5, 0.5, 0.0]]), np.array([[1.0, 0.0, 1e6]])
    found = tilting._along(V, S, np.ones(1), np.zeros(1, int), 0.0, -0.5)
    expected = np.array([[np.e, 1.0, 0.0]]) / (np.e + 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_step_is_shortened_until_it_is_short() -> None:
    """Not until it is a small part: of a step of a million a millionth may be right."""
    V, S = np.array([[0.5, 0.5]]), np.array([[1e6, 0.0]])
    y, slope = np.zeros(1, int), -1e-3
    found = tilting._along(V, S, np.ones(1), y, 0.0, slope)
    assert found is not None
    assert 0.5 < found[0, 0] <= 1.0
    uphill = tilting._along(V, -S, np.ones(1), y, 0.0, slope)
    assert uphill is None


def test_none_where_there_is_none() -> None:
    V, Q, w, y = made(60, 2, 4)
    corners = np.eye(4)[(y + 1) % 4]  # nothing can change
    assert tilted(corners, Q, w, y, PLENTY) is None
    few = np.where(np.arange(4) == 0, 0.0, V)  # no mass on a class that has samples
    few /= few.sum(axis=1, keepdims=True)
    assert tilted(few, np.ones((60, 1)), w, y, PLENTY) is None


@pytest.mark.parametrize("size", [0.0, 1e-160])
def test_none_where_what_is_open_has_no_free_feature(size: float) -> None:
    """There is no curvature to invert, and nothing to warn of."""
    V = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    Q = np.array([[size], [0.5], [1.0], [1.5]])
    assert tilted(V, Q, np.full(4, 0.25), np.array([0, 1, 0, 1]), PLENTY) is None


def test_none_where_it_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    V, Q, w, y = made(60, 2, 4)
    least = tilting.LEAST_STEPS * 60 * 8**2
    assert tilted(V, Q, w, y, least - 1) is None
    assert tilted(V, Q, w, y, 5 * least) is not None
    monkeypatch.setattr(tilting, "MOST_ROWS", 7)
    assert tilted(V, Q, w, y, PLENTY) is None
