"""Rows of a matrix in an order of their own, beside a column of ones: made at once.

What is made in two steps takes twice the memory, and the allocator may keep the half of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

#: About so many entries are gathered at a time: they stay in the cache.
BLOCK_ENTRIES = 1 << 16


def take_rows(X: Any, rows: np.ndarray, ones: bool = False) -> Any:
    """``X[rows]``, with a last column of ones if asked for: X itself where that changes nothing.

    X is an array or in CSR form; what is made of the latter has float64 values.
    """
    if not ones and rows.size == X.shape[0] and (rows == np.arange(rows.size)).all():
        return X
    return _sparse_rows(X, rows, ones) if sp.issparse(X) else _dense_rows(X, rows, ones)


def _dense_rows(X: np.ndarray, rows: np.ndarray, ones: bool) -> np.ndarray:
    d = X.shape[1]
    out = np.empty((rows.size, d + ones), X.dtype)
    out[:, d:] = 1.0
    for block in _blocks(rows.size, d):
        out[block, :d] = X[rows[block]]
    return out


def _sparse_rows(X: sp.csr_array, rows: np.ndarray, ones: bool) -> sp.csr_array:
    d = X.shape[1]
    indptr = np.zeros(rows.size + 1, X.indptr.dtype)
    np.cumsum(np.diff(X.indptr)[rows] + ones, out=indptr[1:])
    indices, data = np.full(indptr[-1], d, X.indices.dtype), np.ones(indptr[-1])
    for block in _blocks(rows.size, indptr[-1] // max(1, rows.size)):
        some, stored = X[rows[block]], slice(indptr[block.start], indptr[block.stop])
        given = np.ones(stored.stop - stored.start, dtype=bool)
        if ones:  # the last of every row
            given[indptr[block.start + 1 : block.stop + 1] - 1 - stored.start] = False
        indices[stored][given], data[stored][given] = some.indices, some.data
    return sp.csr_array((data, indices, indptr), shape=(rows.size, d + ones))


def _blocks(n: int, entries: int) -> Iterator[slice]:
    """Slices of n rows with so many entries each."""
    size = max(1, BLOCK_ENTRIES // max(1, entries))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
