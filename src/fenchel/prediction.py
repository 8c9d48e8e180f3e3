"""Scores in blocks of rows: no (n, k) array is made unless it is the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import gen_batches

from fenchel.problem import Matrix

#: Arrays of the size of a block of scores that live at the same time: the scores, a product on
#: its way to them, and what is computed from them.
ARRAYS = 4

#: Up to this many best classes are found one after the other, more of them by sorting the row.
FEW = 16

#: Coefficients stay an array below this size, however sparse they are.
SMALL_BYTES = 1 << 20


def compact(coef: Matrix, dtype: np.dtype) -> Matrix:
    """The coefficients as an array, or as a CSR array where that is smaller and it matters."""
    nonzeros = coef.nnz if sp.issparse(coef) else np.count_nonzero(coef)
    k, d = coef.shape
    size = k * d * dtype.itemsize
    if size > SMALL_BYTES and nonzeros * (dtype.itemsize + 4) + 4 * (k + 1) < size:
        return sp.csr_array(coef, dtype=dtype)
    dense = coef.toarray() if sp.issparse(coef) else coef
    return np.ascontiguousarray(dense, dtype=dtype)


def fitted(U: Matrix, intercept: np.ndarray | None, dtype: np.dtype) -> dict[str, Any]:
    """``coef_`` and ``intercept_`` of a model; the intercepts sum to zero.

    All scores of a row may be shifted by a constant: the predictions stay.
    """
    intercept = np.zeros(U.shape[1]) if intercept is None else intercept
    centred = (intercept - intercept.mean()).astype(dtype)
    return {"coef_": compact(U.T, dtype), "intercept_": centred}


def score_blocks(X: Matrix, coef: Matrix, intercept: np.ndarray) -> Iterator[tuple[slice, Any]]:
    """Yield ``(rows, X[rows] @ coef.T + intercept)``; either matrix may be sparse and is used so.

    A block and what is computed from it stay within scikit-learn's ``working_memory`` (in MiB,
    1024 unless ``sklearn.set_config`` says otherwise).
    """
    budget = int(get_config()["working_memory"] * 2**20)
    size = ARRAYS * coef.shape[0] * 8 + _row_bytes(X)
    for rows in gen_batches(X.shape[0], max(1, budget // size)):
        yield rows, _product(X[rows], coef) + intercept


def _row_bytes(X: Matrix) -> int:
    """What the copies of a row of X take, about, which a product makes for a type or an order."""
    entry = X.dtype.itemsize + 8
    if not sp.issparse(X):
        return entry * X.shape[1]
    return (entry + X.indices.itemsize) * X.nnz // X.shape[0]


def _product(X: Matrix, coef: Matrix) -> np.ndarray:
    if sp.issparse(coef) and not sp.issparse(X):
        return (coef @ X.T).T  # the sparse factor first, so that it stays sparse
    product = X @ coef.T
    return product.toarray() if sp.issparse(product) else product


def scores(
    X: Matrix,
    coef: Matrix,
    intercept: np.ndarray,
    transform: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """All scores, (n, k), or what ``transform`` makes of each block of them."""
    out = np.empty((X.shape[0], coef.shape[0]), dtype=np.result_type(X, coef, intercept))
    for rows, Z in score_blocks(X, coef, intercept):
        out[rows] = Z if transform is None else transform(Z)
    return out


def margins(X: Matrix, coef: Matrix, intercept: np.ndarray) -> np.ndarray:
    """The second class's score less the first one's, (n,)."""
    out = np.empty(X.shape[0], dtype=np.result_type(X, coef, intercept))
    for rows, Z in score_blocks(X, coef, intercept):
        out[rows] = Z[:, 1] - Z[:, 0]
    return out


def top_blocks(
    X: Matrix, coef: Matrix, intercept: np.ndarray, n_top: int
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Rows, and the column numbers and the scores of their ``n_top`` highest scores, best first.

    Equal scores are ordered by column.
    """
    for rows, Z in score_blocks(X, coef, intercept):
        if n_top <= FEW:
            columns = np.empty((len(Z), n_top), dtype=np.intp)
            values = np.empty((len(Z), n_top), dtype=Z.dtype)
            for place in range(n_top):
                columns[:, place] = Z.argmax(axis=1)
                here = np.arange(len(Z)), columns[:, place]
                values[:, place] = Z[here]
                Z[here] = -np.inf
        else:
            columns = np.argsort(-Z, axis=1, kind="stable")[:, :n_top]
            values = np.take_along_axis(Z, columns, axis=1)
        yield rows, columns, values
