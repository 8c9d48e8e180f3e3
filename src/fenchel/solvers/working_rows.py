"""The rows of a sparse X in the features of a working set: scores and gradients of its entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fenchel.kernels import working_rows as kernels

if TYPE_CHECKING:
    from fenchel.problem import Problem
    from fenchel.solvers.working_set import Entries

#: Where V has more entries than this it is read by rows: a smaller one stays in the cache anyway.
LARGE = 1 << 20


@dataclass
class WorkingRows:
    """X in the features of some entries, and the entries in the order of these features."""

    rows: tuple[np.ndarray, np.ndarray, np.ndarray]  # as from ``select_rows``
    code: np.ndarray  # of the feature of every entry, in that order
    klass: np.ndarray
    order: np.ndarray  # the entries in that order
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_array, entries: Entries) -> WorkingRows:
        used, code = np.unique(entries.feature, return_inverse=True)
        number = np.full(X.shape[1], -1, np.int32)
        number[used] = np.arange(used.size)
        rows = kernels.select_rows(X.indptr, X.indices, X.data, number)
        order = np.argsort(code, kind="stable")
        klass = entries.klass[order].astype(np.uint32)
        return cls(rows, code[order], klass, order, used.size)

    def _first(self, code: np.ndarray) -> np.ndarray:
        """Where the entries of each feature begin; the last one is the end."""
        return np.append(0, np.cumsum(np.bincount(code, minlength=self.n_features)))

    def add_product(self, Z: np.ndarray, values: np.ndarray) -> None:
        """``Z += X S`` for the matrix S with the given values at the entries."""
        values = values[self.order]
        some = np.flatnonzero(values)  # most entries of a working set stay zero
        first = self._first(self.code[some])
        kernels.add_product_by_rows(*self.rows, first, self.klass[some], values[some], Z)

    def gradient(self, problem: Problem, V: np.ndarray) -> np.ndarray:
        """G_U at the entries."""
        first, products = self._first(self.code), np.empty(self.order.size)
        args = *self.rows, first, self.klass, V, problem.y, problem.weights, products
        kernels.gradient_by_rows(*args)
        out = np.empty(self.order.size)
        out[self.order] = products
        return out
