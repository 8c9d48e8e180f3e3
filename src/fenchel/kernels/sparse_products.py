"""Products of a sparse X: ``X U`` for a sparse U, and what is asked of ``X^T W``.

The latter works feature by feature on X in CSC form. The product itself, (d, k) and dense, is never
stored: for wide text it is far larger than what is wanted of it, and writing it takes longer than
multiplying.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.hybrid_gradient import longer
from fenchel.kernels.primitives import empty, floats, larger, smaller


@kernel()
def add_product_of_rows(indptr, indices, data, U, Z):
    """``Z += X U``, both in CSR form and read in order."""
    pointer, klass, value = U
    for i in range(Z.shape[0]):
        for q in range(indptr[i], indptr[i + 1]):
            x, j = data[q], indices[q]
            for p in range(pointer[j], pointer[j + 1]):
                Z[i, klass[p]] += x * value[p]


@helper(fastmath={"contract"}, forceinline=True)
def _feature(indptr, indices, data, W, j, nonnegative, out):
    """``out_l = |g_l|`` for row j of ``G = X^T W``, or ``(-g_l)_+`` where U(j,:) >= 0."""
    _product(indptr, indices, data, W, j, out)
    for l in range(out.size):
        out[l] = larger(-out[l], 0.0) if nonnegative else abs(out[l])


def _product(indptr, indices, data, W, j, out):
    """``out_l = g_l`` for row j of ``G = X^T W``.

    W is an array, or ``(k, base, pointer, klass, added)``: as the rows of
    ``residual_beside_common`` have it, with ``base = X^T column`` for the column.
    """
    raise NotImplementedError  # compiled for either W


@overload(_product, jit_options={"fastmath": {"contract"}})
def _product_of(indptr, indices, data, W, j, out):
    def of_array(indptr, indices, data, W, j, out):
        for l in range(out.size):
            out[l] = 0.0
        for q in range(indptr[j], indptr[j + 1]):
            x, i = data[q], indices[q]
            for l in range(out.size):
                out[l] += x * W[i, l]

    def of_rows(indptr, indices, data, W, j, out):
        _, base, pointer, klass, added = W
        for l in range(out.size):
            out[l] = base[j]
        for q in range(indptr[j], indptr[j + 1]):
            x, i = data[q], indices[q]
            for p in range(pointer[i], pointer[i + 1]):
                out[klass[p]] += x * added[p]

    return of_array if isinstance(W, types.Array) else of_rows


def _classes(W):
    """The number of classes."""
    raise NotImplementedError  # compiled for either W


@overload(_classes)
def _classes_of(W):
    def of_array(W):
        return W.shape[1]

    def of_rows(W):
        return W[0]

    return of_array if isinstance(W, types.Array) else of_rows


@kernel()
def largest_by_row(W, most):
    """``most_i = max_l |w_il|``."""
    for i in range(W.shape[0]):
        most[i] = 0.0
        for l in range(W.shape[1]):
            most[i] = larger(most[i], abs(W[i, l]))


@kernel()
def largest_of_stored(pointer, value, most):
    """The same for the values of a W in CSR form."""
    for i in range(most.size):
        most[i] = 0.0
        for p in range(pointer[i], pointer[i + 1]):
            most[i] = larger(most[i], abs(value[p]))


@helper()
def _possible(indptr, indices, data, most, j):
    """``sum_i |x_ij| most_i``, no smaller than any entry in row j of ``|X^T W|``."""
    total = 0.0
    for q in range(indptr[j], indptr[j + 1]):
        total += abs(data[q]) * most[indices[q]]
    return total


@kernel()
def largest_by_feature(indptr, indices, data, W, most, nonnegative, enough, largest):
    """Raise ``largest_j`` to the largest constrained part in row j of ``X^T W``.

    Or to ``sum_i |x_ij| max_l |w_il|``, which is no smaller, where that is at most enough_j: most
    features of text are so rare that they need not be multiplied. ``most_i = max_l |w_il|``.
    """
    part = floats(_classes(W))
    for j in range(largest.size):
        possible = _possible(indptr, indices, data, most, j)
        if possible <= enough[j]:
            largest[j] = larger(largest[j], possible)
            continue
        _feature(indptr, indices, data, W, j, nonnegative[j], part)
        for l in range(part.size):
            if part[l] > largest[j] or part[l] != part[l]:
                largest[j] = part[l]


@helper()
def _add_rows(indptr, indices, data, W, j, part):
    """``part_l += g_l`` for row j of ``G = X^T W``."""
    pointer, klass, value = W
    for q in range(indptr[j], indptr[j + 1]):
        x, i = data[q], indices[q]
        for p in range(pointer[i], pointer[i + 1]):
            part[klass[p]] += x * value[p]


@kernel()
def largest_by_feature_of_rows(indptr, indices, data, W, most, part, nonnegative, enough, largest):
    """The same for a W with few non-zeros, in CSR form; ``part`` is zeroed working space, (k,)."""
    pointer, klass, _ = W
    for j in range(largest.size):
        possible = _possible(indptr, indices, data, most, j)
        if possible <= enough[j]:
            largest[j] = larger(largest[j], possible)
            continue
        _add_rows(indptr, indices, data, W, j, part)
        for q in range(indptr[j], indptr[j + 1]):
            for p in range(pointer[indices[q]], pointer[indices[q] + 1]):
                g = part[klass[p]]
                part[klass[p]] = 0.0
                g = larger(-g, 0.0) if nonnegative[j] else abs(g)
                if g > largest[j] or g != g:
                    largest[j] = g


@kernel()
def beyond_bounds(indptr, indices, data, W, most, nonnegative, bound):
    """Where the constrained part of ``X^T W`` is beyond bound_j: feature, class, and by how much.

    Also returns the smallest of ``bound_j / part`` there, for positive bounds (1 where none is).
    What cannot be beyond it, by :func:`_possible` with ``most_i = max_l |w_il|``, is not
    multiplied.
    """
    room, found, scale = 1024, 0, 1.0
    feature, klass, excess = empty(room, np.int64), empty(room, np.int64), floats(room)
    part = floats(_classes(W))
    for j in range(bound.size):
        if _possible(indptr, indices, data, most, j) <= bound[j]:
            continue
        _feature(indptr, indices, data, W, j, nonnegative[j], part)
        for l in range(part.size):
            if part[l] > bound[j]:
                if found == room:
                    feature = longer(feature, 2 * room)
                    klass = longer(klass, 2 * room)
                    excess = longer(excess, 2 * room)
                    room *= 2
                feature[found], klass[found], excess[found] = j, l, part[l] - bound[j]
                found += 1
                if bound[j] > 0.0:
                    scale = smaller(scale, bound[j] / part[l])
    return feature[:found], klass[:found], excess[:found], scale


@kernel()
def beyond_bounds_of_rows(indptr, indices, data, W, most, part, nonnegative, bound):
    """The same for a W with few non-zeros, in CSR form; ``part`` is zeroed working space, (k,)."""
    pointer, klass_of, _ = W
    room, found, scale = 1024, 0, 1.0
    feature, klass, excess = empty(room, np.int64), empty(room, np.int64), floats(room)
    for j in range(bound.size):
        if _possible(indptr, indices, data, most, j) <= bound[j]:
            continue
        _add_rows(indptr, indices, data, W, j, part)
        for q in range(indptr[j], indptr[j + 1]):
            for p in range(pointer[indices[q]], pointer[indices[q] + 1]):
                l = klass_of[p]
                g = larger(-part[l], 0.0) if nonnegative[j] else abs(part[l])
                part[l] = 0.0
                if g > bound[j]:
                    if found == room:
                        feature = longer(feature, 2 * room)
                        klass = longer(klass, 2 * room)
                        excess = longer(excess, 2 * room)
                        room *= 2
                    feature[found], klass[found], excess[found] = j, l, g - bound[j]
                    found += 1
                    if bound[j] > 0.0:
                        scale = smaller(scale, bound[j] / g)
    return feature[:found], klass[:found], excess[:found], scale
