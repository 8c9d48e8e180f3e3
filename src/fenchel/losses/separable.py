"""Any loss whose f is separable: the paper's general route to the dual update."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from fenchel.kernels.simplex import SMALLEST
from fenchel.losses.base import Loss, true_class

ScalarFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Halvings of a bracket: enough to bring any interval of doubles down to neighbouring numbers.
MAX_ITER = 200


class SeparableLoss(Loss):
    """``f(v, y) = sum_l phi(v_l, y_l)`` for a convex phi given with its derivative.

    Every step solves the Lagrangian's one-dimensional problems for a given multiplier, and finds
    the multiplier of ``sum_l v_l = 1`` by root search, as the paper proposes. That costs some
    hundreds of evaluations of the derivative: a loss with a closed form deserves a file of its own.

    Parameters
    ----------
    phi, derivative : callable
        ``phi(v, is_true)`` and its derivative in v, elementwise on arrays; ``is_true`` is 1.0 in
        the true class and 0.0 elsewhere. The derivative must not decrease in v on [0, 1]; it may
        be minus infinity at 0. ``sum_l phi`` is shifted so that f(y, y) = 0.
    affine : bool
        True where phi is affine in v.
    """

    name: ClassVar[str] = "separable"

    def __init__(
        self, phi: ScalarFunction, derivative: ScalarFunction, *, affine: bool = False
    ) -> None:
        self.phi = phi
        self.derivative = derivative
        self.affine = affine

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        is_true = _indicator(V.shape, y)
        at_label = self.phi(is_true, is_true).sum(axis=1)
        return self.phi(np.asarray(V, dtype=np.float64), is_true).sum(axis=1) - at_label

    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        V = self.argmax(Z, y)
        return np.einsum("il,il->i", V, Z) - true_class(Z, y) - self.f(V, y)

    def argmax(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._maximise(Z, y, lambda V: np.zeros_like(V))

    def prox_entropy(self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        T = Z + np.log(np.maximum(V0, SMALLEST)) / eta
        V = self._maximise(T, y, lambda V: np.log(np.maximum(V, SMALLEST)) / eta)
        return np.maximum(V, SMALLEST)

    def prox_euclidean(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        return self._maximise(Z + V0 / eta, y, lambda V: V / eta)

    def _maximise(
        self, T: np.ndarray, y: np.ndarray, distance: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Maximise ``<v, t> - f(v, y) - psi(v)`` on the simplex, where ``distance`` is psi'.

        Stationarity reads h(v_l) = t_l - mu with h = f' + psi', so v_l falls as mu grows.
        """
        is_true = _indicator(T.shape, y)
        k = T.shape[1]

        def h(V: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return self.derivative(V, is_true) + distance(V)

        # At mu = max(t - h(1/k)) every entry is at most 1/k; at max(t - h(1)) one of them is 1.
        low = (T - h(np.ones_like(T))).max(axis=1, keepdims=True)
        high = (T - h(np.full_like(T, 1 / k))).max(axis=1, keepdims=True)
        # Where h is flat both are the root itself: step aside, so that the search sees the jump.
        aside = 1e-6 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        low, high = np.minimum(low, high) - aside, np.maximum(low, high) + aside
        V_low, V_high = np.ones_like(T), np.zeros_like(T)
        for _ in range(MAX_ITER):
            mid = 0.5 * (low + high)
            # entries only fall with mu: the known ends bracket the new ones
            V = _increasing_root(h, T - mid, V_high, V_low)
            enough = V.sum(axis=1, keepdims=True) >= 1.0
            low, high = np.where(enough, mid, low), np.where(enough, high, mid)
            V_low, V_high = np.where(enough, V, V_low), np.where(enough, V_high, V)
            if np.all((mid <= low) & (mid >= high)) or np.all(V_low - V_high < 1e-15):
                break
            if np.all((high - low) <= 4e-16 * np.maximum(1.0, np.abs(high))):
                break
        # Where h is flat (an affine f) the entries jump at the root: mix both sides to sum to one.
        above, below = V_low.sum(axis=1, keepdims=True), V_high.sum(axis=1, keepdims=True)
        jump = np.where(above > below, above - below, 1.0)
        share = np.clip((1.0 - below) / jump, 0.0, 1.0)
        V = share * V_low + (1 - share) * V_high
        return V / V.sum(axis=1, keepdims=True)


def _increasing_root(
    h: Callable[[np.ndarray], np.ndarray], target: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The v in [low, high] where the non-decreasing h crosses ``target``, elementwise."""
    low, high = low.copy(), high.copy()
    for _ in range(64):
        mid = 0.5 * (low + high)
        below = h(mid) < target
        low, high = np.where(below, mid, low), np.where(below, high, mid)
        if np.all(high - low <= 1e-17 + 2e-16 * high):
            break
    return np.where(h(high) <= target, high, low)


def _indicator(shape: tuple[int, ...], y: np.ndarray) -> np.ndarray:
    is_true = np.zeros(shape)
    is_true[np.arange(y.size), y] = 1.0
    return is_true
