"""The dual update of a separable loss by tables of its derivative: fast where that is increasing.

Stationarity on the simplex reads ``g(v_l) = t_l - mu`` with an increasing g for the true class and
another one for the rest. Tables of both say v and mu to some four digits, and once more and two
digits are gained each time that they are asked for what they were off by. A row counts as solved
only if a bound says that its maximum is no larger: a loss that is too small would make gaps small.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.kernels.tabulated import rows_by_tables

Function = Callable[[np.ndarray], np.ndarray]

#: Values of an increasing function, and where it has them.
Table = tuple[np.ndarray, np.ndarray]

#: Where functions are tabulated: some 100 places a decade as far down as an entry of V counts, few
#: below, where entropies still differ.
NODES = np.unique(
    np.concatenate(
        [np.logspace(-300, -18, 1500), np.logspace(-18, 0, 1801), np.linspace(0, 1, 201)]
    )
)

NODES.flags.writeable = False  # functions of users get it

#: Below this v, g may be flat by rounding.
LEAST = 1e-3

#: Times that the tables are asked, until the errors of v are below the second number for each
#: class. Rows that take more are left to bracketing.
STEPS, CLOSE = 12, 1e-15

#: Rounding of T, g and mu, in their units: times the slope of v it is what no step can mend of a
#: row sum, up to the second.
ROUNDING, AT_MOST = 4 * np.finfo(np.float64).eps, 1e-6

#: What a row may be below its maximum, in parts of its scores.
BELOW = 1e-14


def suits(g: np.ndarray) -> bool:
    """Whether g, at ``NODES``, can be inverted so: finite but at 0, and nowhere flat."""
    with np.errstate(invalid="ignore"):
        rise = np.diff(g)
    increasing = (rise >= 0.0).all() and (rise[NODES[1:] > LEAST] > 0.0).all()
    return bool(increasing and np.isfinite(g[1:]).all())


def maximise_by_tables(
    T: np.ndarray, y: np.ndarray, tables: np.ndarray, g: Function
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
    is_true = np.arange(T.shape[1]) == y[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # of slopes where g is as good as flat
        V, mu, solved = _solve(T, y, is_true, wrong, true, g)
        t = T - mu[:, None]
        off = t - g(V)  # at zero g may be minus infinity, which the next largest has to do for
        off = np.where(V > 0.0, off, t - np.where(is_true, true[0][0], wrong[0][0]))
        lowest, highest = _between(t, is_true, wrong, true)
        # phi is convex: a step from V to the maximum gains no more than its slope at V says
        gain = np.where(off > 0.0, off * np.maximum(highest - V, 0.0),
                        -off * np.maximum(V - lowest, 0.0))  # fmt: skip
        solved &= gain.sum(axis=1) <= BELOW * (np.abs(T).max(axis=1) + np.abs(mu))
    return V, solved


def _solve(
    T: np.ndarray, y: np.ndarray, is_true: np.ndarray, wrong: Table, true: Table, g: Function
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V, mu, and which rows seem to be solved; not those with jumps of g, maybe."""
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
    solved &= (np.abs(excess) <= AT_MOST) & (rate > 0.0) & np.isfinite(rate)
    share = np.divide(excess, rate, out=np.zeros_like(rate), where=solved)
    V = np.maximum(V - slopes * share[:, None], 0.0)
    V /= np.where(solved, V.sum(axis=1), 1.0)[:, None]
    return np.where(solved[:, None], V, 0.0), mu, solved


def _between(
    t: np.ndarray, is_true: np.ndarray, wrong: Table, true: Table
) -> tuple[np.ndarray, np.ndarray]:
    """The nodes between which g takes the values t; the first or the last beyond its range."""
    bounds = []
    for g, v in (wrong, true):
        above = np.searchsorted(g, t)
        bounds.append((v[np.maximum(above - 1, 0)], v[np.minimum(above, v.size - 1)]))
    (low, high), (low_true, high_true) = bounds
    return np.where(is_true, low_true, low), np.where(is_true, high_true, high)


def _first_slope(g: np.ndarray, v: np.ndarray) -> float:
    """What an entry that enters the support begins to grow with."""
    return float((v[1] - v[0]) / (g[1] - g[0]))


def _increasing(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g and the nodes, without those where g is no larger than before, or minus infinity.

    Next to zero it may be the same but for rounding.
    """
    kept = np.append(g[0] > -np.inf, g[1:] > g[:-1])
    return g[kept], NODES[kept]
