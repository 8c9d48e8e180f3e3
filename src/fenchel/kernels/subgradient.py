"""The update of the stochastic subgradient method in one sweep over U."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def shrink_and_sum(U: np.ndarray, thresholds: np.ndarray, group: bool, U_sum: np.ndarray) -> float:
    """Soft-threshold U in place, add it to ``U_sum``, and return its penalty norm.

    Row j is shrunk by ``thresholds[j]``: entry by entry, or as a whole with ``group``.
    """
    d, k = U.shape
    size = 0.0
    for j in range(d):
        if group:
            length = 0.0
            for l in range(k):
                length += U[j, l] * U[j, l]
            length = math.sqrt(length)
            kept = max(length - thresholds[j], 0.0)
            size += kept
            factor = kept / length if length > 0.0 else 0.0
            for l in range(k):
                U[j, l] *= factor
                U_sum[j, l] += U[j, l]
        else:
            threshold = thresholds[j]
            for l in range(k):
                shrunk = max(U[j, l] - threshold, 0.0) + min(U[j, l] + threshold, 0.0)
                U[j, l] = shrunk
                U_sum[j, l] += shrunk
                size += abs(shrunk)
    return size
