"""Small weighted matrices of products: the blocks of a Hessian that belong to one class."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper
from fenchel.kernels.primitives import matrix, smaller

#: Squares of this size are mirrored at a time.
SQUARE = 32


@helper(fastmath={"reassoc", "contract", "nsz"})
def _four_products(a, b, x, z):
    """``<a, x>, <a, z>, <b, x>, <b, z>``: what is read is used twice."""
    ax = az = bx = bz = 0.0
    for i in range(a.size):
        ax += a[i] * x[i]
        az += a[i] * z[i]
        bx += b[i] * x[i]
        bz += b[i] * z[i]
    return ax, az, bx, bz


@helper(inline="always")
def weighted_products(x, starts, weight, K):
    """``K = M diag(weight) M^T``, where row a of M is what x holds from ``starts[a]`` on.

    Two rows with two rows at a time: up to a hundred rows that is as fast as BLAS, which would
    want a copy of them.
    """
    n, size = weight.size, starts.size
    weighted = matrix(2, n)
    for a in range(0, size, 2):
        last = smaller(a + 1, size - 1)  # the same again where their number is odd
        for s in range(2):
            e = a if s == 0 else last
            row, into = x[starts[e] : starts[e] + n], weighted[s]
            for i in range(n):
                into[i] = row[i] * weight[i]
        for b in range(0, last + 1, 2):
            beside = smaller(b + 1, last)
            one, other = x[starts[b] : starts[b] + n], x[starts[beside] : starts[beside] + n]
            four = _four_products(weighted[0], weighted[1], one, other)
            K[a, b], K[a, beside], K[last, b], K[last, beside] = four
    for a in range(size):
        for b in range(a):
            K[b, a] = K[a, b]


@helper(inline="always")
def mirror(H: np.ndarray) -> None:
    """Copy what is below the diagonal to above it, a square at a time: it stays in the cache."""
    for first in range(0, H.shape[0], SQUARE):
        for start in range(0, first + 1, SQUARE):
            for e in range(first, smaller(first + SQUARE, H.shape[0])):
                for f in range(start, smaller(start + SQUARE, e)):
                    H[f, e] = H[e, f]
