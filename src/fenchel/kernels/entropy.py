"""Kullback-Leibler divergences, the Bregman divergences of the entropy potentials."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.exp import _bits, _double
from fenchel.kernels.primitives import larger
from fenchel.kernels.simplex import SMALLEST

_LN2 = 0.6931471805599453
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_BIAS = 1024 << 52
# an integer below 2^52 in the low bits of this double is that integer, added to 2^52
_TWO_52, _TWO_52_BITS = 4503599627370496.0, 0x4330000000000000
_MANTISSA = 0x000FFFFFFFFFFFFF
# 2 atanh(s) = log((1+s)/(1-s)) = 2 s (1 + s^2/3 + s^4/5 + ...); |s| <= 0.1716 needs ten terms
_C = tuple(1.0 / (2 * i + 1) for i in range(11))
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _C[1:]


@intrinsic
def _shift_right_52(typingctx, b):
    """The upper twelve bits; a logical shift, since an arithmetic one does not vectorise."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.lshr(
        args[0], context.get_constant(types.int64, 52)
    )


@helper(fastmath={"contract"}, forceinline=True, error_model="numpy")
def log_positive(x: float) -> float:
    """log x for a normal, positive, finite x, in plain arithmetic that vectorises."""
    # x = m 2^exponent with m in [sqrt(1/2), sqrt 2)
    shifted = _bits(x) - _SQRT_HALF_BITS
    biased = _shift_right_52(shifted + _BIAS)
    exponent = _double(biased | _TWO_52_BITS) - (_TWO_52 + 1024.0)
    m = _double((shifted & _MANTISSA) + _SQRT_HALF_BITS)
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = _C10
    p = p * q + _C9
    p = p * q + _C8
    p = p * q + _C7
    p = p * q + _C6
    p = p * q + _C5
    p = p * q + _C4
    p = p * q + _C3
    p = p * q + _C2
    p = p * q + _C1
    return exponent * _LN2 + 2.0 * s * (1.0 + q * p)


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def kl_rows(X: np.ndarray, X0: np.ndarray, out: np.ndarray) -> None:
    """``out_i = sum_l x log(x / x0) - x + x0``; entries below SMALLEST count as SMALLEST."""
    n, k = X.shape
    for i in range(n):
        total = 0.0
        for l in range(k):
            x, x0 = larger(X[i, l], SMALLEST), larger(X0[i, l], SMALLEST)
            total += x * log_positive(x / x0) - x + x0
        out[i] = total
