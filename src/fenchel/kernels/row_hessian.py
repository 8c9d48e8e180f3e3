"""The Hessian on a working set of dense data, sample by sample.

A sample meets only the entries of classes where its curvature h is positive, and with the hinge
loss these are two or three: their few products cost less than one large product by BLAS.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def _positive(h: np.ndarray) -> tuple[float, float]:
    """How many entries of a row are positive, and their sum: one alone makes no curvature."""
    count = total = 0.0
    for l in range(h.size):
        count += 1.0 if h[l] > 0.0 else 0.0
        total += h[l]
    return count, total


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    different = 0.0
    for l in range(a.size):
        different += 1.0 if a[l] != b[l] else 0.0
    return different > 0.0


@njit(cache=True, nogil=True)
def _met(h: np.ndarray, classes: np.ndarray, bounds: np.ndarray) -> float:
    """How many entries belong to the classes of a row with curvature."""
    entries = 0.0
    if _positive(h)[0] > 1.0:
        for t in range(classes.size):
            if h[classes[t]] > 0.0:
                entries += bounds[t + 1] - bounds[t]
    return entries


@njit(cache=True, nogil=True)
def row_work(
    h: np.ndarray,
    before: np.ndarray,
    weights: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
) -> tuple[int, float, float]:
    """The samples with curvature, the entries that they meet, and what a change to h takes.

    The latter in multiplications, from the Hessian for ``before``, which may have no rows.
    """
    n_rows, meetings, work = 0, 0.0, 0.0
    for i in range(h.shape[0]):
        if weights[i] == 0.0:
            continue
        changed = before.shape[0] == 0 or _differ(h[i], before[i])
        entries = _met(h[i], classes, bounds)
        n_rows += _positive(h[i])[0] > 1.0
        meetings += entries
        if changed:
            work += entries * entries
            if before.shape[0] > 0:
                work += _met(before[i], classes, bounds) ** 2
    return n_rows, meetings, work


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _add_row(
    Xt: np.ndarray,
    i: int,
    h: np.ndarray,
    weight: float,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    space: tuple[np.ndarray, np.ndarray, np.ndarray],
    H: np.ndarray,
) -> None:
    """Add the part of one sample."""
    n_positive, total = _positive(h)
    if weight == 0.0 or n_positive <= 1.0:
        return
    active, first, x = space
    n_active = count = 0
    for t in range(classes.size):
        if h[classes[t]] > 0.0:
            active[n_active], first[n_active] = t, count
            n_active += 1
            for e in range(bounds[t], bounds[t + 1]):
                x[count] = Xt[feature[e], i]
                count += 1
    for a in range(n_active):
        t = active[a]
        own = weight * h[classes[t]]
        for b in range(n_active):
            s = active[b]
            factor = -own * h[classes[s]] / total
            if a == b:
                factor += own
            others = x[first[b] : first[b] + bounds[s + 1] - bounds[s]]
            for e in range(bounds[t + 1] - bounds[t]):
                scaled = factor * x[first[a] + e]
                row = H[bounds[t] + e, bounds[s] : bounds[s + 1]]
                for f in range(others.size):
                    row[f] += scaled * others[f]


@njit(cache=True, nogil=True)
def change_row_hessian(
    Xt: np.ndarray,
    h: np.ndarray,
    before: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    H: np.ndarray,
) -> None:
    """From the Hessian for ``before``, or from zero where that has no rows, to that for h.

    ``sum_i weights_i (diag(h_i) - h_i h_i^T / sum(h_i)) (x) x_i x_i^T`` on the entries: those of
    ``classes[t]`` are from ``bounds[t]`` to ``bounds[t + 1]``.
    """
    n_classes = classes.size
    space = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64), np.empty(feature.size)
    for i in range(h.shape[0]):
        if before.shape[0] == 0 or _differ(h[i], before[i]):
            args = feature, classes, bounds, space, H
            _add_row(Xt, i, h[i], weights[i], *args)
            if before.shape[0] > 0:
                _add_row(Xt, i, before[i], -weights[i], *args)
