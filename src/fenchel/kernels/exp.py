"""A branch-free exponential that the compiler can vectorise.

``math.exp`` is an opaque call for LLVM, so a loop around it stays scalar. Here exp(x) = 2^m e^r
with m = round(x / log 2), |r| <= log(2)/2 and a polynomial of degree 11 for e^r, all in plain
arithmetic. It differs from numpy's by at most one unit in the last place.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from fenchel.kernels.compiled import helper, kernel

# Adding 1.5 * 2^52 rounds a double to the nearest integer and leaves that integer in its low bits.
_ROUND = 6755399441055744.0
_LOG2_E = 1.4426950408889634
# log 2 in two parts: the first has 32 significant bits, so m * _LN2_HI is exact.
_LN2_HI = 0.6931471803691238
_LN2_LO = 1.9082149292705877e-10
# (e^r - 1 - r) / r^2 interpolated at the Chebyshev nodes of |r| <= log(2)/2, so that the
# relative error of e^r is 2e-17.
_Q0, _Q1, _Q2, _Q3, _Q4 = (
    0.5,
    0.16666666666666669,
    0.041666666666624164,
    0.008333333333330065,
    0.0013888888917196719,
)
_Q5, _Q6, _Q7, _Q8, _Q9 = (
    0.00019841269863040545,
    2.4801521322368692e-05,
    2.7557268480310024e-06,
    2.7620075879983367e-07,
    2.5100375832561234e-08,
)
#: Where shorter polynomials do: the remainder is below 1e-17.
SMALL, TINY = 1.0 / 16.0, 1.0 / 80.0
# Below the first the answer rounds to 0, above the second it is infinite.
_LOWEST, _HIGHEST = -745.5, 709.9


@intrinsic
def _bits(typingctx, x):
    """The 64 bits of a double, as an integer."""
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(
        args[0], context.get_value_type(types.int64)
    )


@intrinsic
def _double(typingctx, b):
    """The double with these 64 bits."""
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(
        args[0], context.get_value_type(types.float64)
    )


@helper(fastmath={"contract"}, forceinline=True)
def _split(x):
    """(e^r, m) with x = m log 2 + r."""
    t = x * _LOG2_E + _ROUND
    m = t - _ROUND
    r = (x - m * _LN2_HI) - m * _LN2_LO
    q = _Q9
    q = q * r + _Q8
    q = q * r + _Q7
    q = q * r + _Q6
    q = q * r + _Q5
    q = q * r + _Q4
    q = q * r + _Q3
    q = q * r + _Q2
    q = q * r + _Q1
    q = q * r + _Q0
    return 1.0 + (r + r * r * q), _bits(t) - _bits(_ROUND)


@helper(fastmath={"contract"}, forceinline=True)
def _power_of_two(m):
    return _double(m + 1023 << 52)


@kernel(fastmath={"contract"}, forceinline=True)
def exp(x: float) -> float:
    """e^x over the whole range: subnormal results, 0, inf and nan come out as in numpy."""
    # In this order of the comparisons a nan survives.
    x = x if not (x > _HIGHEST) else _HIGHEST
    x = x if not (x < _LOWEST) else _LOWEST
    e_r, m = _split(x)
    # 2^m in two factors, because 2^m itself may be out of range while the answer is not.
    half = (m + 4096 >> 1) - 2048
    return e_r * _power_of_two(half) * _power_of_two(m - half)


@kernel(fastmath={"contract"}, forceinline=True)
def exp_bounded(x: float) -> float:
    """e^x for |x| <= 700, which the caller vouches for; outside, the answer is meaningless."""
    e_r, m = _split(x)
    return e_r * _power_of_two(m)


@kernel(fastmath={"contract"}, forceinline=True)
def exp_small(x: float) -> float:
    """e^x for |x| <= SMALL: Taylor's polynomial of degree 9, without range reduction."""
    q = 1.0 / 362880.0
    q = q * x + 1.0 / 40320.0
    q = q * x + 1.0 / 5040.0
    q = q * x + 1.0 / 720.0
    q = q * x + 1.0 / 120.0
    q = q * x + 1.0 / 24.0
    q = q * x + 1.0 / 6.0
    q = q * x + 0.5
    return 1.0 + (x + x * x * q)


@kernel(fastmath={"contract"}, forceinline=True)
def exp_tiny(x: float) -> float:
    """e^x for |x| <= TINY, by degree 6."""
    q = 1.0 / 720.0
    q = q * x + 1.0 / 120.0
    q = q * x + 1.0 / 24.0
    q = q * x + 1.0 / 6.0
    q = q * x + 0.5
    return 1.0 + (x + x * x * q)


@helper(fastmath={"contract"}, forceinline=True)
def exp_multiples(c, x, largest, out):
    """out_i = e^(c x_i), where |x_i| <= largest and |c| largest <= 700."""
    if abs(c) * largest <= TINY:
        for i in range(x.size):
            out[i] = exp_tiny(c * x[i])
    elif abs(c) * largest <= SMALL:
        for i in range(x.size):
            out[i] = exp_small(c * x[i])
    else:
        for i in range(x.size):
            out[i] = exp_bounded(c * x[i])
