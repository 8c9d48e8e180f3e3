"""The compiled loops of the primal-dual hybrid gradient method.

U, its gradient and the scores are stored by class, V by sample. A matrix with few non-zeros is
given by lists of the non-zeros of its rows: ``pointer`` (rows + 1,), ``index`` and ``value``.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import empty, floats, larger, smaller, zeros

#: Numbers of X that stay in the cache, and the fewest columns that are worth a part of their own.
CACHED, LEAST_COLUMNS = 1 << 20, 64

#: Entries of a row that are looked at together: most are zero.
STRIDE = 32


@helper()
def resized(A: np.ndarray, count: int, size: int) -> np.ndarray:
    """A copy of the first ``count`` entries, with room for ``size``."""
    out = empty(size, A.dtype)
    for p in range(count):
        out[p] = A[p]
    return out


@helper(inline="always")
def longer(A: np.ndarray, least: int) -> np.ndarray:
    """A with room for at least so many entries."""
    return resized(A, A.size, larger(least, 2 * A.size))


@helper(fastmath={"nsz", "reassoc"})
def sum_of_sizes(a: np.ndarray) -> float:
    total = 0.0
    for j in range(a.size):
        total += abs(a[j])
    return total


@helper(fastmath={"contract"})
def soft_threshold(
    u: np.ndarray,
    g: np.ndarray,
    tau: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    pace: float,
    out: np.ndarray,
) -> None:
    """The step of one class."""
    for j in range(u.size):
        a, up, down = u[j] - pace * tau[j] * g[j], pace * above[j], -pace * below[j]
        kept = up if a > up else a  # unlike max(), this vectorises, and keeps a NaN
        out[j] = a - (down if kept < down else kept)


@helper(fastmath={"contract", "reassoc"})
def squared_distance(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    # in a loop that writes nothing: it is vectorised, and so has one order, wherever arrays lie
    total = 0.0
    for j in range(a.size):
        total += weights[j] * (a[j] - b[j]) * (a[j] - b[j])
    return total


@kernel()
def primal_step(
    pointer: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    G: np.ndarray,
    tau: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    pace: np.ndarray,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """``new = soft-threshold(U - tau G)``, and ``sum_j (new - U)^2 / tau_j``; U and new by lists.

    Positive values are moved towards zero by ``above``, negative ones by ``below``. What is said
    of tau and of these holds for a class with pace 1.
    """
    k, d = G.shape
    inverse, old, new = floats(d), floats(d), floats(d)
    for j in range(d):
        inverse[j] = 1.0 / tau[j]
    moved, new_pointer = floats(k), zeros(k + 1, np.int64)
    count = new_pointer[0]  # not 0: helpers would be compiled for that number alone, too
    new_index, new_value = empty(index.size + d, np.int32), floats(index.size + d)
    for l in range(k):
        for j in range(d):
            old[j] = 0.0
        for p in range(pointer[l], pointer[l + 1]):
            old[index[p]] = value[p]
        soft_threshold(old, G[l], tau, above, below, pace[l], new)
        moved[l] = squared_distance(old, new, inverse)
        if count + d > new_index.size:
            new_index, new_value = longer(new_index, count + d), longer(new_value, count + d)
        count = append_nonzeros(new, new_index, new_value, count)
        new_pointer[l + 1] = count
    return (new_pointer, resized(new_index, count, count), resized(new_value, count, count)), moved


@helper()
def append_nonzeros(a: np.ndarray, index: np.ndarray, value: np.ndarray, count: int) -> int:
    """Write the non-zeros of a row behind the first ``count``; returns how many there are then."""
    for first in range(0, a.size, STRIDE):
        some = a[first : first + STRIDE]
        if sum_of_sizes(some) != 0.0:
            for s in range(some.size):
                if some[s] != 0.0:
                    index[count], value[count] = first + s, some[s]
                    count += 1
    return count


@kernel()
def nonzeros(A: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros of every row of A; of the first rows alone where they are more than ``most``.

    ``pointer`` ends with the number that was found.
    """
    rows, columns = A.shape
    pointer = zeros(rows + 1, np.int64)
    index, value = empty(columns, np.int32), floats(columns)
    count = pointer[0]  # as above
    for i in range(rows):
        if count + columns > index.size:
            index, value = longer(index, count + columns), longer(value, count + columns)
        count = append_nonzeros(A[i], index, value, count)
        pointer[i + 1] = count
        if count > most:
            pointer[rows] = count
            break
    return pointer, resized(index, count, count), resized(value, count, count)


@kernel()
def residual_by_class(
    pointer: np.ndarray,
    klass: np.ndarray,
    value: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``diag(weights) (V - Y)`` by class, for V by sample."""
    n = y.size
    end, fill = zeros(k + 1, np.int64), empty(k, np.int64)
    for i in range(n):
        end[y[i] + 1] += 1
        for p in range(pointer[i], pointer[i + 1]):
            end[klass[p] + 1] += klass[p] != y[i]
    for l in range(k):
        end[l + 1] += end[l]
    row, residual = empty(end[k], np.int32), floats(end[k])
    for l in range(k):
        fill[l] = end[l]
    for i in range(n):
        true = 0.0
        for p in range(pointer[i], pointer[i + 1]):
            l = klass[p]
            if l == y[i]:
                true = value[p]
            else:
                row[fill[l]], residual[fill[l]] = i, weights[i] * value[p]
                fill[l] += 1
        l = y[i]
        row[fill[l]], residual[fill[l]] = i, weights[i] * (true - 1.0)
        fill[l] += 1
    return end, row, residual


@kernel(fastmath={"contract", "reassoc"})
def dense_combine(
    X: np.ndarray, pointer: np.ndarray, index: np.ndarray, value: np.ndarray, out: np.ndarray
) -> None:
    """``out(l,:) = sum_p value_p X(index_p,:)``, four rows at a time so that out is not re-read.

    Some columns after the others: that part of X stays in the cache, where all of it would not.
    """
    k, d = out.shape
    width = larger(LEAST_COLUMNS, CACHED // larger(1, X.shape[0]))
    for start in range(0, d, width):
        some = slice(start, smaller(start + width, d))
        for l in range(k):
            o = out[l, some]
            first, end = pointer[l], pointer[l + 1]
            if first == end:
                for j in range(o.size):
                    o[j] = 0.0
            for p in range(first, end, 4):
                # what is missing in the last group is a row that is there already, times zero
                q1, q2, q3 = (
                    smaller(p + 1, end - 1),
                    smaller(p + 2, end - 1),
                    smaller(p + 3, end - 1),
                )
                x0, x1 = X[index[p], some], X[index[q1], some]
                x2, x3 = X[index[q2], some], X[index[q3], some]
                a0, a1 = value[p], value[q1] if q1 > p else 0.0
                a2, a3 = value[q2] if q2 > q1 else 0.0, value[q3] if q3 > q2 else 0.0
                if p == first:
                    for j in range(o.size):
                        o[j] = a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]
                else:
                    for j in range(o.size):
                        o[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]


@kernel()
def sparse_combine(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    pointer: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
) -> None:
    """The same for rows in compressed form."""
    k, d = out.shape
    for l in range(k):
        o = out[l]
        for j in range(d):
            o[j] = 0.0
        for p in range(pointer[l], pointer[l + 1]):
            a, i = value[p], index[p]
            for t in range(indptr[i], indptr[i + 1]):
                o[indices[t]] += a * data[t]


@kernel()
def rows_of(Z: np.ndarray, old: np.ndarray, start: int, ahead: float, out: np.ndarray) -> None:
    """``Z + ahead (Z - old)`` of some samples, by sample, for Z by class.

    Four classes at a time, which is half a cache line of ``out``; the last ones twice or more.
    """
    rows, k = out.shape
    some = slice(start, start + rows)
    for l in range(0, k, 4):
        l1, l2, l3 = smaller(l + 1, k - 1), smaller(l + 2, k - 1), smaller(l + 3, k - 1)
        z, z1, z2, z3 = Z[l, some], Z[l1, some], Z[l2, some], Z[l3, some]
        a, a1, a2, a3 = old[l, some], old[l1, some], old[l2, some], old[l3, some]
        for i in range(rows):
            out[i, l] = z[i] + ahead * (z[i] - a[i])
            out[i, l1] = z1[i] + ahead * (z1[i] - a1[i])
            out[i, l2] = z2[i] + ahead * (z2[i] - a2[i])
            out[i, l3] = z3[i] + ahead * (z3[i] - a3[i])


@kernel(fastmath={"contract"})
def add_change(V: np.ndarray, V_new: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
    """Add ``<dV, dV>`` in the inner product of the dual space, class by class."""
    for i in range(weights.size):
        v, new, w = V[i], V_new[i], weights[i]
        for l in range(v.size):
            total[l] += w * (new[l] - v[l]) * (new[l] - v[l])


@kernel()
def add_pairing(
    pointer: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    A: np.ndarray,
    A_new: np.ndarray,
    total: np.ndarray,
) -> None:
    """Add ``<U, A_new - A>`` for U by lists, class by class."""
    for l in range(total.size):
        for p in range(pointer[l], pointer[l + 1]):
            total[l] += value[p] * (A_new[l, index[p]] - A[l, index[p]])


@kernel()
def accumulate(
    total: np.ndarray, step: float, pointer: np.ndarray, index: np.ndarray, value: np.ndarray
) -> None:
    """``total += step A`` for A by lists."""
    for l in range(total.shape[0]):
        for p in range(pointer[l], pointer[l + 1]):
            total[l, index[p]] += step * value[p]


@kernel(fastmath={"nsz", "reassoc"})
def worst_by_class(G: np.ndarray, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The largest of ``above G`` and ``-below G`` in every class."""
    worst = floats(G.shape[0])
    for l in range(worst.size):
        g, largest = G[l], 0.0
        for j in range(g.size):
            ratio = g[j] * above[j] if g[j] > 0.0 else -g[j] * below[j]
            largest = ratio if ratio > largest else largest
        worst[l] = largest
    return worst


@kernel(fastmath={"nsz", "reassoc"})
def shrink_classes(V: np.ndarray, y: np.ndarray, factor: np.ndarray, out: np.ndarray) -> None:
    """V with ``v_il`` times the smaller factor of l and y_i; the true class takes what is freed."""
    n, k = V.shape
    for i in range(n):
        v, new, mine = V[i], out[i], factor[y[i]]
        for l in range(k):
            new[l] = v[l] * (factor[l] if factor[l] < mine else mine)
        freed = 0.0
        for l in range(k):
            freed += v[l] - new[l]
        new[y[i]] += freed
