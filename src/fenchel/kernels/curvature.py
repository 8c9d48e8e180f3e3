"""Columns of the curvature of a Fenchel-Young loss, gathered for the entries of a working set.

The Hessian of a smooth loss in the scores of one row is ``diag(h) - h h^T / sum(h)``. An entry
(j, l) of U meets it only in the rows i where h_il > 0, and a row with a single positive h has no
curvature at all: with sparse dual points nearly everything is zero and is left out here. A
*position* is one such pair (i, l); positions are numbered class by class.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import empty, floats, smaller, zeros

#: Entries of a row that are looked at together: most are zero.
STRIDE = 32


@helper(fastmath={"nsz", "reassoc"})
def _sum(a: np.ndarray) -> float:
    total = 0.0
    for l in range(a.size):
        total += a[l]
    return total


@helper()
def residual_of(v: np.ndarray, y: int, index: np.ndarray, value: np.ndarray) -> int:
    """The non-zeros of ``v - e_y`` for a row v of the simplex, and how many there are."""
    count = 0
    for first in range(0, v.size, STRIDE):
        some = v[first : first + STRIDE]
        if _sum(some) > 0.0 or first <= y < first + STRIDE:
            for s in range(some.size):
                r = some[s] - 1.0 if first + s == y else some[s]
                if r != 0.0:
                    index[count], value[count] = first + s, r
                    count += 1
    return count


@kernel()
def residual_rows(
    V: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``diag(weights) (V - Y)`` by rows: pointers, classes, values of its non-zeros."""
    n, k = V.shape
    pointer = zeros(n + 1, np.int64)
    index, residual = empty(k, np.int64), floats(k)
    for i in range(n):
        pointer[i + 1] = pointer[i] + residual_of(V[i], y[i], index, residual)
    klass = empty(pointer[n], np.int32)
    value = floats(pointer[n])
    for i in range(n):
        for s in range(residual_of(V[i], y[i], index, residual)):
            klass[pointer[i] + s] = index[s]
            value[pointer[i] + s] = weights[i] * residual[s]
    return pointer, klass, value


@kernel()
def residual_columns(
    V: np.ndarray, y: np.ndarray, weights: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``diag(weights) (V - Y)`` in the given classes: pointers, rows, values of its non-zeros."""
    n, k = V.shape
    wanted, pointer = zeros(k, np.int64), zeros(k + 1, np.int64)
    for l in classes:
        wanted[l] = 1
    index, residual = empty(k, np.int64), floats(k)
    for i in range(n):
        for s in range(residual_of(V[i], y[i], index, residual)):
            pointer[index[s] + 1] += wanted[index[s]]
    for l in range(k):
        pointer[l + 1] += pointer[l]
    row = empty(pointer[k], np.int32)
    value = floats(pointer[k])
    fill = empty(k, np.int64)
    for l in range(k):
        fill[l] = pointer[l]
    for i in range(n):
        for s in range(residual_of(V[i], y[i], index, residual)):
            l = index[s]
            if wanted[l]:
                row[fill[l]] = i
                value[fill[l]] = weights[i] * residual[s]
                fill[l] += 1
    return pointer, row, value


@helper()
def _positive(h: np.ndarray, index: np.ndarray) -> int:
    """The places of the positive entries of a row without negative ones, and how many they are."""
    count = 0
    for first in range(0, h.size, STRIDE):
        some = h[first : first + STRIDE]
        if _sum(some) > 0.0:
            for s in range(some.size):
                if some[s] > 0.0:
                    index[count] = first + s
                    count += 1
    return count


@kernel()
def curvature_columns(
    H: np.ndarray, weights: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The positions of H: class pointers, rows, ``weights_i h_il`` and ``h_il / sum_m h_im``.

    Only the given classes get positions: the scores of the others do not move.
    """
    n, k = H.shape
    wanted, pointer = zeros(k, np.int64), zeros(k + 1, np.int64)
    for l in classes:
        wanted[l] = 1
    total = zeros(n, np.float64)
    index = empty(k, np.int64)
    for i in range(n):
        count = _positive(H[i], index)
        if count <= 1 or weights[i] == 0.0:
            continue
        for s in range(count):
            total[i] += H[i, index[s]]
            pointer[index[s] + 1] += wanted[index[s]]
    for l in range(k):
        pointer[l + 1] += pointer[l]
    row = empty(pointer[k], np.int32)
    weight = floats(pointer[k])
    share = floats(pointer[k])
    fill = empty(k, np.int64)
    for l in range(k):
        fill[l] = pointer[l]
    for i in range(n):
        if total[i] == 0.0:
            continue
        for s in range(_positive(H[i], index)):
            l = index[s]
            if wanted[l]:
                p = fill[l]
                fill[l] += 1
                row[p] = i
                weight[p] = weights[i] * H[i, l]
                share[p] = H[i, l] / total[i]
    return pointer, row, weight, share


@kernel()
def curvature_everywhere(
    H: np.ndarray, weights: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, ``weights_i h_il`` and ``h_il / sum_m h_im`` of all samples, class by class.

    What has no curvature is zero, or cancels: a row with a single positive h has a share of one.
    """
    n = H.shape[0]
    row = empty(n * classes.size, np.int32)
    weight = floats(row.size)
    share = floats(row.size)
    part = floats(n)  # one over the sum of a row
    for i in range(n):
        total = _sum(H[i])
        part[i] = 1.0 / total if total > 0.0 else 0.0
    for first in range(0, n, STRIDE):  # blocks: H is read by rows, and what is made by columns
        last = smaller(first + STRIDE, n)
        for t in range(classes.size):
            for i in range(first, last):
                p, h = t * n + i, H[i, classes[t]]
                row[p] = i
                weight[p] = weights[i] * h
                share[p] = h * part[i]
    return row, weight, share


@kernel()
def dense_gradient(
    Xt: np.ndarray,
    feature: np.ndarray,
    klass: np.ndarray,
    pointer: np.ndarray,
    row: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
) -> None:
    """``out[e] = <X(:,j), R(:,l)>`` for every entry e = (j, l); R as from residual_columns."""
    for e in range(feature.size):
        j, l = feature[e], klass[e]
        s = 0.0
        for p in range(pointer[l], pointer[l + 1]):
            s += Xt[j, row[p]] * value[p]
        out[e] = s


@kernel()
def sparse_gradient(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    n: int,
    feature: np.ndarray,
    klass: np.ndarray,
    pointer: np.ndarray,
    row: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
) -> None:
    """The same for X in CSC form; entries are sorted by class."""
    column = zeros(n, np.float64)
    last = -1
    for e in range(feature.size):
        j, l = feature[e], klass[e]
        if l != last:
            if last >= 0:
                for p in range(pointer[last], pointer[last + 1]):
                    column[row[p]] = 0.0
            for p in range(pointer[l], pointer[l + 1]):
                column[row[p]] = value[p]
            last = l
        s = 0.0
        for t in range(indptr[j], indptr[j + 1]):
            s += data[t] * column[indices[t]]
        out[e] = s


@kernel()
def dense_pack(
    Xt: np.ndarray, feature: np.ndarray, klass: np.ndarray, pointer: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every entry (j, l) the positions of class l and ``x_ij`` there: start, position, x."""
    start = zeros(feature.size + 1, np.int64)
    for e in range(feature.size):
        start[e + 1] = start[e] + pointer[klass[e] + 1] - pointer[klass[e]]
    position = empty(start[-1], np.int32)
    x = floats(start[-1])
    for e in range(feature.size):
        q = start[e]
        for p in range(pointer[klass[e]], pointer[klass[e] + 1]):
            position[q] = p
            x[q] = Xt[feature[e], row[p]]
            q += 1
    return start, position, x


@kernel()
def sparse_pack(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    n: int,
    feature: np.ndarray,
    klass: np.ndarray,
    H: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same for X in CSC form, and the positions, as of ``curvature_columns``.

    Only those that an entry meets are positions here, which of long rows of H can be few. Entries
    are sorted by class.
    """
    total = zeros(n, np.float64)  # of h, zero for a row without curvature
    curved = zeros(H.shape[1], np.int64)  # the rows with curvature in a class
    for i in range(n):
        count = 0.0
        for h in H[i]:
            count += 1.0 if h > 0.0 else 0.0
        if count > 1.0 and weights[i] != 0.0:
            total[i] = _sum(H[i])
            for l in range(H.shape[1]):
                curved[l] += 1 if H[i, l] > 0.0 else 0
    room = places = of_class = 0
    for e in range(feature.size):
        l, length = klass[e], indptr[feature[e] + 1] - indptr[feature[e]]
        room += smaller(length, curved[l])
        of_class = length if e == 0 or klass[e - 1] != l else of_class + length
        if e + 1 == feature.size or klass[e + 1] != l:
            places += smaller(of_class, curved[l])
    start = zeros(feature.size + 1, np.int64)
    position, x = empty(room, np.int32), floats(room)
    row, weight, share = empty(places, np.int32), floats(places), floats(places)
    number = empty(n, np.int64)  # of the position of a row, -1 where there is none, -2 if wanted
    for i in range(n):
        number[i] = -1
    first = p = q = 0
    while first < feature.size:
        l, last, begin = klass[first], first, p
        while last < feature.size and klass[last] == l:
            for t in range(indptr[feature[last]], indptr[feature[last] + 1]):
                number[indices[t]] = -2
            last += 1
        for i in range(n):
            if number[i] == -2:
                number[i] = -1
                if H[i, l] > 0.0 and total[i] > 0.0:
                    row[p], weight[p] = i, weights[i] * H[i, l]
                    share[p] = H[i, l] / total[i]
                    number[i] = p
                    p += 1
        for e in range(first, last):
            for t in range(indptr[feature[e]], indptr[feature[e] + 1]):
                if number[indices[t]] >= 0:
                    position[q], x[q] = number[indices[t]], data[t]
                    q += 1
            start[e + 1] = q
        for s in range(begin, p):
            number[row[s]] = -1
        first = last
    return start, position[:q], x[:q], row[:p], weight[:p], share[:p]
