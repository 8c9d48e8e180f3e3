"""The Hessian on a working set of dense data, sample by sample.

A sample meets only the entries of classes where its curvature h is positive, and with the hinge
loss these are two or three: their few products cost less than one large product by BLAS.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rows and columns of the squares in which a triangle is copied to the other.
SQUARE = 32


@njit(cache=True, nogil=True)
def _positive(h: np.ndarray) -> tuple[int, float]:
    """How many entries of a row are positive, and their sum: one alone makes no curvature."""
    count, total = 0, 0.0
    for l in range(h.size):
        if h[l] > 0.0:
            count += 1
            total += h[l]
    return count, total


@njit(cache=True, nogil=True)
def row_work(
    h: np.ndarray, weights: np.ndarray, classes: np.ndarray, bounds: np.ndarray
) -> tuple[int, float, float]:
    """The samples with curvature, the entries that they meet, and the sum of their squares."""
    n_rows, meetings, squares = 0, 0.0, 0.0
    for i in range(h.shape[0]):
        if weights[i] == 0.0 or _positive(h[i])[0] <= 1:
            continue
        entries = 0
        for t in range(classes.size):
            if h[i, classes[t]] > 0.0:
                entries += bounds[t + 1] - bounds[t]
        n_rows += 1
        meetings += entries
        squares += entries * float(entries)
    return n_rows, meetings, squares


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def add_row_hessian(
    Xt: np.ndarray,
    h: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    H: np.ndarray,
) -> None:
    """``H += sum_i weights_i (diag(h_i) - h_i h_i^T / sum(h_i)) (x) x_i x_i^T`` on the entries.

    The entries of ``classes[t]`` are those from ``bounds[t]`` to ``bounds[t + 1]``.
    """
    active = np.empty(classes.size, np.int64)
    first = np.empty(classes.size, np.int64)
    x = np.empty(feature.size)
    for i in range(h.shape[0]):
        n_positive, total = _positive(h[i])
        if weights[i] == 0.0 or n_positive <= 1:
            continue
        n_active = count = 0
        for t in range(classes.size):
            if h[i, classes[t]] > 0.0:
                active[n_active], first[n_active] = t, count
                n_active += 1
                for e in range(bounds[t], bounds[t + 1]):
                    x[count] = Xt[feature[e], i]
                    count += 1
        for a in range(n_active):
            t = active[a]
            weight = weights[i] * h[i, classes[t]]
            for b in range(a + 1):
                s = active[b]
                factor = -weight * h[i, classes[s]] / total
                if a == b:
                    factor += weight
                size = bounds[s + 1] - bounds[s]
                others = x[first[b] : first[b] + size]
                for e in range(bounds[t + 1] - bounds[t]):
                    scaled = factor * x[first[a] + e]
                    row = H[bounds[t] + e, bounds[s] : bounds[s + 1]]
                    for f in range(size):
                        row[f] += scaled * others[f]
    mirror(H)


@njit(cache=True, nogil=True)
def mirror(H: np.ndarray) -> None:
    """Copy what is below the diagonal to above it."""
    size = H.shape[0]
    for top in range(0, size, SQUARE):
        for left in range(0, top + 1, SQUARE):
            for i in range(top, min(top + SQUARE, size)):
                for j in range(left, min(left + SQUARE, i)):
                    H[j, i] = H[i, j]
