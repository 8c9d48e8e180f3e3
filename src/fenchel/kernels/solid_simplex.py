"""The multiplicative step on the solid simplex of the doubled problem."""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.exp import exp, exp_bounded
from fenchel.kernels.primitives import larger

#: Beyond this exponent one exponential no longer serves both halves (1/exp overflows).
ONE_EXP_LIMIT = 300.0


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def multiply_halves(
    U: np.ndarray, S: np.ndarray, eta: float, shrink: np.ndarray, shift: float, out: np.ndarray
) -> float:
    """``out = U * exp(-eta [S; -S] - shrink - shift)`` (the numerator of UpdatesForU); its sum.

    U and out are (2d, k): the halves U1 and U2 of U1 - U2. ``shrink`` is (d,), the exponent of the
    penalty. One exponential serves both halves, since exp(-a) = 1 / exp(a), unless ``shift`` (used
    for very long steps) asks for a common offset.
    """
    d, k = S.shape
    total = 0.0
    for j in range(d):
        common = math.exp(-shrink[j] - shift)
        if shift == 0.0:
            for l in range(k):
                e = exp_bounded(-eta * S[j, l])
                out[j, l] = U[j, l] * e * common
                out[d + j, l] = U[d + j, l] / e * common
        else:
            for l in range(k):
                a = eta * S[j, l]
                out[j, l] = U[j, l] * exp(-a - shrink[j] - shift)
                out[d + j, l] = U[d + j, l] * exp(a - shrink[j] - shift)
        for l in range(k):
            total += out[j, l] + out[d + j, l]
    return total


@kernel(error_model="numpy")
def rescale(A: np.ndarray, factor: float, smallest: float) -> None:
    """``A <- max(A * factor, smallest)`` in place."""
    rows, columns = A.shape
    for i in range(rows):
        for l in range(columns):
            A[i, l] = larger(A[i, l] * factor, smallest)
