"""``X^T W`` for dual points that are the same in most classes.

Classes that no coefficient has touched have equal scores, and so equal entries in every row of V
but for the true class. A solver begins with all of them so, and with many classes of which few are
frequent most stay so for long. With ``common_i`` for the value that most classes share in row i::

    X^T W = X^T (W - weights common 1^T) + (X^T weights common) 1^T

where the first product has few non-zeros, and the second is one column for all classes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fenchel.design import Design, SparseDesign
from fenchel.kernels.common_value import common_values, residual_beside_common

#: Products with fewer multiplications are made as they are: there is little to be saved.
DEAR = 1 << 33

#: At most this part of V may differ from what is common.
DIFFERENT = 0.5

#: The same where X is sparse, and each value that differs needs an index; with fewer classes than
#: the second number rows are short, and best multiplied as they are.
DIFFERENT_SPARSE, MANY_CLASSES = 0.125, 32

#: A column with more non-zeros than this part of the samples is multiplied by BLAS.
MANY = 0.05


def dear(design: Design, k: int) -> bool:
    """Whether X is dense, and so large that the common part is looked for."""
    n, d = design.shape
    return not isinstance(design, SparseDesign) and n * d * k >= DEAR


class CommonPart:
    """What is taken off the columns of ``W = diag(weights) (V - Y)``, and added to ``X^T W``."""

    def __init__(self, design: Design, column: np.ndarray) -> None:
        self.design, self.column = design, column
        self.product = design.rmatmul(column[:, None])

    @classmethod
    def of(
        cls, design: Design, V: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> CommonPart | None:
        """The common part of a V that has one, where X is dense and the product dear."""
        if not dear(design, V.shape[1]):
            return None
        common = np.empty(y.size)
        if common_values(V, y, common) > DIFFERENT * V.size:
            return None
        return cls(design, weights * common)

    def rmatmul(self, W: np.ndarray) -> np.ndarray:
        """``X^T W`` for some columns of W, which is changed."""
        W -= self.column[:, None]
        many = np.count_nonzero(W, axis=0) > MANY * W.shape[0]
        G = np.empty((self.design.shape[1], W.shape[1]))
        if many.any():
            G[:, many] = self.design.rmatmul(np.ascontiguousarray(W[:, many]))
        if not many.all():
            G[:, ~many] = self.design.rmatmul(sp.csr_array(W[:, ~many]))
        G += self.product
        return G


def rows_beside_common(
    design: SparseDesign, V: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple | None:
    """``diag(weights) (V - Y)`` for the products of a sparse X, where most classes are the same.

    None where more of V differs than a product with it can do without.
    """
    if V.shape[1] < MANY_CLASSES:
        return None
    column, pointer, klass, added, largest = residual_beside_common(
        V, y, weights, int(DIFFERENT_SPARSE * V.size)
    )
    if pointer.size == 0:
        return None
    return V.shape[1], design.X.T @ column, pointer, klass, added, largest
