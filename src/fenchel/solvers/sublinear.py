"""The sublinear solver of the paper (alg:main), for the multiclass hinge loss.

An iteration reads one row and one column of X and touches one class of U and one of V:
O(d + n + sqrt k) work, and O(row + n + column) of it when X is sparse. Memory grows with the
touched classes only. :mod:`fenchel.kernels.sublinear` explains what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from fenchel.kernels import sublinear as lazy
from fenchel.kernels.sublinear import (
    ALPHA,
    DUAL_USED,
    PRIMAL_USED,
    A,
    State,
    T,
    cut,
    decay,
    draw_class_of_row,
    draw_entry,
    draw_row,
    dual_slot,
    mend_rows,
    options,
    primal_slot,
    scale_primal,
    upkeep,
)
from fenchel.kernels.sublinear_design import (
    DenseData,
    SparseData,
    multiply_dual,
    multiply_primal,
)

#: Iterations made by one call of the compiled loop at most.
CHUNK = 1 << 14


@njit(**options)
def iterate(data, s, lam, radius, gammas, noisy):
    """Algorithm alg:main for t = T, T+1, ...; returns early when there is no free slot left.

    Row t of ``noisy`` receives the entry (i, l, value) which is the unbiased estimate of U^t;
    ``noisy`` may have no rows.
    """
    d, k = s.sigma.size, s.slot.size
    L, log_k = np.log(2.0 * d * k), np.log(float(k))
    for t in range(gammas.size):
        if s.count[PRIMAL_USED] == s.primal.shape[0] or s.count[DUAL_USED] == s.dual.shape[0]:
            return t
        gamma = gammas[t]
        s.count[T] += 1

        # eta, the only non-zero column of the estimate of Xhat^T (V - Y) / n (line alg:line-eta)
        j, tau_rho = draw_row(s)
        l, sign = draw_class_of_row(s, j)
        eta = sign * tau_rho / s.tau[j] if tau_rho > 0.0 else 0.0
        # TrackPrimal and UpdatePrimal
        slot = primal_slot(s, l)
        s.scalar[A] += s.scalar[ALPHA]
        rate = 2.0 * gamma * L * radius
        multiply_primal(data, s, slot, j, cut(rate * eta, s.tau[j]))
        scale_primal(s, l, slot, decay(rate * lam), radius)

        # xi, the only non-zero column of the estimate of Xhat U (line alg:line-xi)
        i, l, sign, sigma_pi = draw_entry(s)
        xi = sign * sigma_pi / s.sigma[i] if s.sigma[i] > 0.0 else 0.0
        # TrackDual and UpdateDual
        slot = dual_slot(s, l)
        rate = 2.0 * gamma * log_k
        worn = multiply_dual(data, s, slot, l, i, cut(rate * xi, s.column_max[i]), decay(rate))
        mend_rows(s, worn)
        upkeep(s)

        if noisy.shape[0] > 0:
            noisy[t, 0], noisy[t, 1], noisy[t, 2] = i, l, xi
    return gammas.size


def make_data(X: np.ndarray | sp.sparray) -> DenseData | SparseData:
    """X by rows and by columns, as the compiled loop reads it."""
    if not sp.issparse(X):
        X = np.ascontiguousarray(X)
        return DenseData(X, np.ascontiguousarray(X.T))
    X, n = sp.csr_array(X), X.shape[0]
    columns = X.tocsc()
    return SparseData(
        X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data,
        np.zeros(n), np.zeros(n),
    )  # fmt: skip


def make_state(
    y: np.ndarray,
    k: int,
    weights: np.ndarray,
    sigma: np.ndarray,
    tau: np.ndarray,
    column_max: np.ndarray,
    radius: float,
    key: int,
) -> State:
    """The state before the first iteration (line alg:line-U-init): no class is touched."""
    n, d = y.size, sigma.size
    tile = lazy.TILE
    row_tiles, feature_tiles = -(-n // tile), -(-d // tile)
    rows = np.zeros((row_tiles, lazy.FIELDS, tile))
    for name, values in (
        (lazy.BETA, np.full(n, 1.0 / k)),
        (lazy.TRUE, np.full(n, 1.0 / k)),
        (lazy.W_TAU, weights * tau),
        (lazy.LABEL, y.astype(float)),
    ):
        rows[:, name // tile] = _tiles(values)
    group = lazy.block_size(k)
    state = State(
        rng=np.array([key, 0], dtype=np.uint64),
        count=np.zeros(8, dtype=np.int64),
        scalar=np.array([radius / (2.0 * d * k), 0.0]),
        slot=np.full(k, -1, dtype=np.int64),
        primal=np.empty((0, 2 * tile * feature_tiles)),
        tile_sigma=np.empty((0, feature_tiles)),
        tile_mass=np.empty((0, feature_tiles)),
        sigma=sigma,
        sigma_untouched=2.0 * _tiles(sigma).sum(axis=1),
        class_sigma=np.full(k, 2.0 * sigma.sum()),
        class_mass=np.full(k, 2.0 * d),
        group_sigma=_group_sums(np.full(k, 2.0 * sigma.sum()), group),
        group_mass=_group_sums(np.full(k, 2.0 * d), group),
        order=np.arange(k),
        place=np.arange(k),
        dual=np.empty((0, 2 * tile * row_tiles)),
        block=np.empty((0, n)),
        rows=rows.ravel(),
        flushed=np.zeros(n),
        tile_rho=_tiles(weights * tau * (1.0 - 1.0 / k)).sum(axis=1),
        tau=tau,
        column_max=column_max,
        y=y.astype(np.int64),
    )
    return grow(state)


def grow(s: State) -> State:
    """Make room for more touched classes where it has run out."""
    k = s.slot.size
    if s.count[PRIMAL_USED] == s.primal.shape[0]:
        slots = _more(s.primal, k)
        s = s._replace(
            primal=_resized(s.primal, slots),
            tile_sigma=_resized(s.tile_sigma, slots),
            tile_mass=_resized(s.tile_mass, slots),
        )
    if s.count[DUAL_USED] == s.dual.shape[0]:
        slots = _more(s.dual, k)
        blocks = -(-slots // lazy.block_size(k))
        s = s._replace(dual=_resized(s.dual, slots), block=_resized(s.block, blocks))
    return s


def _more(array: np.ndarray, k: int) -> int:
    """The next number of slots: half as many again, and 64 MiB at the least.

    One slot more than there are classes, so that the loop never waits for a slot it cannot get.
    """
    slots, row = array.shape
    return min(k + 1, max(slots + slots // 2, (64 << 20) // (8 * row), 16))


def _resized(array: np.ndarray, length: int) -> np.ndarray:
    larger = np.empty((length, array.shape[1]))
    larger[: array.shape[0]] = array
    return larger


def _tiles(values: np.ndarray) -> np.ndarray:
    """A vector in rows of TILE, padded with zeros."""
    padded = np.zeros(-(-values.size // lazy.TILE) * lazy.TILE)
    padded[: values.size] = values
    return padded.reshape(-1, lazy.TILE)


def _group_sums(values: np.ndarray, size: int) -> np.ndarray:
    return np.add.reduceat(values, np.arange(0, values.size, size))
