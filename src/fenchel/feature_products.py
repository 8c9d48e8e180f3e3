"""What is asked of ``G = X^T W`` for a sparse X, feature by feature, and never G itself.

W is an array (n, k); or its rows beside what most classes have in common, as in
:func:`fenchel.common_part.rows_beside_common`; or, with few non-zeros, :class:`StoredRows`.
Features are independent of each other, so that threads share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from fenchel.kernels import sparse_products as kernels
from fenchel.threads import each

#: Features are taken in parts of about so many multiplications, and in no more parts than this.
PART_WORK, MOST_PARTS = 1 << 21, 64


class StoredRows(NamedTuple):
    """The non-zeros of W by rows, in k classes: int64 pointers, int32 classes, values."""

    k: int
    pointer: np.ndarray
    klass: np.ndarray
    value: np.ndarray


Residual: TypeAlias = np.ndarray | StoredRows | tuple


def beyond(
    csc: sp.csc_array, W: Residual, nonnegative: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Where the constrained part of G is beyond bound_j: feature, class, and by how much.

    Also returns the smallest of ``bound_j / part`` there, for positive bounds (1 where none is).
    """
    most = _largest_by_row(W)

    def of(some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        kernel = _kernel(kernels.beyond_bounds, kernels.beyond_bounds_of_rows, csc, W, most, some)
        feature, klass, excess, scale = kernel(nonnegative[some], bound[some])
        return feature + some.start, klass, excess, scale

    feature, klass, excess, scale = zip(*each(of, *_parts(csc, W)), strict=True)
    return np.concatenate(feature), np.concatenate(klass), np.concatenate(excess), min(scale)


def raise_to_largest(
    csc: sp.csc_array, W: Residual, nonnegative: np.ndarray, enough: np.ndarray, out: np.ndarray
) -> None:
    """Raise ``out_j`` to the largest constrained part in row j of G.

    Or to a number that is no smaller, and at most enough_j.
    """
    most = _largest_by_row(W)

    def of(some: slice) -> None:
        kernel = _kernel(
            kernels.largest_by_feature, kernels.largest_by_feature_of_rows, csc, W, most, some
        )
        kernel(nonnegative[some], enough[some], out[some])

    each(of, *_parts(csc, W))


def _kernel(
    whole: Callable,
    of_rows: Callable,
    csc: sp.csc_array,
    W: Residual,
    most: np.ndarray,
    some: slice,
) -> Callable[..., Any]:
    """The kernel for this W with all that it needs of it, and of some columns of X."""
    stored = csc.indptr[some.start : some.stop + 1], csc.indices, csc.data
    if isinstance(W, np.ndarray):
        return partial(whole, *stored, W, most)
    if isinstance(W, StoredRows):
        space = np.zeros(W.k)
        return partial(of_rows, *stored, tuple(W[1:]), most, space)
    k, base, *rows, _ = W
    return partial(whole, *stored, (k, base[some], *rows), most)


def _largest_by_row(W: Residual) -> np.ndarray:
    """``max_l |w_il|`` for every i."""
    if isinstance(W, StoredRows):
        most = np.empty(W.pointer.size - 1)
        kernels.largest_of_stored(W.pointer, W.value, most)
        return most
    if not isinstance(W, np.ndarray):
        return W[-1]
    most = np.empty(W.shape[0])
    size = max(1, PART_WORK // max(1, W.shape[1]))
    rows = (slice(start, start + size) for start in range(0, W.shape[0], size))
    each(lambda some: kernels.largest_by_row(W[some], most[some]), rows, W.size)
    return most


def _parts(csc: sp.csc_array, W: Residual) -> tuple[Iterator[slice], float]:
    """Slices of features with about as many multiplications each, and how many are in all."""
    n, d = csc.shape
    stored = W.size if isinstance(W, np.ndarray) else W[3].size
    work = float(csc.nnz) * stored / max(1, n)
    n_parts = int(min(max(1.0, work / PART_WORK), MOST_PARTS))
    ends = np.searchsorted(csc.indptr, np.linspace(0, csc.nnz, n_parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], ends, [d]]))
    return (slice(int(a), int(b)) for a, b in pairwise(bounds)), work
