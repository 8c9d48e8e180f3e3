"""The rows of a sparse X in the features of a working set: scores and gradients of its entries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fenchel.kernels import working_rows as kernels
from fenchel.threads import each

if TYPE_CHECKING:
    from fenchel.problem import Problem
    from fenchel.solvers.working_set import Entries

#: Where V has more entries than this it is read by rows: a smaller one stays in the cache anyway.
LARGE = 1 << 20

#: Threads share the rows in so many parts: sums of few, and none has to wait for long.
PARTS = 16


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

    def _part(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X in some rows."""
        pointer, place, x = self.rows
        return pointer[rows.start : rows.stop + 1], place, x

    def _first(self, code: np.ndarray) -> np.ndarray:
        """Where the entries of each feature begin; the last one is the end."""
        return np.append(0, np.cumsum(np.bincount(code, minlength=self.n_features)))

    def add_product(self, Z: np.ndarray, values: np.ndarray) -> None:
        """``Z += X S`` for the matrix S with the given values at the entries."""
        values = values[self.order]
        some = np.flatnonzero(values)  # most entries of a working set stay zero
        args = self._first(self.code[some]), self.klass[some], values[some]

        def add(rows: slice) -> None:
            kernels.add_product_by_rows(*self._part(rows), *args, Z[rows])

        each(add, parts_of_rows(Z.shape[0]), Z.size)

    def gradient(self, problem: Problem, V: np.ndarray) -> np.ndarray:
        """G_U at the entries."""
        first, y, weights = self._first(self.code), problem.y, problem.weights

        def of(rows: slice) -> np.ndarray:
            found = np.empty(self.order.size)
            args = first, self.klass, V[rows], y[rows], weights[rows], found
            kernels.gradient_by_rows(*self._part(rows), *args)
            return found

        out = np.empty(self.order.size)
        out[self.order] = sum(each(of, parts_of_rows(V.shape[0]), V.size))
        return out


def parts_of_rows(n: int) -> list[slice]:
    """Slices of n rows, the same for any number of threads."""
    ends = [n * part // PARTS for part in range(PARTS + 1)]
    return [slice(low, high) for low, high in pairwise(ends)]
