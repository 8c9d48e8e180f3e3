"""Blocks of the Hessian of fewer samples: for each class, those that have most of its curvature.

A class of many is all but certain of nearly all samples, and its curvature lies on few of them. A
sample with more curvature than a threshold is kept as it is; of the others one is kept whenever
their sum has grown by the threshold, which it then stands for.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.hybrid_gradient import resized
from fenchel.kernels.primitives import empty, floats, larger, matrix, smaller, zeros

#: Passes that the search for a threshold takes at most; more samples than wanted do no harm.
PASSES = 20


@kernel()
def threshold_for(c, most):
    """The t with ``sum_i min(1, c_i / t) = most``, or nearly; 0 where no more than that are > 0."""
    t = 0.0
    for _ in range(PASSES):
        full, rest, smaller = 0, 0.0, 0
        for i in range(c.size):
            if t > 0.0 and c[i] >= t:
                full += 1
            elif c[i] > 0.0:
                rest += c[i]
                smaller += 1
        if full + smaller <= most:
            return 0.0
        new = rest / larger(1, most - full)
        if t > 0.0 and new >= 0.999 * t:
            return t
        t = new
    return t


@kernel()
def keep_samples(c, t, place, kept):
    """Number the samples that are kept in ``place``, -1 for the others; their curvature in kept.

    Returns how many there are, at most ``kept.size``.
    """
    count, total, one = 0, 0.5, 1.0 / t if t > 0.0 else np.inf
    for i in range(c.size):
        place[i] = -1
        share = c[i] * one
        if share < 1.0:
            total += share
            if total < 1.0:
                continue
            total -= 1.0
        if c[i] > 0.0 and count < kept.size:
            place[i], kept[count] = count, larger(c[i], t)
            count += 1
    return count


@kernel()
def sampled_columns(indptr, indices, data, feature, bounds, curvature, most):
    """Columns in CSC form in the samples that are kept, at most about ``most`` for each class.

    Returns pointers, samples and values of the columns, an entry each, the curvature of the samples
    of every class, the diagonals of the blocks of all samples, and what those of the kept ones lack
    of them.
    """
    n, n_classes, size = curvature.shape[1], bounds.size - 1, bounds[-1] - bounds[0]
    width = smaller(n, 2 * most)
    kept, place = matrix(n_classes, width), empty(n, np.int32)
    room = 1
    for e in range(bounds[0], bounds[-1]):
        room += smaller(indptr[feature[e] + 1] - indptr[feature[e]], width)
    pointer = zeros(size + 1, np.int64)
    sample, x = empty(room, np.int32), floats(room)
    diagonal, lacking = zeros(size, np.float64), zeros(size, np.float64)
    a = q = 0
    for t in range(n_classes):
        c = curvature[t]
        for s in range(width):
            kept[t, s] = 0.0
        keep_samples(c, threshold_for(c, most), place, kept[t])
        for e in range(bounds[t], bounds[t + 1]):
            whole = own = 0.0
            for p in range(indptr[feature[e]], indptr[feature[e] + 1]):
                i, value = indices[p], data[p]
                whole += value * value * c[i]
                sample[q], x[q] = place[i], value  # overwritten by the next where it is not kept
                q += place[i] >= 0
            for p in range(pointer[a], q):
                own += x[p] * x[p] * kept[t, sample[p]]
            lacking[a] = larger(0.0, whole - own)
            diagonal[a] = own + lacking[a]
            a += 1
            pointer[a] = q
    return pointer, resized(sample, q, q), resized(x, q, q), kept, diagonal, lacking
