"""Steps of separable losses by tables against brackets, and against plain numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq

import separable_losses
from fenchel.kernels.tabulated import rows_by_tables
from fenchel.losses import LOSSES, SeparableLoss, tabulated

MAKERS = {**separable_losses.CLOSED, **separable_losses.OPEN}
every_loss = pytest.mark.parametrize("name", MAKERS)


def line_through(t: np.ndarray, g: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The inverse of g by lines: zero below the first node, the last line goes on."""
    beyond = v[-1] + (t - g[-1]) * (v[-1] - v[-2]) / (g[-1] - g[-2])
    return np.where(t < g[0], 0.0, np.where(t > g[-1], beyond, np.interp(t, g, v)))


@pytest.mark.parametrize("guess", [-1, 0, 5, 10])
@pytest.mark.parametrize("start", [0.0, 0.4, 1.0])
def test_rows_by_tables(start: float, guess: int) -> None:
    rng = np.random.default_rng(0)
    n, k = 40, 6
    v = np.linspace(0.0, 1.0, 12) ** 2
    wrong, true = np.sort(rng.standard_normal(12)), np.sort(rng.standard_normal(12)) + 0.5
    T, y = 3.0 * rng.standard_normal((n, k)), rng.integers(0, k, n)
    is_true = np.arange(k) == y[:, None]
    low, high = T.max(axis=1) - 20.0, T.max(axis=1) + 20.0
    mu, V, slopes = low + start * (high - low), np.empty((n, k)), np.empty((n, k))
    cells = np.full((n, k), guess, dtype=np.int32)
    rows_by_tables(T, y, wrong, v, true, v, low, high, mu, cells, V, slopes)

    def rows(at: np.ndarray) -> np.ndarray:
        t = T - at[:, None]
        return np.where(is_true, line_through(t, true, v), line_through(t, wrong, v))

    expected = np.array(
        [
            brentq(lambda m, i=i: rows(np.full(n, m))[i].sum() - 1.0, low[i], high[i], xtol=1e-14)
            for i in range(n)
        ]
    )
    np.testing.assert_allclose(mu, expected, atol=1e-12)
    np.testing.assert_allclose(V, rows(mu), atol=1e-12)
    np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-13)
    rise = (rows(mu + 1e-7) - rows(mu - 1e-7)) / -2e-7
    np.testing.assert_allclose(slopes, rise, rtol=1e-5, atol=1e-6)


def made(k: int, seed: int, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    V0 = rng.dirichlet(np.full(k, 0.3), 30)
    return scale * rng.standard_normal((30, k)), V0, rng.integers(0, k, 30)


@every_loss
@pytest.mark.parametrize("eta", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_tables_and_brackets_agree(name: str, eta: float, scale: float) -> None:
    loss = MAKERS[name]()
    Z, _, y = made(5, 3, scale)
    for distance in (lambda V: V / eta, lambda V: np.log(np.maximum(V, 1e-300)) / eta):
        found, expected = loss._maximise(Z, y, distance), loss._bracketed(Z, y, distance)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "smoothed-hinge", "tsallis"])
def test_no_row_of_a_smooth_loss_is_left_to_brackets(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take hundreds of evaluations of the derivative where tables take a dozen."""

    def refuse(*args: object) -> None:
        raise AssertionError("bracketed")

    monkeypatch.setattr(SeparableLoss, "_bracketed", refuse)
    loss, calls = MAKERS[name](), []
    derivative = loss.derivative
    loss.derivative = lambda *args: calls.append(True) or derivative(*args)
    for scale in (0.01, 1.0, 30.0):
        Z, _, y = made(7, 1, scale)
        np.testing.assert_allclose(loss.argmax(Z, y).sum(axis=1), 1.0, atol=1e-14)
    assert len(calls) <= 3 * (tabulated.STEPS + 2)


@pytest.mark.parametrize("name", ["softmax", "sparsemax"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1000.0])
def test_tables_are_as_exact_as_a_closed_form(name: str, scale: float) -> None:
    Z, _, y = made(6, 2, scale)
    loss, closed = MAKERS[name](), LOSSES[name]()
    losses, V = loss.value_and_argmax(Z, y)
    np.testing.assert_allclose(V, closed.argmax(Z, y), atol=1e-13 * max(1.0, scale))
    np.testing.assert_allclose(losses, closed.value(Z, y), atol=1e-13 * max(1.0, scale))


@every_loss
def test_what_is_read_off_the_derivative(name: str) -> None:
    loss = MAKERS[name]()
    assert (loss.smooth, loss.twice_differentiable) == separable_losses.KINDS[name]


@pytest.mark.parametrize("name", ["softmax", "smoothed-hinge", "tsallis", "quartic"])
@pytest.mark.parametrize("k", [2, 5])
def test_curvature_is_the_derivative_of_the_maximiser(name: str, k: int) -> None:
    """In z, of the loss where it is smooth, else of the loss with its proximal term."""
    loss, eta, h = MAKERS[name](), 0.7, 1e-5
    Z, V0, y = made(k, 4, 1.0)
    Z[:3] *= 30.0  # entries of 1e-13

    def maximiser(Z: np.ndarray) -> np.ndarray:
        return loss.argmax(Z, y) if loss.smooth else loss.prox_euclidean(V0, Z, eta, y)

    V = maximiser(Z)
    c = loss.curvature(V, eta, y) * (1.0 if loss.smooth else eta)
    expected = np.einsum("il,lm->ilm", c, np.eye(k)) - np.einsum(
        "il,im,i->ilm", c, c, 1.0 / c.sum(axis=1)
    )
    # rows in which an entry enters or leaves the support have no derivative
    away = [((V > 0.0) == (maximiser(Z + s * h * np.eye(k)[l]) > 0.0)).all(axis=1)
            for l in range(k) for s in (-1, 1)]  # fmt: skip
    rows = np.logical_and.reduce(away)
    assert rows.sum() >= 20
    for l in range(k):
        found = (maximiser(Z + h * np.eye(k)[l]) - maximiser(Z - h * np.eye(k)[l])) / (2 * h)
        np.testing.assert_allclose(found[rows], expected[rows, :, l], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "smoothed-hinge"])
def test_curvature_of_entries_that_are_nearly_zero(name: str) -> None:
    """Where a difference of derivatives next to them would be rounding."""
    V = np.array([[1e-13, 1e-9, 1e-5, 1.0 - 1e-5 - 1e-9 - 1e-13]])
    expected = V if name == "softmax" else np.full_like(V, 10.0)
    for label in range(4):
        found = MAKERS[name]().curvature(V, 1.0, np.array([label]))
        np.testing.assert_allclose(found, expected, rtol=1e-2)


WRONG: dict[str, tuple[Callable, Callable, str]] = {
    "decreases": (lambda v, _: -(v**2), lambda v, _: -2 * v, "must not decrease.*a wrong class"),
    "another one's": (lambda v, _: v**2, lambda v, _: v, "not that of phi"),
    "wrong in the true class": (
        lambda v, true: true * v**2, lambda v, true: 0 * v, "not that of phi.*the true class",
    ),
    "off by a twentieth": (lambda v, _: v**2, lambda v, _: 1.9 * v, "not that of phi"),
    "infinite at 1": (
        lambda v, _: v * v, lambda v, _: np.where(v < 1.0, 2 * v, np.inf), "finite.*v = 1,",
    ),
    "no number at 0": (
        lambda v, _: np.where(v > 0.0, v * v, np.nan), lambda v, _: 2 * v, "finite.*v = 0,",
    ),
    "complex": (lambda v, _: v * v, lambda v, _: 2 * v + 0j, "derivative must make.*complex128"),
    "a list": (lambda v, _: list(v), lambda v, _: v, "phi must make.*list of"),
    "writes into v": (
        lambda v, _: v, lambda v, _: np.maximum(v, 0.1, out=v), "derivative.*read-only",
    ),
    "of one argument": (lambda v: v, lambda v, _: v, "phi must be a function of two"),
    "flat": (lambda v, _: v.ravel(), lambda v, _: v, "phi must act on arrays elementwise"),
    "a sum": (lambda v, _: v * v, lambda v, _: np.array([2 * v.sum()]), "derivative must act on"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_convex_function_with_its_derivative_is_refused(name: str) -> None:
    phi, derivative, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        SeparableLoss(phi, derivative)


def test_what_is_no_function_and_what_is_not_affine() -> None:
    with pytest.raises(TypeError, match="phi must be a function of two arrays, found 3"):
        SeparableLoss(3, lambda v, _: v)
    with pytest.raises(ValueError, match="affine=True is for"):
        SeparableLoss(lambda v, _: v * v, lambda v, _: 2 * v, affine=True)


VALID: dict[str, tuple[Callable, Callable]] = {
    "cancels": (lambda v, _: np.exp(v) - 1.0, lambda v, _: np.exp(v)),
    "cancels by label": (lambda v, t: 0.5 * ((v - t) ** 2 - t), lambda v, t: v - t),
    "of 1 - v": (
        lambda v, _: (1 - v) * np.log(np.maximum(1 - v, 1e-300)),
        lambda v, _: -np.log(np.maximum(1 - v, 1e-300)) - 1.0,
    ),
    "small": (lambda v, _: 1e-9 * v * v, lambda v, _: 2e-9 * v),
    "large": (lambda v, _: 1e9 * v * v, lambda v, _: 2e9 * v),
    "flat at zero": (lambda v, _: v**30, lambda v, _: 30 * v**29),
    "a number": (lambda v, _: v, lambda v, _: 1.0),
}


@pytest.mark.parametrize("name", VALID)
def test_what_is_convex_is_taken(name: str) -> None:
    Z, _, y = made(4, 1, 1.0)
    loss = SeparableLoss(*VALID[name])
    assert (loss.value(Z, y) >= -1e-12).all()
    assert loss.by_label == (name == "cancels by label")


STEEP: dict[str, tuple[Callable, Callable]] = {
    "pole": (lambda v, _: 1 / (1 + 1e-6 - v), lambda v, _: 1 / (1 + 1e-6 - v) ** 2),
    "jump": (
        lambda v, _: 100 * np.maximum(v - 0.4, 0.0) + 1e-8 * v * v,
        lambda v, _: 100 * (v > 0.4) + 2e-8 * v,
    ),
    "steps": (
        lambda v, _: sum(np.maximum(v - a, 0.0) for a in (0.1, 1 / 3, 0.5)) + 0.1 * v * v,
        lambda v, _: sum(1.0 * (v >= a) for a in (0.1, 1 / 3, 0.5)) + 0.2 * v,
    ),
}


@pytest.mark.parametrize("name", STEEP)
@pytest.mark.parametrize("scale", [0.02, 1.0, 100.0, 1e6, 2e8])
def test_no_value_is_below_the_maximum(name: str, scale: float) -> None:
    """A loss that is too small makes gaps too small: where phi jumps, brackets are asked."""
    loss = SeparableLoss(*STEEP[name])
    rng = np.random.default_rng(0)
    Z = np.vstack([[0.0, scale], scale * rng.standard_normal((20, 2))])
    for y in (np.zeros(21, int), np.ones(21, int)):
        found = loss.value(Z, y)
        low, high = np.zeros(21), np.ones(21)
        for _ in range(30):  # a finer and finer search for the best v of the first class
            V = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 101)
            rows = np.stack([V, 1.0 - V], axis=2).reshape(-1, 2)
            f = loss.f(rows, np.repeat(y, 101))
            Y = np.eye(2)[y]
            values = np.einsum("ijl,il->ij", rows.reshape(21, 101, 2) - Y[:, None], Z)
            values = values - f.reshape(21, 101)
            best = values.argmax(axis=1)
            low, high = (V[np.arange(21), np.clip(best + s, 0, 100)] for s in (-1, 1))
        rounding = 1e-13 * (np.abs(Z).max(axis=1) + np.abs(values).max())
        assert (found >= values.max(axis=1) - rounding).all()
