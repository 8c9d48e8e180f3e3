"""The compiled loops of the primal-dual hybrid gradient method; arrays of U are stored by class.

A matrix with few non-zeros is given by class: ``pointer`` (k + 1,), ``index`` and ``value``.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import kernel

#: Side of the tiles in which an array is transposed.
TILE = 64

#: Numbers of X that stay in the cache, and the fewest columns that are worth a part of their own.
CACHED, LEAST_COLUMNS = 1 << 17, 64


@kernel(fastmath={"contract", "reassoc"})
def primal_step(
    U: np.ndarray,
    G: np.ndarray,
    tau: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    out: np.ndarray,
) -> float:
    """``out = soft-threshold(U - tau G)``; returns ``sum_jl (out - U)^2 / tau_j``.

    Positive values are moved towards zero by ``above``, negative ones by ``below``.
    """
    k, d = U.shape
    moved = 0.0
    for l in range(k):
        for j in range(d):
            a = U[l, j] - tau[j] * G[l, j]
            new = max(a - above[j], 0.0) + min(a + below[j], 0.0)  # one of them is zero
            change = new - U[l, j]
            out[l, j] = new
            moved += change * change / tau[j]
    return moved


@kernel()
def nonzeros(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros of every row of A."""
    rows, columns = A.shape
    pointer = np.zeros(rows + 1, np.int64)
    for l in range(rows):
        count = 0
        for j in range(columns):
            count += A[l, j] != 0.0
        pointer[l + 1] = pointer[l] + count
    index = np.empty(pointer[rows], np.int32)
    value = np.empty(pointer[rows])
    for l in range(rows):
        p = pointer[l]
        if pointer[l + 1] == p:
            continue
        for j in range(columns):
            if A[l, j] != 0.0:
                index[p] = j
                value[p] = A[l, j]
                p += 1
    return pointer, index, value


@kernel(fastmath={"contract", "reassoc"})
def dense_combine(
    X: np.ndarray, pointer: np.ndarray, index: np.ndarray, value: np.ndarray, out: np.ndarray
) -> None:
    """``out(l,:) = sum_p value_p X(index_p,:)``, four rows at a time so that out is not re-read.

    Some columns after the others: that part of X stays in the cache, where all of it would not.
    """
    k, d = out.shape
    width = max(LEAST_COLUMNS, CACHED // max(1, X.shape[0]))
    for start in range(0, d, width):
        some = slice(start, min(start + width, d))
        for l in range(k):
            o = out[l, some]
            for j in range(o.size):
                o[j] = 0.0
            p, end = pointer[l], pointer[l + 1]
            while p + 4 <= end:
                a0, a1, a2, a3 = value[p], value[p + 1], value[p + 2], value[p + 3]
                x0, x1 = X[index[p], some], X[index[p + 1], some]
                x2, x3 = X[index[p + 2], some], X[index[p + 3], some]
                for j in range(o.size):
                    o[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]
                p += 4
            while p < end:
                a0, x0 = value[p], X[index[p], some]
                for j in range(o.size):
                    o[j] += a0 * x0[j]
                p += 1


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
def transpose(A: np.ndarray, out: np.ndarray) -> None:
    """``out = A^T``, tile by tile."""
    rows, columns = A.shape
    for a in range(0, rows, TILE):
        for b in range(0, columns, TILE):
            source, target = A[a : a + TILE, b : b + TILE], out[b : b + TILE, a : a + TILE]
            for j in range(target.shape[0]):
                for i in range(target.shape[1]):
                    target[j, i] = source[i, j]


@kernel()
def extrapolate(Z_new: np.ndarray, Z: np.ndarray, out: np.ndarray) -> None:
    """``out = 2 Z_new - Z``."""
    rows, columns = Z.shape
    for i in range(rows):
        for l in range(columns):
            out[i, l] = 2.0 * Z_new[i, l] - Z[i, l]


@kernel(fastmath={"contract", "reassoc"})
def change_of(
    V: np.ndarray, V_new: np.ndarray, Z: np.ndarray, Z_new: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """``<dV, dV>`` and ``<dV, dZ>`` in the inner product of the dual space."""
    n, k = V.shape
    moved = crossed = 0.0
    for i in range(n):
        m = c = 0.0
        for l in range(k):
            dv = V_new[i, l] - V[i, l]
            m += dv * dv
            c += dv * (Z_new[i, l] - Z[i, l])
        moved += weights[i] * m
        crossed += weights[i] * c
    return moved, crossed


@kernel()
def accumulate(total: np.ndarray, step: float, A: np.ndarray) -> None:
    """``total += step A``."""
    rows, columns = A.shape
    for i in range(rows):
        for j in range(columns):
            total[i, j] += step * A[i, j]
