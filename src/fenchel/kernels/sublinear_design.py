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
    FIELDS,
    HIGH,
    JUMP,
    LEAST,
    LOW,
    SIZE,
    TILE,
    TRUE,
    W_TAU,
    A,
    B,
    at,
    book_class,
    in_class,
    inlined,
    renormalise_row,
    row_step,
    sum_tile,
)


class DenseData(NamedTuple):
    X: np.ndarray  # (n, d)
    Xt: np.ndarray  # (d, padded n)
    ratio: np.ndarray  # (TILE,) work space: exp has a loop of its own, so that both fit registers


class SparseData(NamedTuple):
    indptr: np.ndarray  # CSR
    indices: np.ndarray
    data: np.ndarray
    column_indptr: np.ndarray  # CSC
    column_indices: np.ndarray
    column_data: np.ndarray
    gain: np.ndarray  # (padded n,) work space, 0 between calls
    factor: np.ndarray  # (padded n,) work space


def multiply_primal(data, s, slot, j, c):
    """E(:, l) *= exp(-c X(j, :)), with S and the sums over tiles (UpdatePrimal, TrackPrimal)."""
    raise NotImplementedError


def multiply_dual(data, s, slot, l, i, c, theta):
    """W(:, l) *= exp(c X(:, i)), with S, the block sums and all vectors over rows (UpdateDual,
    TrackDual)."""
    raise NotImplementedError


def _is(data, kind):
    return isinstance(data, types.BaseNamedTuple) and data.instance_class is kind


@njit(**inlined)
def _primal_dense(data, s, slot, j, c):
    d, since = s.sigma.size, s.scalar[A] - s.base[slot]
    x, row = data.X[j], s.primal[slot]
    # alpha is in range, so that E leaves its own by a large exponent only
    jump = abs(c) * s.tau[j] > JUMP
    for b in range(d // TILE):
        _primal_tile(data, s, slot, x, row, b, TILE, -c, s.tau[j], since, jump)
    if d % TILE:
        _primal_tile(data, s, slot, x, row, d // TILE, d % TILE, -c, s.tau[j], since, jump)
    s.base[slot] = s.scalar[A]  # all of the class is booked on the way


@njit(**inlined)
def _primal_tile(data, s, slot, x, row, b, width, c, largest, since, jump):
    p, ratio = row[2 * b * TILE : 2 * (b + 1) * TILE], data.ratio
    sigma = s.sigma[b * TILE : b * TILE + width]
    exp_multiples(c, x[b * TILE : b * TILE + width], largest, ratio)
    if jump:
        for i in range(width):
            ratio[i] = min(max(p[i] * ratio[i], LOW), HIGH) / p[i]
    sigma_sum, mass = 0.0, 0.0
    for i in range(width):
        e = p[i]
        new = e * ratio[i]
        both = 1.0 / (e * new)  # one division for 1/e and 1/new
        p[TILE + i] += (e - both * new) * since
        p[i] = new
        entry = new + both * e
        sigma_sum += sigma[i] * entry
        mass += entry
    s.tile_sigma[slot, b] = sigma_sum
    s.tile_mass[slot, b] = mass


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
        new = min(max(e * exp_bounded(-c * data.data[q]), LOW), HIGH)
        row[p + TILE] += ((e - 1.0 / e) - (new - 1.0 / new)) * since
        row[p] = new
        b = i // TILE
        if q + 1 == stop or data.indices[q + 1] // TILE != b:  # the last entry in this tile
            sum_tile(s, slot, b)


@njit(**inlined)
def _dual_dense(data, s, slot, l, i, c, theta):
    x, row = data.Xt[i], s.dual[slot]
    if abs(c) * s.column_max[i] > JUMP:
        for j in range(s.y.size):
            if abs(c * x[j]) > JUMP:
                renormalise_row(s, j)
    block = s.block[slot // s.count[SIZE]]
    for t in range(s.tile_rho.size):
        r = s.rows[t * FIELDS * TILE : (t + 1) * FIELDS * TILE]
        p = row[2 * t * TILE : 2 * (t + 1) * TILE]
        q = block[t * TILE : (t + 1) * TILE]
        exp_multiples(c, x[t * TILE : (t + 1) * TILE], s.column_max[i], data.ratio)
        rho = 0.0
        for j in range(TILE):
            omega, w = data.ratio[j], p[j]
            new = max(w * omega, min(w, LEAST))
            factor = theta * omega if w == 0.0 else theta  # the true class has W = 0
            p[j] = new
            p[TILE + j] += (w - new) * r[B + j]
            q[j] += new - w
            gain = r[BETA + j] * (new - w)
            beta, true, b = row_step(r[BETA + j], r[TRUE + j], r[B + j], gain, factor)
            r[BETA + j] = beta
            r[TRUE + j] = true
            r[B + j] = b
            rho += r[W_TAU + j] * (1.0 - true)
        s.tile_rho[t] = rho


@njit(**inlined)
def _dual_sparse(data, s, slot, l, i, c, theta):
    row = s.dual[slot]
    block = s.block[slot // s.count[SIZE]]
    start, stop = data.column_indptr[i], data.column_indptr[i + 1]
    if abs(c) * s.column_max[i] > JUMP:
        for q in range(start, stop):
            if abs(c * data.column_data[q]) > JUMP:
                renormalise_row(s, data.column_indices[q])
    data.factor[:] = theta
    for q in range(start, stop):
        j = data.column_indices[q]
        omega = exp_bounded(c * data.column_data[q])
        if s.y[j] == l:
            data.factor[j] = theta * omega
        else:
            p = in_class(j)
            w = row[p]
            new = max(w * omega, LEAST)
            data.gain[j] = s.rows[at(BETA, j)] * (new - w)
            row[p] = new
            row[p + TILE] += (w - new) * s.rows[at(B, j)]
            block[j] += new - w
    for t in range(s.tile_rho.size):
        r = s.rows[t * FIELDS * TILE : (t + 1) * FIELDS * TILE]
        gain = data.gain[t * TILE : (t + 1) * TILE]
        factor = data.factor[t * TILE : (t + 1) * TILE]
        rho = 0.0
        for j in range(TILE):
            beta, true, b = row_step(r[BETA + j], r[TRUE + j], r[B + j], gain[j], factor[j])
            r[BETA + j] = beta
            r[TRUE + j] = true
            r[B + j] = b
            rho += r[W_TAU + j] * (1.0 - true)
        s.tile_rho[t] = rho
    for q in range(start, stop):
        data.gain[data.column_indices[q]] = 0.0


@overload(multiply_primal, jit_options=inlined)
def _multiply_primal(data, s, slot, j, c):
    if _is(data, DenseData):
        return lambda data, s, slot, j, c: _primal_dense(data, s, slot, j, c)
    if _is(data, SparseData):
        return lambda data, s, slot, j, c: _primal_sparse(data, s, slot, j, c)


@overload(multiply_dual, jit_options=inlined)
def _multiply_dual(data, s, slot, l, i, c, theta):
    if _is(data, DenseData):
        return lambda data, s, slot, l, i, c, theta: _dual_dense(data, s, slot, l, i, c, theta)
    if _is(data, SparseData):
        return lambda data, s, slot, l, i, c, theta: _dual_sparse(data, s, slot, l, i, c, theta)
