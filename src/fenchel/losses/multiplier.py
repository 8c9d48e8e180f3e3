"""The root search on the multiplier of ``sum_l v_l = 1`` (the paper's general dual update)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def solve_multiplier(
    entries: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    T0: np.ndarray,
    max_iter: int = 100,
) -> np.ndarray:
    """Return V with rows summing to one, where ``V = v(T0 - mu)`` for one mu a row.

    ``entries(T)`` gives v(T) and its derivative, for v increasing and convex, so that Newton's
    method started where the sum is at least one falls onto the root from one side.
    """
    # v is increasing with v(T) -> 0: at mu = max T0 - v^{-1}(1) the largest entry alone is one.
    mu = T0.max(axis=1) - _inverse_at_one(entries)
    for _ in range(max_iter):
        V, slope = entries(T0 - mu[:, None])
        excess = V.sum(axis=1) - 1.0
        step = excess / slope.sum(axis=1)
        mu += step
        if np.all(np.abs(excess) <= 1e-14 * T0.shape[1]):
            break
    V, _ = entries(T0 - mu[:, None])
    return V / V.sum(axis=1, keepdims=True)  # the last rounding errors


def _inverse_at_one(entries: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> float:
    """The t with v(t) = 1, by Newton from the right (v is convex and increasing)."""
    t = np.array([0.0])
    while entries(t)[0][0] < 1.0:
        t = 2 * t + 1.0
    for _ in range(200):
        value, slope = entries(t)
        step = (value - 1.0) / slope
        t = t - step
        if abs(step[0]) <= 1e-15 * max(1.0, abs(t[0])):
            break
    return float(t[0])
