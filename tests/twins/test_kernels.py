"""Every compiled kernel against a slow twin in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from checker import project_onto_simplex
from fenchel.kernels.l1_ball import ball_threshold
from fenchel.kernels.partial_sampling import draw_sample, multiply_dual_power
from fenchel.kernels.simplex import SMALLEST, multiply_rows, project_margins, project_rows
from fenchel.kernels.solid_simplex import multiply_halves, rescale
from fenchel.kernels.sparsemax import sparsemax
from fenchel.kernels.subgradient import ball_excess, shrink_and_sum


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e6])
def test_project_rows(k: int, scale: float) -> None:
    A = scale * np.random.default_rng(k).standard_normal((20, k))
    A[0], A[1] = 0.25 * scale, np.eye(k)[0]  # equal entries; a point of the simplex
    out = np.empty_like(A)
    project_rows(A, A[:0], out)
    expected = np.array([project_onto_simplex(row) for row in A])
    np.testing.assert_allclose(out, expected, atol=1e-15 * max(scale, 1.0))
    np.testing.assert_array_equal(out[1], A[1])
    project_rows(A, out, A)  # in place, from a good guess
    np.testing.assert_array_equal(A, out)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_project_margins(k: int) -> None:
    rng = np.random.default_rng(k)
    V, Z, y = rng.dirichlet(np.full(k, 0.2), 20), rng.standard_normal((20, k)), np.arange(20) % k
    out = np.empty_like(V)
    project_margins(V, Z, 0.3, y, out)
    margins = Z + 1.0 - np.eye(k)[y]
    expected = np.array([project_onto_simplex(row) for row in V + 0.3 * margins])
    np.testing.assert_allclose(out, expected, atol=1e-15)


@pytest.mark.parametrize("power", [1.0, 0.3])
@pytest.mark.parametrize("scale", [0.1, 5.0, 2000.0])
def test_multiply_rows(power: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    V = np.maximum(rng.dirichlet(np.full(6, 0.2), 15), SMALLEST)
    Z = scale * rng.standard_normal(V.shape)
    out = np.empty_like(V)
    multiply_rows(V, Z, power, 0.7, out)
    exponents = power * np.log(V) + 0.7 * Z
    expected = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-290)
    assert out.min() >= SMALLEST


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_multiply_halves(shift: float) -> None:
    rng = np.random.default_rng(1)
    d, k, eta = 5, 4, 0.8
    U, S, shrink = rng.random((2 * d, k)), rng.standard_normal((d, k)), rng.random(d)
    out = np.empty_like(U)
    total = multiply_halves(U, S, eta, shrink, shift, out)
    doubled = np.concatenate([S, -S])  # the gradient of [X, -X]
    expected = U * np.exp(-eta * doubled - np.concatenate([shrink, shrink])[:, None] - shift)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    assert total == pytest.approx(expected.sum(), rel=1e-13)


def test_rescale() -> None:
    A = np.random.default_rng(2).random((3, 4))
    expected = np.maximum(A * 0.3, 0.1)
    rescale(A, 0.3, 0.1)
    np.testing.assert_array_equal(A, expected)


@pytest.mark.parametrize("group", [False, True])
def test_shrink_and_sum(group: bool) -> None:
    rng = np.random.default_rng(3)
    U, U_sum, thresholds = rng.standard_normal((6, 4)), rng.random((6, 4)), 2 * rng.random(6)
    U[2], thresholds[3] = 0.0, 0.0
    if group:
        lengths = np.linalg.norm(U, axis=1)
        kept = np.maximum(lengths - thresholds, 0.0)
        expected = U * (kept / np.where(lengths > 0, lengths, 1.0))[:, None]
        size = kept.sum()
    else:
        expected = np.sign(U) * np.maximum(np.abs(U) - thresholds[:, None], 0.0)
        size = np.abs(expected).sum()
    before = U_sum.copy()
    assert shrink_and_sum(U, thresholds, group, U_sum) == pytest.approx(size)
    np.testing.assert_allclose(U, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(U_sum, before + expected, rtol=1e-13)


def test_ball_threshold() -> None:
    rng = np.random.default_rng(4)
    for size in (1, 7, 300):
        for radius in (1e-3, 0.7, 5.0, 1e4):
            values = np.round(rng.exponential(size=size), 1)  # ties and zeros among them
            ordered = np.sort(values)[::-1]
            excess = (np.cumsum(ordered) - radius) / np.arange(1, size + 1)
            expected = max(excess.max(), 0.0)
            assert ball_threshold(values, radius) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("guess", [0.0, 0.05, 0.4, 1e6])
def test_ball_excess(guess: float) -> None:
    """Whatever the guess; with ties, zeros, and rows that are shrunk to nothing."""
    rng = np.random.default_rng(5)
    U = np.round(rng.standard_normal((8, 5)), 1)
    thresholds = np.where(np.arange(8) == 2, 9.0, rng.random(8))
    left = np.maximum(np.abs(U) - thresholds[:, None], 0.0)
    for radius in (1e-3, 0.5, 0.9 * left.sum(), 2.0 * left.sum()):
        ordered = np.sort(left.ravel())[::-1]
        expected = max(((np.cumsum(ordered) - radius) / np.arange(1, 41)).max(), 0.0)
        found = ball_excess(U, thresholds, radius, guess)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert ball_excess(np.zeros((3, 2)), np.ones(3), 1.0, guess) == 0.0


@pytest.mark.parametrize("power", [0.4, 0.999])  # exponents with and without range reduction
def test_multiply_dual_power(power: float) -> None:
    rng = np.random.default_rng(5)
    V = rng.dirichlet(np.full(7, 0.5), size=9)
    log_V, S = np.log(V), rng.random((9, 7))
    x, h, y = rng.standard_normal(9), rng.random(7), rng.integers(0, 7, 9)
    c = 2.0 * (1.0 - power)
    before, S_before, v_true = V.copy(), S.copy(), np.empty(9)
    multiply_dual_power(V, log_V, S, x, h, c, power, 0.3, y, v_true)
    expected = before**power * np.exp(c * np.outer(x, h))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(V, expected, rtol=1e-13)
    np.testing.assert_allclose(log_V, np.log(expected), rtol=1e-12)
    np.testing.assert_allclose(S, S_before + 0.3 * before, rtol=1e-14)
    np.testing.assert_array_equal(v_true, V[np.arange(9), y])


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e6])
def test_sparsemax(scale: float) -> None:
    """From any support on entry, of another point or none."""
    rng = np.random.default_rng(3)
    Z, y = scale * rng.standard_normal((50, 7)), rng.integers(0, 7, 50)
    expected = np.empty_like(Z)
    project_rows(Z, Z[:0], expected)
    losses = (expected * Z).sum(axis=1) - Z[np.arange(50), y] - 0.5 * (expected**2).sum(axis=1)
    for V in (np.zeros_like(Z), np.eye(7)[y], expected.copy()):
        found = np.empty(50)
        sparsemax(Z, y, V, found)
        np.testing.assert_allclose(V, expected, atol=1e-12 * scale)
        np.testing.assert_allclose(found, losses + 0.5, atol=1e-12 * scale)


@pytest.mark.parametrize("n", [4, 7, 12, 15])
def test_a_draw_does_not_depend_on_where_arrays_lie(n: int) -> None:
    """A short loop over arrays close together is not vectorised, and would sum in another order."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        weights, memory = rng.random(n), np.empty(2 * n + 64)
        memory[:n] = rng.random(n)
        laws = [memory[n + gap : 2 * n + gap] for gap in (0, 1, 2, 64)]
        draws = [draw_sample(weights, memory[:n], law, 0.5) for law in laws]
        assert len(set(draws)) == 1
