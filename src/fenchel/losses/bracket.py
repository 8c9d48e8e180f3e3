"""Root search by bracketing, on whole arrays at once (Chandrupatla 1997)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MAX_ITER = 200


def bracket_root(
    function: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    smallest: float = 1e-300,
) -> tuple[np.ndarray, np.ndarray]:
    """Shrink [low, high] around the point where a non-decreasing function turns positive.

    Each element ends with neighbouring numbers, or numbers closer than ``smallest``, such that
    ``function(low) <= 0 <= function(high)``; where the
    whole interval lies on one side, both ends are the end nearest to the root. Inverse quadratic
    interpolation where it is safe, bisection elsewhere: jumps and infinite values are allowed.
    """
    f_low, f_high = function(low), function(high)
    a, b = np.where(f_low >= 0, low, high), np.where(f_high <= 0, high, low)
    fa, fb = np.where(f_low >= 0, f_low, f_high), np.where(f_high <= 0, f_high, f_low)
    c, fc = b.copy(), fb.copy()  # c is the end last given up
    t = np.full(a.shape, 0.5)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for _ in range(MAX_ITER):
            width = np.abs(b - a)
            resolution = 2.3e-16 * np.maximum(np.abs(a), np.abs(b)) + smallest
            if np.all(width <= 2 * resolution):
                break
            x = a + t * (b - a)
            fx = function(x)
            same = np.sign(fx) == np.sign(fa)
            c, fc = np.where(same, a, b), np.where(same, fa, fb)
            b, fb = np.where(same, b, a), np.where(same, fb, fa)
            a, fa = x, fx
            exact = fx == 0
            b, fb = np.where(exact, a, b), np.where(exact, fa, fb)
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (
                fc - fb
            )
            t = np.where(safe & np.isfinite(step), step, 0.5)
            edge = resolution / np.maximum(np.abs(b - a), resolution)
            t = np.clip(t, np.minimum(edge, 0.5), np.maximum(1 - edge, 0.5))
    return np.minimum(a, b), np.maximum(a, b)
