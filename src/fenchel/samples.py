"""Training data as a weighted set: every distinct sample once, in an order of its own.

A weight is a repetition. So that this holds to the last bit, and for the sampled solvers too, rows
without weight are left out, equal rows of one class become one row with the sum of their weights,
and the rows are sorted by class and by a hash of their values. The objective is the same function;
a model does not depend on the order in which the samples came, and repetitions cost nothing.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fenchel.kernels.row_hash import hash_dense, hash_sparse
from fenchel.problem import Matrix

#: Rows are hashed, and compared, in blocks of about this many entries: small beside any fit.
BLOCK_ENTRIES = 1 << 17


def distinct(
    X: Matrix, codes: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with the distinct samples of ``(X, codes)``, and the sums of their weights.

    X is an array or in :func:`canonical` CSR form; no weights are weights of one.
    """
    weights = np.ones(X.shape[0]) if weights is None else weights
    kept = np.flatnonzero(weights)
    hashes = row_hashes(X)
    # the weight is a key too, so that sums do not depend on the order of what is added
    order = kept[np.lexsort((weights[kept], hashes[kept], codes[kept]))]
    repeats = np.flatnonzero(
        (codes[order[1:]] == codes[order[:-1]]) & (hashes[order[1:]] == hashes[order[:-1]])
    )
    first = np.ones(order.size, dtype=bool)
    # equal hashes are not taken at their word
    first[1 + repeats] = _differ(X, order[repeats], order[1 + repeats])
    starts = np.flatnonzero(first)
    return order[starts], np.add.reduceat(weights[order], starts)


def canonical(X: Matrix) -> Matrix:
    """An array, or a CSR matrix in which no place is stored twice: equal rows look equal."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # the caller's matrix stays as it was
        X.sum_duplicates()
    return X


def row_hashes(X: Matrix) -> np.ndarray:
    """A hash of the values of every row, (n,) uint64; dense and sparse rows have the same."""
    out = np.empty(X.shape[0], dtype=np.uint64)
    if sp.issparse(X):
        bits = X.data.astype(np.float64, copy=False).view(np.uint64)
        hash_sparse(X.indptr, X.indices, bits, out)
        return out
    size = max(1, BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], size):
        block = np.ascontiguousarray(X[start : start + size], dtype=np.float64)
        hash_dense(block.view(np.uint64), out[start : start + size])
    return out


def _differ(X: Matrix, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether the rows ``left[t]`` and ``right[t]`` differ, for every t."""
    out = np.empty(left.size, dtype=bool)
    size = max(1, BLOCK_ENTRIES // max(1, X.size // X.shape[0]))
    for block in (slice(start, start + size) for start in range(0, left.size, size)):
        differs = X[left[block]] != X[right[block]]  # of any numbers: bools have no difference
        stored = sp.issparse(differs)
        out[block] = np.diff(differs.indptr) > 0 if stored else differs.any(axis=1)
    return out
