"""Any loss whose f is separable: the paper's general route to the dual update."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from fenchel.kernels.simplex import SMALLEST
from fenchel.losses.base import Loss, true_class
from fenchel.losses.bracket import bracket_root
from fenchel.losses.scalar_functions import NO_MASS, OFF, ScalarFunction, tabulate
from fenchel.losses.tabulated import NODES, maximise_by_tables, suits

#: phi'' above this everywhere: Newton steps need no proximal term.
STRONG = 0.05

#: ``1 / phi''`` below the second at v equal to the first: it vanishes at 0.
TINY, KINK = 1e-12, 1e-4

#: phi'' is a difference quotient over this part of v; over as much itself where the difference is
#: no more than so many roundings.
NEAR, ROUNDINGS = 1e-5, 1000


class SeparableLoss(Loss):
    """``f(v, y) = sum_l phi(v_l, y_l)`` for a convex phi given with its derivative.

    Every step solves the Lagrangian's one-dimensional problems for a given multiplier, and finds
    the multiplier of ``sum_l v_l = 1`` by root search, as the paper proposes. That costs some
    dozens of evaluations of the derivative where it increases, and hundreds where it is flat: a
    loss with a closed form deserves a file of its own.

    What the Newton steps want to know of phi'' they read off the derivative: whether it is bounded
    away from zero, so that the loss is smooth, and the curvature ``1 / phi''``.

    Parameters
    ----------
    phi, derivative : callable
        ``phi(v, is_true)`` and its derivative in v, elementwise on arrays; ``is_true`` is 1.0 in
        the true class and 0.0 elsewhere. The derivative must not decrease in v on [0, 1]; it may
        be minus infinity at 0. ``sum_l phi`` is shifted so that f(y, y) = 0.
    affine : bool
        True where phi is affine in v.

    Raises
    ------
    ValueError
        Where phi is not finite, its derivative decreases, or the one is not the derivative of the
        other: the loss would be understated, and with it every gap.
    """

    name: ClassVar[str] = "separable"

    def __init__(
        self, phi: ScalarFunction, derivative: ScalarFunction, *, affine: bool = False
    ) -> None:
        self.phi = phi
        self.derivative = derivative
        self.affine = affine
        # of wrong classes and of the true one
        self._tables = np.array([tabulate(phi, derivative, is_true) for is_true in (0.0, 1.0)])
        self.smooth = self._is_smooth()
        self.twice_differentiable = self.smooth and self._leaves_smoothly()
        self.by_label = not np.array_equal(*self._tables)
        if affine and np.ptp(self._tables[:, 1:], axis=1).max() > OFF * np.abs(self._tables).max():
            raise ValueError("affine=True is for a phi with a constant derivative.")

    def _is_smooth(self) -> bool:
        there = NODES >= NO_MASS
        g = self._tables[:, there]
        rounding = ROUNDINGS * np.finfo(np.float64).eps * np.abs(g[:, 1:])
        return bool((np.diff(g) >= STRONG * np.diff(NODES[there]) - rounding).all())

    def _leaves_smoothly(self) -> bool:
        """Whether ``1 / phi''`` vanishes at 0, so that entries leave the support without a kink."""
        y = np.zeros(1, dtype=np.int64)
        return bool(self.curvature(np.full((1, 2), TINY), 1.0, y).max() < KINK)

    def curvature(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        """``1 / phi''`` where the loss is smooth, else ``1 / (phi'' + 1/eta)`` in units of eta."""
        is_true = _indicator(V.shape, y)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope, rise = self._quotient(V, NEAR * V, is_true)
            lost = rise <= ROUNDINGS * np.finfo(np.float64).eps * np.abs(
                self.derivative(V, is_true)
            )
            if lost.any():
                slope = np.where(lost, self._quotient(V, NEAR, is_true)[0], slope)
            h = 1.0 / np.maximum(slope, STRONG) if self.smooth else 1.0 / (1.0 + eta * slope)
        return np.where(V >= NO_MASS, h, 0.0)

    def _quotient(
        self, V: np.ndarray, step: np.ndarray | float, is_true: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the derivative rises by around V, by the length of the way and as it is."""
        above, below = np.minimum(V + step, 1.0), np.maximum(V - step, 0.0)
        rise = self.derivative(above, is_true) - self.derivative(below, is_true)
        return rise / (above - below), rise

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        is_true = _indicator(V.shape, y)
        at_label = self.phi(is_true, is_true).sum(axis=1)
        return self.phi(np.asarray(V, dtype=np.float64), is_true).sum(axis=1) - at_label

    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.value_and_argmax(Z, y)[0]

    def value_and_argmax(self, Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = self.argmax(Z, y)
        return np.einsum("il,il->i", V, Z) - true_class(Z, y) - self.f(V, y), V

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
        tables = self._tables + distance(NODES)
        if not all(suits(table) for table in tables):
            return self._bracketed(T, y, distance)
        is_true = _indicator(T.shape, y)
        V, solved = maximise_by_tables(
            T, y, tables, lambda V: self.derivative(V, is_true) + distance(V)
        )
        if not solved.all():
            V[~solved] = self._bracketed(T[~solved], y[~solved], distance)
        return V

    def _bracketed(
        self, T: np.ndarray, y: np.ndarray, distance: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The same by nested brackets, for a derivative that is flat or has jumps."""
        is_true = _indicator(T.shape, y)

        def h(V: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return self.derivative(V, is_true) + distance(V)

        def entries(mu: np.ndarray) -> np.ndarray:
            return _increasing_root(h, T - mu)

        # At mu = max(t - h(1/k)) every entry is at most 1/k; at max(t - h(1)) one of them is 1.
        low = (T - h(np.ones_like(T))).max(axis=1, keepdims=True)
        high = (T - h(np.full_like(T, 1 / T.shape[1]))).max(axis=1, keepdims=True)
        # Where h is flat both are the root itself: step aside, so that the search sees the jump.
        aside = 1e-6 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        low, high = np.minimum(low, high) - aside, np.maximum(low, high) + aside
        low, high = bracket_root(lambda mu: 1.0 - entries(mu).sum(axis=1, keepdims=True), low, high)
        # Where h is flat (an affine f) the entries jump at the root: mix both sides to sum to one.
        V_low, V_high = entries(low), entries(high)
        above, below = V_low.sum(axis=1, keepdims=True), V_high.sum(axis=1, keepdims=True)
        jump = np.where(above > below, above - below, 1.0)
        share = np.clip((1.0 - below) / jump, 0.0, 1.0)
        V = share * V_low + (1 - share) * V_high
        return V / V.sum(axis=1, keepdims=True)


def _increasing_root(h: Callable[[np.ndarray], np.ndarray], target: np.ndarray) -> np.ndarray:
    """The v in [0, 1] where the non-decreasing h crosses ``target``, elementwise."""
    low, high = bracket_root(
        lambda V: h(V) - target, np.zeros_like(target), np.ones_like(target), smallest=1e-18
    )
    return np.where(h(high) <= target, high, low)


def _indicator(shape: tuple[int, ...], y: np.ndarray) -> np.ndarray:
    is_true = np.zeros(shape)
    is_true[np.arange(y.size), y] = 1.0
    return is_true
