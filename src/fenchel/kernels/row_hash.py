"""Hashes of the rows of a matrix, the same for a dense row and for a sparse one."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel

#: The sign bit: minus zero counts as zero.
SIGN = np.uint64(1 << 63)


@helper()
def _mixed(h):
    """The finaliser of splitmix64."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@helper()
def _entry(bits, j):
    return _mixed(bits ^ _mixed(np.uint64(j) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)))


@kernel()
def hash_dense(bits, out):
    """The sum, modulo 2^64, of a hash of every (column, value) that is not zero.

    ``bits`` is a block of rows of float64, seen as uint64.
    """
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            if bits[i, j] & ~SIGN:
                total += _entry(bits[i, j], j)
        out[i] = total


@kernel()
def hash_sparse(indptr, indices, bits, out):
    """The same for rows in CSR form."""
    for i in range(out.size):
        total = np.uint64(0)
        for t in range(indptr[i], indptr[i + 1]):
            if bits[t] & ~SIGN:
                total += _entry(bits[t], indices[t])
        out[i] = total
