"""Rows of the simplex from tables of an increasing function (the dual update of a separable f)."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel

#: Steps on the multiplier of a row, and how close to one its sum should come.
STEPS, CLOSE = 100, 1e-14


@helper()
def cell_of(g: np.ndarray, t: float, guess: int) -> int:
    """The c with ``g[c] <= t < g[c + 1]``, at most the last but one; -1 where t is below all."""
    below, above = -1, g.size - 1
    if guess >= 0 and g[guess] <= t:
        below = guess
        if guess + 1 == above or t < g[guess + 1]:
            return guess
    while above - below > 1:
        middle = (below + above) // 2
        if g[middle] <= t:
            below = middle
        else:
            above = middle
    return below


@kernel(error_model="numpy")
def rows_by_tables(
    T: np.ndarray, y: np.ndarray, g_wrong: np.ndarray, v_wrong: np.ndarray, g_true: np.ndarray,
    v_true: np.ndarray, low: np.ndarray, high: np.ndarray, mu: np.ndarray, cells: np.ndarray,
    V: np.ndarray, slopes: np.ndarray,
) -> None:  # fmt: skip
    """The mu of every row, in [low, high], for which the ``v(T - mu)`` sum to one; V, and v'.

    v is the inverse of the function whose values at v are g, by lines between these; the last line
    goes on, and below the first v is zero. Newton's method, halving where it leaves the interval,
    from the mu that is given; each entry is looked for first where ``cells`` has it, or -1.
    """
    n, k = T.shape
    for i in range(n):
        below, above = low[i], high[i]
        at = last = mu[i]
        for _ in range(STEPS):
            total = rate = 0.0
            for l in range(k):
                g, v = (g_true, v_true) if l == y[i] else (g_wrong, v_wrong)
                t = T[i, l] - at
                c = cells[i, l] = cell_of(g, t, cells[i, l])
                if c < 0:
                    V[i, l] = slopes[i, l] = 0.0
                    continue
                slope = (v[c + 1] - v[c]) / (g[c + 1] - g[c])
                value = v[c] + (t - g[c]) * slope
                V[i, l], slopes[i, l] = value, slope
                total += value
                rate += slope
            excess, last = total - 1.0, at
            if -CLOSE <= excess <= CLOSE:
                break
            if excess > 0.0:
                below = at
            else:
                above = at
            at = at + excess / rate if rate > 0.0 else above
            if not below < at < above:
                at = 0.5 * (below + above)
            if at == last:
                break
        mu[i] = last
