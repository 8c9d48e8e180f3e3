"""Entries of U that a step works on, and the columns of X that belong to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design import Design, SparseDesign
from fenchel.kernels import curvature
from fenchel.problem import BLOCK_ENTRIES, Problem

#: A refreshed working set takes in at most this many times the non-zeros, or MIN_NEW entries: far
#: fewer starve sparse text, far more slow down small dense problems.
GROWTH, MIN_NEW, MIN_NEW_SMALL = 2, 500, 50


def most_new(problem: Problem, nonzeros: int) -> int:
    """How many entries a refreshed working set takes in at most."""
    return max(first_entries(problem.d, problem.k), GROWTH * nonzeros)


def first_entries(d: int, k: int) -> int:
    """How many entries the first working set has at most."""
    return min(MIN_NEW, max(MIN_NEW_SMALL, d * k // 10))


@dataclass
class Entries:
    """Entries (feature, class) of U and their values, sorted by class and then by feature."""

    feature: np.ndarray
    klass: np.ndarray
    u: np.ndarray

    @classmethod
    def empty(cls) -> Entries:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of(cls, U: np.ndarray | sp.sparray) -> Entries:
        """The non-zeros of a matrix."""
        U = sp.csc_array(U)
        U.sum_duplicates()
        klass = np.repeat(np.arange(U.shape[1]), np.diff(U.indptr))
        keep = U.data != 0
        return cls(U.indices[keep].astype(np.int64), klass[keep], U.data[keep].astype(np.float64))

    @property
    def classes(self) -> np.ndarray:
        """The classes that occur."""
        return np.unique(self.klass)

    def matrix(self, values: np.ndarray, shape: tuple[int, int]) -> sp.csc_array:
        """The (d, k) matrix with these values at the entries; zeros are not stored."""
        keep = values != 0
        indptr = np.searchsorted(self.klass[keep], np.arange(shape[1] + 1))
        return sp.csc_array((values[keep], self.feature[keep], indptr), shape=shape)

    def with_new(self, feature: np.ndarray, klass: np.ndarray) -> Entries:
        """The non-zeros of this set and the given entries, which start at zero."""
        keep = self.u != 0
        feature = np.concatenate([self.feature[keep], feature])
        klass = np.concatenate([self.klass[keep], klass])
        u = np.concatenate([self.u[keep], np.zeros(feature.size - int(keep.sum()))])
        order = np.lexsort((u == 0, feature, klass))  # of two equal entries the non-zero is first
        feature, klass, u = feature[order], klass[order], u[order]
        first = np.ones(u.size, dtype=bool)
        first[1:] = (np.diff(feature) != 0) | (np.diff(klass) != 0)
        return Entries(feature[first], klass[first], u[first])


@dataclass
class Columns:
    """Columns of X for the compiled kernels; no kernel is told twice whether X is sparse."""

    _data: tuple
    _gradient: Callable[..., Any]
    _pack: Callable[..., Any]
    _product: Callable[..., Any]

    @classmethod
    def of(cls, design: Design) -> Columns:
        """The columns of a design; a dense one is copied by columns."""
        if isinstance(design, SparseDesign):
            csc = design.csc
            data: tuple = (csc.indptr, csc.indices, csc.data, design.shape[0])
            kernels = curvature.sparse_gradient, curvature.sparse_pack, curvature.sparse_product
            return cls(data, *kernels)
        data = (np.ascontiguousarray(design.X.T),)
        return cls(data, curvature.dense_gradient, curvature.dense_pack, curvature.dense_product)

    def product(self, entries: Entries, values: np.ndarray, k: int) -> np.ndarray:
        """``X S`` for the matrix S with the given values at the entries, dense (n, k)."""
        return self._product(*self._data, entries.feature, entries.klass, values, k)

    def gradient(self, entries: Entries, residual: tuple) -> np.ndarray:
        """G_U at the entries, for ``residual`` as from ``residual_columns``."""
        out = np.empty(entries.u.size)
        self._gradient(*self._data, entries.feature, entries.klass, *residual, out)
        return out

    def pack(self, entries: Entries, curvature_at: tuple) -> tuple[tuple, tuple]:
        """The values of X at the positions of ``curvature_columns``, and the positions in use."""
        pointer, row, weight, share = curvature_at
        packed = self._pack(*self._data, entries.feature, entries.klass, pointer, row)
        return packed, curvature.drop_unused(packed[1], row, weight, share)


def violators(
    problem: Problem, V: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The entries with ``|G_U(j,l)| > lam c_j``: the ``limit`` worst of them, and the scale s.

    Where no coefficient may be negative, only ``-G_U`` counts.

    Works through the classes in blocks, so that no (d, k) array is needed.

    Returns
    -------
    feature, klass, excess : the entries and ``|G_U| - lam c_j`` there.
    s : the largest s <= 1 for which ``s |G_U(j,l)| <= lam c_j`` wherever c_j > 0.
    """
    bound = problem.lam * problem.penalty_factor[:, None]
    width = max(1, BLOCK_ENTRIES // max(problem.d, problem.n))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    scale = 1.0
    for start in range(0, problem.k, width):
        stop = min(start + width, problem.k)
        classes = np.arange(start, stop)
        pointer, row, value = curvature.residual_columns(V, problem.y, problem.weights, classes)
        R = sp.csc_array((value, row, pointer[start : stop + 1]), shape=(problem.n, stop - start))
        sparse = R.nnz < 0.3 * problem.n * (stop - start)
        G = problem.constrained_part(problem.design.rmatmul(R if sparse else R.toarray()))
        excess = G - bound
        feature, klass = np.nonzero(excess > 0)
        over, allowed = G[feature, klass], bound[feature, 0]
        if (allowed > 0).any():
            scale = min(scale, float((allowed / over)[allowed > 0].min()))
        found.append(_worst(feature, klass + start, excess[feature, klass], limit))
    feature, klass, excess = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return *_worst(feature, klass, excess, limit), scale


def _worst(
    feature: np.ndarray, klass: np.ndarray, excess: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if excess.size > limit:
        keep = np.argpartition(excess, excess.size - limit)[excess.size - limit :]
        feature, klass, excess = feature[keep], klass[keep], excess[keep]
    return feature, klass, excess
