"""The blocks of a Hessian within the classes, whose factors are the preconditioner.

Entries and positions are those of :mod:`fenchel.kernels.l1_newton`. With the values of X of a
class in the rows of M, its block is ``M diag(c) M^T`` for ``c = weight (1 - share)``.
A block is stored as its rows up to the diagonal, one after the other, as its factor will be.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.block_factors import factorise
from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.gram import weighted_products
from fenchel.kernels.primitives import empty, floats, larger, smaller, square


@helper()
def _range(entries, packed):
    """From the first to the last position of some entries, and how many values they have."""
    start, stop, base, position, _ = packed
    low, high, stored = np.int64(1 << 62), np.int64(0), 0
    for e in range(entries[0], entries[1]):
        if stop[e] > start[e]:
            low = smaller(low, base[e] + position[start[e]])
            high = larger(high, base[e] + position[stop[e] - 1] + 1)
            stored += stop[e] - start[e]
    return (low, high, stored) if stored > 0 else (np.int64(0), np.int64(0), 0)


@kernel()
def block_ranges(bounds, packed):
    """For every block the first and last of its positions, and how many values it has."""
    out = np.empty((bounds.size - 1, 3), np.int64)
    for t in range(bounds.size - 1):
        out[t, 0], out[t, 1], out[t, 2] = _range((bounds[t], bounds[t + 1]), packed)
    return out


@helper()
def _share_positions(low, high, width, packed):
    """Whether all entries of a block have a value at each of its positions."""
    start, stop = packed[0], packed[1]
    for e in range(low, high):
        if stop[e] - start[e] != width:
            return False
    return width > 0


@helper(inline="always")
def _pack(K, size, triangle):
    for a in range(size):
        for b in range(a + 1):
            triangle[a * (a + 1) // 2 + b] = K[a, b]


@kernel()
def class_products(bounds, offset, skip, ranges, packed, positions, limit, out):
    """The blocks from ``bounds[t]`` on, in ``out`` from ``offset[t]`` on, but for those to skip.

    Position by position, of which each has a few entries only; where all entries have all of them,
    two rows at a time, in blocks of at most ``limit`` entries.
    """
    start, stop, base, position, x = packed
    _, weight, share = positions
    widest, most = 0, 0
    for t in range(ranges.shape[0]):
        if not skip[t]:
            widest = larger(widest, ranges[t, 1] - ranges[t, 0])
            most = larger(most, ranges[t, 2])
    pointer, entry, value = empty(widest + 2, np.int64), empty(most, np.int32), floats(most)
    block = floats(limit * limit)
    for t in range(bounds.size - 1):
        low, high = bounds[t], bounds[t + 1]
        first, width, size = ranges[t, 0], ranges[t, 1] - ranges[t, 0], high - low
        triangle = out[offset[t] : offset[t + 1]]
        if skip[t]:
            continue
        if size <= limit and _share_positions(low, high, width, packed):
            starts, c = empty(size, np.int64), floats(width)
            for a in range(size):
                starts[a] = start[low + a]
            for i in range(width):
                c[i] = weight[first + i] * (1.0 - share[first + i])
            K = square(block, 0, size)
            weighted_products(x, starts, c, K)
            _pack(K, size, triangle)
            continue
        triangle[:] = 0.0
        # the values by positions instead of by entries: pointer[p + 1] is where the next one goes
        for p in range(width + 2):
            pointer[p] = 0
        for e in range(low, high):
            for q in range(start[e], stop[e]):
                pointer[base[e] + position[q] - first + 2] += 1
        for p in range(width):
            pointer[p + 2] += pointer[p + 1]
        for e in range(low, high):
            for q in range(start[e], stop[e]):
                p = base[e] + position[q] - first + 1
                entry[pointer[p]], value[pointer[p]] = e - low, x[q]
                pointer[p] += 1
        for p in range(width):
            begin, end = pointer[p], pointer[p + 1]
            c = weight[first + p] * (1.0 - share[first + p])
            for a in range(begin, end):
                row, factor = entry[a] * (entry[a] + 1) // 2, c * value[a]
                for b in range(begin, a + 1):
                    triangle[row + entry[b]] += factor * value[b]


@kernel()
def small_factors(kept, within, bounds, offset, blocks, damping, limit, at, factors):
    """The factors of what is kept of blocks, with damping, where that is at most ``limit`` entries.

    Those of block t are ``kept[within[t]:within[t + 1]]``, and their factor is from ``at[t]`` on.
    """
    room = floats(limit * limit)
    for t in range(bounds.size - 1):
        size = within[t + 1] - within[t]
        if size > limit:
            continue
        K, members = square(room, 0, size), kept[within[t] : within[t + 1]]
        for a in range(size):
            row = offset[t] + (members[a] - bounds[t]) * (members[a] - bounds[t] + 1) // 2
            for b in range(a + 1):
                K[a, b] = blocks[row + members[b] - bounds[t]]
            K[a, a] += damping[members[a]]
        factorise(K, factors[at[t] : at[t + 1]])
