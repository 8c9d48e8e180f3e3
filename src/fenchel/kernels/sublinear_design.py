"""The two streams of the sublinear solver that read X: a row for U, a column for V.

A dense design is a pair of arrays, X and its transpose, so that rows and columns are contiguous; a
sparse one is the CSR and CSC pair. ``[X, -X]`` is never formed: the sign is in the coefficient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from fenchel.kernels.exp import exp_bounded, exp_multiples
from fenchel.kernels.sublinear import (
    BETA,
    ERROR,
    FIELDS,
    HIGH,
    JUMP,
    LABEL,
    LOW,
    TILE,
    TRUE,
    TRUE_SUM,
    W_TAU,
    A,
    B,
    at,
    block_size,
    book_class,
    in_class,
    inlined,
    mend_rows,
    row_step,
    sum_tile,
)


class DenseData(NamedTuple):
    X: np.ndarray  # (n, d)
    Xt: np.ndarray  # (d, n)
    ratio: (
        np.ndarray
    )  # (TILE,) work space; with exp in a loop of its own, both loops fit the registers


class SparseData(NamedTuple):
    indptr: np.ndarray  # CSR
    indices: np.ndarray
    data: np.ndarray
    column_indptr: np.ndarray  # CSC
    column_indices: np.ndarray
    column_data: np.ndarray
    gain: np.ndarray  # (n,) work space, 0 between calls
    factor: np.ndarray  # (n,) work space


def multiply_primal(data, s, slot, j, c):
    """E(:, l) *= exp(-c X(j, :)), with S and the sums over tiles (UpdatePrimal, TrackPrimal)."""
    raise NotImplementedError


def multiply_dual(data, s, slot, l, i, c, theta):
    """W(:, l) *= exp(c X(:, i)), with S, the block sums and all vectors over rows (UpdateDual,
    TrackDual); the number of rows that need to be renormalised is returned."""
    raise NotImplementedError


def _is(data, kind):
    return isinstance(data, types.BaseNamedTuple) and data.instance_class is kind


@njit(**inlined)
def _primal_step(e, ratio):
    """The new E, the old and the new 1/E, at the price of one division."""
    new = min(max(e * ratio, LOW), HIGH)
    both = 1.0 / (e * new)
    return new, both * new, both * e


@njit(**inlined)
def _primal_dense(data, s, slot, j, c):
    d, since = s.sigma.size, s.scalar[A] - s.base[slot]
    x, row = data.X[j], s.primal[slot]
    for b in range((d + TILE - 1) // TILE):
        width = min(TILE, d - b * TILE)
        p = row[2 * b * TILE : 2 * (b + 1) * TILE]
        x_b, sigma_b = x[b * TILE : b * TILE + width], s.sigma[b * TILE : b * TILE + width]
        exp_multiples(-c, x_b, s.tau[j], data.ratio)
        sigma_sum, mass = 0.0, 0.0
        for i in range(width):
            e = p[i]
            new, inverse, new_inverse = _primal_step(e, data.ratio[i])
            p[TILE + i] += (e - inverse) * since
            p[i] = new
            both = new + new_inverse
            sigma_sum += sigma_b[i] * both
            mass += both
        s.tile_sigma[slot, b] = sigma_sum
        s.tile_mass[slot, b] = mass
    s.base[slot] = s.scalar[A]  # all of the class is booked on the way


@njit(**inlined)
def _primal_sparse(data, s, slot, j, c):
    if abs(c) * s.tau[j] > JUMP:
        book_class(s, slot)
    since = s.scalar[A] - s.base[slot]
    row = s.primal[slot]
    start, stop = data.indptr[j], data.indptr[j + 1]
    for q in range(start, stop):
        i = data.indices[q]
        p = in_class(i)
        e = row[p]
        new, inverse, new_inverse = _primal_step(e, exp_bounded(-c * data.data[q]))
        row[p + TILE] += ((e - inverse) - (new - new_inverse)) * since
        row[p] = new
        b = i // TILE
        if q + 1 == stop or data.indices[q + 1] // TILE != b:  # the last entry in this tile
            sum_tile(s, slot, b)


@njit(**inlined)
def _dual_dense(data, s, slot, l, i, c, theta):
    n, label, worn = s.y.size, float(l), 0
    x, row = data.Xt[i], s.dual[slot]
    if abs(c) * s.column_max[i] > JUMP:
        jumps = 0
        for j in range(n):
            if abs(c * x[j]) > JUMP:
                jumps += 1
                s.rows[at(ERROR, j)] = np.inf
        mend_rows(s, jumps)
    block = s.block[slot // block_size(s.order.size)]
    for t in range((n + TILE - 1) // TILE):
        width = min(TILE, n - t * TILE)
        r = s.rows[t * FIELDS * TILE : (t + 1) * FIELDS * TILE]
        p = row[2 * t * TILE : 2 * (t + 1) * TILE]
        q = block[t * TILE : t * TILE + width]
        x_t = x[t * TILE : t * TILE + width]
        exp_multiples(c, x_t, s.column_max[i], data.ratio)
        rho = 0.0
        for j in range(width):
            omega = data.ratio[j]
            mine = r[LABEL + j] == label
            w, beta, true = p[j], r[BETA + j], r[TRUE + j]
            new = min(max(w * omega, LOW), HIGH)
            new = 0.0 if mine else new
            factor = theta * omega if mine else theta
            r[TRUE_SUM + j] += true
            p[j] = new
            p[TILE + j] += (w - new) * r[B + j]
            q[j] += new - w
            beta, true, b, error, is_worn = row_step(
                beta, true, r[B + j], r[ERROR + j], beta * (new - w), factor
            )
            r[BETA + j] = beta
            r[TRUE + j] = true
            r[B + j] = b
            r[ERROR + j] = error
            worn += is_worn
            rho += r[W_TAU + j] * (1.0 - true)
        s.tile_rho[t] = rho
    return worn


@njit(**inlined)
def _dual_sparse(data, s, slot, l, i, c, theta):
    n, worn = s.y.size, 0
    row = s.dual[slot]
    block = s.block[slot // block_size(s.order.size)]
    start, stop = data.column_indptr[i], data.column_indptr[i + 1]
    if abs(c) * s.column_max[i] > JUMP:
        jumps = 0
        for q in range(start, stop):
            if abs(c * data.column_data[q]) > JUMP:
                jumps += 1
                s.rows[at(ERROR, data.column_indices[q])] = np.inf
        mend_rows(s, jumps)
    data.factor[:] = theta
    for q in range(start, stop):
        j = data.column_indices[q]
        omega = exp_bounded(c * data.column_data[q])
        if s.y[j] == l:
            data.factor[j] = theta * omega
        else:
            p = in_class(j)
            w = row[p]
            new = min(max(w * omega, LOW), HIGH)
            data.gain[j] = s.rows[at(BETA, j)] * (new - w)
            row[p] = new
            row[p + TILE] += (w - new) * s.rows[at(B, j)]
            block[j] += new - w
    for t in range((n + TILE - 1) // TILE):
        width = min(TILE, n - t * TILE)
        r = s.rows[t * FIELDS * TILE : (t + 1) * FIELDS * TILE]
        gain, factor = data.gain[t * TILE : t * TILE + width], data.factor[t * TILE :]
        rho = 0.0
        for j in range(width):
            true = r[TRUE + j]
            r[TRUE_SUM + j] += true
            beta, true, b, error, is_worn = row_step(
                r[BETA + j], true, r[B + j], r[ERROR + j], gain[j], factor[j]
            )
            r[BETA + j] = beta
            r[TRUE + j] = true
            r[B + j] = b
            r[ERROR + j] = error
            worn += is_worn
            rho += r[W_TAU + j] * (1.0 - true)
        s.tile_rho[t] = rho
    for q in range(start, stop):
        data.gain[data.column_indices[q]] = 0.0
    return worn


@overload(multiply_primal)
def _multiply_primal(data, s, slot, j, c):
    if _is(data, DenseData):
        return lambda data, s, slot, j, c: _primal_dense(data, s, slot, j, c)
    if _is(data, SparseData):
        return lambda data, s, slot, j, c: _primal_sparse(data, s, slot, j, c)


@overload(multiply_dual)
def _multiply_dual(data, s, slot, l, i, c, theta):
    if _is(data, DenseData):
        return lambda data, s, slot, l, i, c, theta: _dual_dense(data, s, slot, l, i, c, theta)
    if _is(data, SparseData):
        return lambda data, s, slot, l, i, c, theta: _dual_sparse(data, s, slot, l, i, c, theta)
