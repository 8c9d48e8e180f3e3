"""The dual update of a separable loss by tables of its derivative: fast where that is increasing.

Stationarity on the simplex reads ``g(v_l) = t_l - mu`` with an increasing g for the true class and
another one for the rest. Tables of both say v and mu to some four digits, and once more and two
digits are gained each time that they are asked for what they were off by.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.kernels.tabulated import rows_by_tables

#: Where functions are tabulated: some 100 places a decade as far down as an entry of V counts, few
#: below, where entropies still differ.
NODES = np.unique(
    np.concatenate(
        [np.logspace(-300, -18, 1500), np.logspace(-18, 0, 1801), np.linspace(0, 1, 201)]
    )
)

#: Below this v, g may be flat by rounding.
LEAST = 1e-3

#: Times that the tables are asked, until the errors of v are below the second number for each
#: class. Rows that take more are left to bracketing.
STEPS, CLOSE = 12, 1e-15

#: Rounding of T, g and mu, in their units: times the slope of v it is what no step can mend of a
#: row sum, up to the second.
ROUNDING, AT_MOST = 4 * np.finfo(np.float64).eps, 1e-6


def suits(g: np.ndarray) -> bool:
    """Whether g, at ``NODES``, can be inverted so: finite but at 0, and nowhere flat."""
    with np.errstate(invalid="ignore"):
        rise = np.diff(g)
    increasing = (rise >= 0.0).all() and (rise[NODES[1:] > LEAST] > 0.0).all()
    return bool(increasing and np.isfinite(g[1:]).all())


def maximise_by_tables(
    T: np.ndarray, y: np.ndarray, tables: np.ndarray, g: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The V with ``g(V) = T - mu`` and rows that sum to one, and which rows do.

    Parameters
    ----------
    T : (n, k) array
    y : (n,) array
        The true classes.
    tables : (2, nodes) array
        g at ``NODES``, for wrong classes and for the true one; each of them ``suits``.
    g : callable
        Of V as a whole.
    """
    wrong, true = (_increasing(table) for table in tables)
    # at the first mu one entry is 1, at the second all are at most 1/k
    k = T.shape[1]
    at_one = g(np.ones_like(T))
    low = (T - at_one).max(axis=1)
    high = (T - g(np.full_like(T, 1.0 / k))).max(axis=1)
    width = 1e-3 * (1.0 + np.abs(high) + np.abs(low))
    low, high = low - width, high + width  # tables are not exact
    mu, V, slopes = 0.5 * (low + high), np.empty(T.shape), np.empty(T.shape)
    size = np.maximum(np.abs(T), np.abs(at_one)).max(axis=1)
    # where the tables are off by "off" at V, they are asked for the V of T less that
    off, cells = np.zeros_like(T), np.full(T.shape, -1, dtype=np.int32)
    is_true = np.arange(k) == y[:, None]
    first = np.where(is_true, true[0][0], wrong[0][0])
    enters = np.where(is_true, _first_slope(*true), _first_slope(*wrong))
    for _ in range(STEPS):
        rows_by_tables(T - off, y, *wrong, *true, low, high, mu, cells, V, slopes)
        t, used = T - mu[:, None], V > 0.0
        error = np.where(used, g(np.minimum(V, 1.0)) - t, 0.0)
        missing = np.where(used, 0.0, enters * np.maximum(t - first, 0.0))
        rounding = ROUNDING * np.maximum(size, np.abs(mu)) * slopes.sum(axis=1)
        wanting = (np.abs(slopes * error) + missing).sum(axis=1)
        solved = wanting <= CLOSE * k + np.minimum(rounding, AT_MOST)
        if solved.all():
            break
        off = np.where(used, off + error, 0.0)
    # what rounding leaves of a row sum belongs to the entries that it hits, those of large slope
    excess, rate = V.sum(axis=1) - 1.0, slopes.sum(axis=1)
    solved &= (np.abs(excess) <= AT_MOST) & (rate > 0.0)
    share = np.divide(excess, rate, out=np.zeros_like(rate), where=solved)
    V = np.maximum(V - slopes * share[:, None], 0.0)
    return V / np.where(solved, V.sum(axis=1), 1.0)[:, None], solved


def _first_slope(g: np.ndarray, v: np.ndarray) -> float:
    """What an entry that enters the support begins to grow with."""
    return float((v[1] - v[0]) / (g[1] - g[0]))


def _increasing(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g and the nodes, without those where g is no larger than before, or minus infinity.

    Next to zero it may be the same but for rounding.
    """
    kept = np.append(g[0] > -np.inf, g[1:] > g[:-1])
    return g[kept], NODES[kept]
