"""A dense design matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.design.base import Design
from fenchel.few_columns import matmul

#: What needs a temporary copy of rows (float32 widened to float64, say) works on blocks of about
#: this many entries.
BLOCK_ENTRIES = 1 << 21

#: The product with a sparse U copies a block by columns: so many entries stay in the cache, and the
#: hole that a larger copy leaves would stay memory of the process beside a large X.
COPIED_ENTRIES = 1 << 17

#: Squares are formed of about this many entries at a time: they stay in the cache.
SQUARED_ENTRIES = 1 << 15

#: A sum of squares between this and one over it has lost nothing to the range of floats.
TINY = 1e-200

#: Where a sparse U has coefficients of at most this part of the features, the others are not read.
FEW_FEATURES = 0.1

#: Rows that are transposed together: their columns are written in whole cache lines. Arrays of few
#: entries stay in the cache, and numpy's own way is the faster one.
TRANSPOSED, FEW_ENTRIES = 64, 1 << 16


def by_columns(X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``X.T`` in memory order, a copy where it must be; numpy's own takes up to four times as long.

    Where ``out`` is given, it is made there.
    """
    if out is None:
        if X.flags.f_contiguous:
            return X.T
        if X.size <= FEW_ENTRIES:
            return np.ascontiguousarray(X.T)
        out = np.empty((X.shape[1], X.shape[0]), X.dtype)
    for start in range(0, X.shape[0], TRANSPOSED):
        out[:, start : start + TRANSPOSED] = X[start : start + TRANSPOSED].T
    return out


class DenseDesign(Design):
    """X as a float64 or float32 array; float32 is widened block by block, never as a whole."""

    is_sparse: ClassVar[bool] = False

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.shape = X.shape

    def _blocks(
        self, whole: bool = True, entries: int = BLOCK_ENTRIES
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows in float64; float64 itself is one block where ``whole`` allows it."""
        n, d = self.shape
        whole = whole and self.X.dtype == np.float64
        size = n if whole else max(1, entries // max(d, 1))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def matmul(self, U: np.ndarray | sp.sparray) -> np.ndarray:
        if self.X.dtype == np.float64 and not sp.issparse(U):
            return matmul(self.X, U)
        if sp.issparse(U):
            return self._matmul_sparse(sp.csr_array(U))
        out = np.empty((self.shape[0], U.shape[1]))
        for rows, block in self._blocks():
            out[rows] = matmul(block, U)
        return out

    def _matmul_sparse(self, U: sp.csr_array) -> np.ndarray:
        """``X @ U``, which reads the features in use alone where these are few."""
        out = np.empty((self.shape[0], U.shape[1]))
        used = np.flatnonzero(np.diff(U.indptr))
        few = used.size <= FEW_FEATURES * self.shape[1]
        Ut = (U[used] if few else U).T.tocsr()
        for rows, block in self._blocks(whole=False, entries=COPIED_ENTRIES):
            # sparse @ dense.T copies the block by columns
            out[rows] = (Ut @ (block[:, used] if few else block).T).T
        return out

    def rmatmul(self, W: Any) -> np.ndarray:
        if self.X.dtype == np.float64 and not sp.issparse(W):
            return matmul(self.X.T, W)
        out = np.zeros((self.shape[1], W.shape[1]))
        W = W.tocsr() if sp.issparse(W) else W
        for rows, block in self._blocks():
            out += (W[rows].T @ block).T if sp.issparse(W) else matmul(block.T, W[rows])
        return out

    def rows(self, start: int, stop: int) -> DenseDesign:
        return DenseDesign(self.X[start:stop])

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.shape[1]), self.X[i].astype(np.float64, copy=False)

    def column(self, j: int) -> np.ndarray:
        return self.X[:, j].astype(np.float64)

    def column_norms(self, weights: np.ndarray) -> np.ndarray:
        total = np.zeros(self.shape[1])
        with np.errstate(over="ignore", under="ignore"):
            for rows, block in self._blocks(whole=False, entries=SQUARED_ENTRIES):
                total += weights[rows] @ np.square(block)
        norms = np.sqrt(total)
        doubtful = np.flatnonzero(~((total > TINY) & (total < 1.0 / TINY)))
        if doubtful.size:
            norms[doubtful] = self._scaled_norms(weights, doubtful)
        return norms

    def _scaled_norms(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The norms of some columns, each divided by its largest entry before it is squared."""
        largest = np.zeros(columns.size)
        for _, block in self._blocks(whole=False):
            np.maximum(largest, np.abs(block[:, columns]).max(axis=0), out=largest)
        if not largest.any():
            return largest
        scale = np.where(largest > 0, largest, 1.0)
        total = np.zeros(columns.size)
        for rows, block in self._blocks(whole=False):
            total += weights[rows] @ np.square(block[:, columns] / scale)
        return scale * np.sqrt(total)

    def row_max_abs(self) -> np.ndarray:
        blocks = self._blocks(whole=False)
        return np.concatenate([np.abs(block).max(axis=1) for _, block in blocks])
