"""Products of a sparse X with the entries of a working set, row by row.

Scores and dual points have a row for a sample. Read by columns of X, each of their entries comes
from another line of memory; read by rows, all that a sample needs is in the first cache. Kept are
the values of X in the features of the working set, row by row (``pointer``, ``place``, ``x``), and
for each of these features its entries, which lie together (``first``, ``klass``). Numbers without
a sign are indices that need not be looked at for one.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.primitives import empty, floats, zeros


@kernel()
def select_rows(indptr, indices, data, code):
    """The values of X, in CSR form, in the features with ``code_j >= 0``, which replaces j."""
    pointer = zeros(indptr.size, np.int64)
    for i in range(indptr.size - 1):
        count = 0
        for q in range(indptr[i], indptr[i + 1]):
            count += code[indices[q]] >= 0
        pointer[i + 1] = pointer[i] + count
    place, x = empty(pointer[-1], np.uint32), floats(pointer[-1])
    for i in range(indptr.size - 1):
        p = pointer[i]
        for q in range(indptr[i], indptr[i + 1]):
            if code[indices[q]] >= 0:
                place[p], x[p] = code[indices[q]], data[q]
                p += 1
    return pointer, place, x


@kernel()
def gradient_by_rows(pointer, place, x, first, klass, V, y, weights, out):
    """``out[e] = <X(:,j), diag(weights) (V - Y)(:,l)>`` for every entry e = (j, l).

    Samples whose v is their label are left out: with the hinge loss that is most of them.
    """
    for e in range(out.size):
        out[e] = 0.0
    r = floats(V.shape[1])
    for i in range(V.shape[0]):
        v, w = V[i], weights[i]
        if v[y[i]] == 1.0:
            continue
        for l in range(r.size):
            r[l] = w * v[l]
        r[y[i]] -= w
        for p in range(pointer[i], pointer[i + 1]):
            f, c = place[p], x[p]
            for e in range(first[f], first[f + 1]):
                out[e] += c * r[klass[e]]


@kernel()
def add_product_by_rows(pointer, place, x, first, klass, values, Z):
    """``Z += X S`` for the matrix S with the given values at the entries."""
    for i in range(Z.shape[0]):
        z = Z[i]
        for p in range(pointer[i], pointer[i + 1]):
            f, c = place[p], x[p]
            for e in range(first[f], first[f + 1]):
                z[klass[e]] += c * values[e]
