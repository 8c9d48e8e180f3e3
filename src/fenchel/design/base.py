"""What every design matrix can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp


class Design(ABC):
    """An n x d matrix X, read-only.

    All products are returned in float64, whatever the type of X: certificates are built on them.
    The doubled matrix ``[X, -X]`` of the paper is never formed; it is sign arithmetic in callers.
    """

    is_sparse: ClassVar[bool]
    X: Any
    shape: tuple[int, int]

    @abstractmethod
    def matmul(self, U: np.ndarray | sp.sparray) -> np.ndarray:
        """Return ``X @ U`` as a dense (n, m) float64 array; U may be sparse."""

    @abstractmethod
    def rmatmul(self, W: np.ndarray | sp.sparray) -> np.ndarray:
        """Return ``X.T @ W`` as a dense (d, m) float64 array; W may be sparse."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Design:
        """Return rows ``start:stop`` as a design (a view where that is possible)."""

    @abstractmethod
    def row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and the float64 values of the stored entries of row i."""

    @abstractmethod
    def column(self, j: int) -> np.ndarray:
        """Return column j as a dense (n,) float64 array."""

    @abstractmethod
    def column_norms(self, weights: np.ndarray) -> np.ndarray:
        """Return ``sqrt(sum_i weights_i X_ij^2)`` for every column j, safe from overflow."""

    @abstractmethod
    def row_max_abs(self) -> np.ndarray:
        """Return ``max_j |X_ij|`` for every row i."""
