"""The design matrix X behind one interface, so that no solver asks whether it is sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fenchel.design.base import Design
from fenchel.design.dense import DenseDesign
from fenchel.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "SparseDesign", "is_hardly_sparse", "make_design"]

#: A sparse X of which at least this part is stored is made dense: without indices a fit takes down
#: to a seventh of the time, and no longer than with them (benchmarks/hardly_sparse.py).
HARDLY_SPARSE = 0.15

#: But no smaller one, where neither takes long, and no larger one, whose copy would be a surprise:
#: it takes up to four times the memory of X, and is copied by columns as any other array.
LEAST_ENTRIES, MOST_ENTRIES = 1 << 16, 1 << 26


def make_design(X: np.ndarray | sp.sparray | sp.spmatrix) -> Design:
    """Wrap a validated matrix; one that is hardly sparse is copied into an array."""
    if isinstance(X, np.ndarray):
        return DenseDesign(X)
    n, d = X.shape
    return DenseDesign(X.toarray()) if is_hardly_sparse(n, d, X.nnz) else SparseDesign(X)


def is_hardly_sparse(n: int, d: int, stored: int) -> bool:
    """Whether a sparse n x d matrix with so many entries is better worked with as an array."""
    return LEAST_ENTRIES <= n * d <= MOST_ENTRIES and stored >= HARDLY_SPARSE * n * d
