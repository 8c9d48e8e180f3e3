"""Cholesky factors of the blocks of a preconditioner, and what they solve.

The factor L of a block, ``L L^T = K``, is stored row after row up to its diagonal, with one over
the diagonal in its place; the blocks follow one another. A factor takes an eighth of the work of an
inverse, half of its memory, and as many multiplications when it is used.
"""

from __future__ import annotations

import math

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import larger

#: A pivot is at least this part of its entry: K is positive definite but for rounding.
LEAST_PIVOT = 1e-14


def factor_size(sizes):
    """Numbers in the factors of blocks of these sizes."""
    return sizes * (sizes + 1) // 2


@helper(fastmath={"reassoc", "contract", "nsz"})
def _inner(x, z):
    """``<x, z>``."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * z[i]
    return total


@kernel()
def factorise(K, factor):
    """The factor of K, of which the part from the diagonal down is read."""
    at = 0
    for a in range(K.shape[0]):
        row, other = factor[at : at + a + 1], 0
        for b in range(a):
            row[b] = (K[a, b] - _inner(row[:b], factor[other : other + b])) * factor[other + b]
            other += b + 1
        pivot = larger(K[a, a] - _inner(row[:a], row[:a]), LEAST_PIVOT * K[a, a])
        row[a] = 1.0 / math.sqrt(pivot) if pivot > 0.0 else 1.0
        at += a + 1


@kernel()
def pack_factor(L, factor):
    """The same from a factor that is known, rows of a square array."""
    at = 0
    for a in range(L.shape[0]):
        row = factor[at : at + a + 1]
        for b in range(a):
            row[b] = L[a, b]
        row[a] = 1.0 / L[a, a]
        at += a + 1


@kernel(fastmath={"reassoc", "contract", "nsz"})
def precondition(bounds, factors, residual, out):
    """``out = blocks^-1 residual``, by a solution with L and one with L^T for each of them."""
    start = 0
    for t in range(bounds.size - 1):
        size = bounds[t + 1] - bounds[t]
        right, z = residual[bounds[t] : bounds[t + 1]], out[bounds[t] : bounds[t + 1]]
        at = start
        for a in range(size):  # L z = residual
            row = factors[at : at + a]
            z[a] = (right[a] - _inner(row, z[:a])) * factors[at + a]
            at += a + 1
        start = at
        for a in range(size - 1, -1, -1):  # L^T z = z, whose columns are the rows of L
            at -= a + 1
            row, known = factors[at : at + a], z[a] * factors[at + a]
            z[a] = known
            for b in range(a):
                z[b] -= known * row[b]
