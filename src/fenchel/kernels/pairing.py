"""Inner products of differences, without forming the differences."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import kernel


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def pair_rows(
    A: np.ndarray, A0: np.ndarray, B: np.ndarray, B0: np.ndarray, out: np.ndarray
) -> None:
    """``out_i = sum_l (A - A0)(B - B0)``."""
    n, k = A.shape
    for i in range(n):
        total = 0.0
        for l in range(k):
            total += (A[i, l] - A0[i, l]) * (B[i, l] - B0[i, l])
        out[i] = total
