"""The update of the stochastic subgradient method in one sweep over U."""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import larger, smaller


@kernel(fastmath={"reassoc", "nsz"}, error_model="numpy")
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
            kept = larger(length - thresholds[j], 0.0)
            size += kept
            factor = kept / length if length > 0.0 else 0.0
            for l in range(k):
                U[j, l] *= factor
                U_sum[j, l] += U[j, l]
        else:
            threshold = thresholds[j]
            for l in range(k):
                shrunk = larger(U[j, l] - threshold, 0.0) + smaller(U[j, l] + threshold, 0.0)
                U[j, l] = shrunk
                U_sum[j, l] += shrunk
                size += abs(shrunk)
    return size


@helper(fastmath={"reassoc", "nsz"}, error_model="numpy")
def _above(U: np.ndarray, thresholds: np.ndarray, excess: float) -> tuple[float, int]:
    """The sum of ``|U| - thresholds`` where that is above the excess, and the number of these."""
    d, k = U.shape
    over = 0.0
    number = 0
    for j in range(d):
        threshold = thresholds[j] + excess
        for l in range(k):
            rest = abs(U[j, l]) - threshold
            over += larger(rest, 0.0)
            number += rest > 0.0
    return over + number * excess, number


@kernel(error_model="numpy")
def ball_excess(U: np.ndarray, thresholds: np.ndarray, radius: float, guess: float) -> float:
    """The smallest t >= 0 for which U shrunk by ``thresholds + t`` is inside the l1 ball.

    What is left of the norm falls with t and is convex, so that a Newton step from any guess ends
    below the root, and those after it come up to it (Michelot 1986): few passes from a good guess.
    """
    t = guess
    total, number = _above(U, thresholds, t)
    if number == 0 and t > 0.0:
        t = 0.0
        total, number = _above(U, thresholds, t)
    if number == 0 or (t == 0.0 and total <= radius):
        return 0.0
    while True:
        before, t = number, larger((total - radius) / number, 0.0)
        total, number = _above(U, thresholds, t)
        if number == before or number == 0:  # 0: all equal to their threshold, up to rounding
            return t
