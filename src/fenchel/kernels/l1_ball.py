"""The threshold of the Euclidean projection onto the l1 ball."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import larger


@helper(fastmath={"reassoc"}, error_model="numpy")
def _sum_above(values: np.ndarray, threshold: float) -> tuple[float, float]:
    """The sum and the number of the values above a threshold."""
    total = number = 0.0
    for j in range(values.size):
        total += values[j] if values[j] > threshold else 0.0
        number += 1.0 if values[j] > threshold else 0.0
    return total, number


@kernel(error_model="numpy")
def ball_threshold(values: np.ndarray, radius: float) -> float:
    """The smallest t >= 0 with ``sum max(values - t, 0) <= radius``, for values >= 0.

    The threshold that belongs to a set of values grows while those below it leave the set
    (Michelot 1986); each time is one pass, and few are needed near the ball.
    """
    threshold = 0.0
    total, number = _sum_above(values, threshold)
    if total <= radius:
        return 0.0
    while True:
        threshold = larger(threshold, (total - radius) / number)
        total, left = _sum_above(values, threshold)
        if left == number or left == 0.0:  # 0: values equal to their threshold, up to rounding
            return threshold
        number = left
