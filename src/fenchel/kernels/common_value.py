"""What most classes of a dual point have in common, row by row."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import empty, floats, larger, zeros

#: Classes of a row that are asked for the common value, where finding none costs little.
VOTERS = 15


@kernel()
def common_values(V: np.ndarray, y: np.ndarray, common: np.ndarray) -> int:
    """Set ``common_i`` to the value of most wrong classes in row i; count those with another.

    By the vote of Boyer and Moore, which finds a value that more than half of them have. Where
    there is none, any value will do: the count tells what it is worth.
    """
    others = 0
    for i in range(V.shape[0]):
        value, votes = 0.0, 0
        for l in range(V.shape[1]):
            if l == y[i]:
                continue
            if votes == 0:
                value = V[i, l]
            votes += 1 if V[i, l] == value else -1
        common[i] = value
        for l in range(V.shape[1]):
            if l != y[i] and V[i, l] != value:
                others += 1
    return others


@helper()
def _value_of_most(v, y):
    """The value of most wrong classes of a row, by the vote of a few of them."""
    value, votes = 0.0, 0
    stride = larger(1, v.size // VOTERS)
    for l in range(0, v.size, stride):
        if l != y:
            if votes == 0:
                value = v[l]
            votes += 1 if v[l] == value else -1
    return value


@kernel()
def residual_beside_common(V, y, weights, most):
    """``diag(weights) (V - Y)`` by rows, as ``column_i`` in every class and a few other values.

    Returns column, pointers, classes, what is added to ``column_i`` there, and the largest size of
    an entry of every row. With more than ``most`` others there are none, and no pointers.
    """
    n, k = V.shape
    column, largest = floats(n), floats(n)
    pointer = zeros(n + 1, np.int64)
    for i in range(n):
        v, value, count = V[i], _value_of_most(V[i], y[i]), 0
        for l in range(k):
            count += v[l] != value
        count += v[y[i]] == value
        pointer[i + 1] = pointer[i] + count
        if pointer[i + 1] > most:
            return column, pointer[:0], empty(0, np.uint32), floats(0), largest
        column[i] = value  # times the weight, below
    klass, added = empty(pointer[n], np.uint32), floats(pointer[n])
    for i in range(n):
        v, value, w, p = V[i], column[i], weights[i], pointer[i]
        column[i] = w * value
        largest[i] = abs(column[i])
        for l in range(k):
            if v[l] != value or l == y[i]:
                r = v[l] - 1.0 if l == y[i] else v[l]
                klass[p], added[p] = l, w * (r - value)
                if abs(w * r) > largest[i] or r != r:  # what is not a number stays
                    largest[i] = abs(w * r)
                p += 1
    return column, pointer, klass, added, largest


@kernel()
def residual_beside_last(V, y, weights, classes, true):
    """The same for a V whose last column is what most classes have, and no row of it counted.

    The columns before are ``classes``, but for the last but one, which is the class ``true_i``
    where y says so and otherwise one more of those alike.
    """
    n, m = V.shape[0], classes.size
    column, largest = floats(n), floats(n)
    pointer = zeros(n + 1, np.int64)
    for i in range(n):
        v, value, count = V[i], V[i, m + 1], 0
        for l in range(m):
            count += v[l] != value
        count += y[i] == m or v[y[i]] == value
        pointer[i + 1] = pointer[i] + count
    klass, added = empty(pointer[n], np.uint32), floats(pointer[n])
    for i in range(n):
        v, value, w, p = V[i], V[i, m + 1], weights[i], pointer[i]
        column[i] = w * value
        largest[i] = abs(column[i])
        for l in range(m + 1):
            if l == y[i] or (l < m and v[l] != value):
                r = v[l] - 1.0 if l == y[i] else v[l]
                klass[p], added[p] = true[i] if l == m else classes[l], w * (r - value)
                if abs(w * r) > largest[i] or r != r:  # what is not a number stays
                    largest[i] = abs(w * r)
                p += 1
    return column, pointer, klass, added, largest
