"""A sparse design matrix: CSR for the rows, CSC for the columns."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.design.base import Design
from fenchel.kernels.sparse_products import add_product_of_rows


class SparseDesign(Design):
    """X as a CSR array with float64 values; the CSC twin is made when first asked for."""

    is_sparse: ClassVar[bool] = True

    def __init__(self, X: sp.sparray | sp.spmatrix) -> None:
        csr = sp.csr_array(X)
        self.X = csr if csr.dtype == np.float64 else csr.astype(np.float64)
        if not self.X.has_canonical_format:
            self.X = self.X.copy()  # the caller's matrix stays as it was
            self.X.sum_duplicates()
        self.shape = self.X.shape

    @cached_property
    def csc(self) -> sp.csc_array:
        """The same matrix by columns."""
        return self.X.tocsc()

    def matmul(self, U: np.ndarray | sp.sparray) -> np.ndarray:
        if not sp.issparse(U):
            return self.X @ U
        rows = sp.csr_array(U)
        stored = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), _float64(rows.data)
        Z = np.zeros((self.shape[0], rows.shape[1]))
        add_product_of_rows(self.X.indptr, self.X.indices, self.X.data, stored, Z)
        return Z

    def rmatmul(self, W: np.ndarray | sp.sparray) -> np.ndarray:
        product = self.X.T @ W
        return product.toarray() if sp.issparse(product) else product

    def rows(self, start: int, stop: int) -> SparseDesign:
        if stop - start == self.shape[0]:
            return self  # a slice would be a copy
        return SparseDesign(self.X[start:stop])

    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        entries = slice(self.X.indptr[i], self.X.indptr[i + 1])
        return self.X.indices[entries], self.X.data[entries]

    def column(self, j: int) -> np.ndarray:
        entries = slice(self.csc.indptr[j], self.csc.indptr[j + 1])
        out = np.zeros(self.shape[0])
        out[self.csc.indices[entries]] = self.csc.data[entries]
        return out

    def column_norms(self, weights: np.ndarray) -> np.ndarray:
        size, columns = np.abs(self.X.data), self.X.indices
        largest = np.zeros(self.shape[1])
        np.maximum.at(largest, columns, size)
        scale = np.where(largest > 0, largest, 1.0)
        size /= scale[columns]
        size *= size
        squares = sp.csr_array((size, columns, self.X.indptr), shape=self.shape)
        return scale * np.sqrt(squares.T @ weights)

    def row_max_abs(self) -> np.ndarray:
        return _max_abs(self.X, axis=1)


def _float64(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64)


def _max_abs(X: sp.csr_array, axis: int) -> np.ndarray:
    return np.asarray(abs(X).max(axis=axis).toarray()).ravel()
