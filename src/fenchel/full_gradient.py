"""All of G_U of dense data at once, made once for the solver and for the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fenchel.kernels import class_blocks

if TYPE_CHECKING:
    from fenchel.problem import Problem

#: No G_U is made at once where it, or V, has more entries than this.
MOST = 1 << 22

#: The last one is kept for a V of at most so many entries, of which a copy is kept as well.
MOST_KEPT = 1 << 20

#: A V - Y with more non-zeros than this part of its entries is multiplied as a dense matrix.
MANY = 0.3


class FullGradient:
    """``X^T diag(weights) (V - Y)`` of dense data, and the last one that was asked for.

    A solver looks at the point that it is at, and so does the certificate. What is kept is handed
    out again for a V that has the same numbers, all of them, and for no other: nothing is taken on
    trust, and what is computed is the same, to the bit, as without.
    """

    def __init__(self) -> None:
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def at(self, problem: Problem, V: np.ndarray) -> np.ndarray | None:
        """G_U at V, (d, k), not to be written to; None where X is sparse, or G_U large."""
        if problem.design.is_sparse or problem.k * max(problem.d, problem.n) > MOST:
            return None
        last = self._last
        if last is not None and class_blocks.same(last[0], V):
            return last[1]
        G = _gradient(problem, V)
        G.flags.writeable = False
        if V.size <= MOST_KEPT:
            self._last = V.copy(), G
        return G


def _gradient(problem: Problem, V: np.ndarray) -> np.ndarray:
    """Row by row where V - Y has few non-zeros, else by BLAS."""
    X, y, weights = problem.design.X, problem.y, problem.weights
    plain = X.dtype == np.float64 and X.flags.c_contiguous
    if plain and class_blocks.n_residuals(V, y) < MANY * V.size:
        G = np.zeros((problem.k, problem.d))
        class_blocks.add_row_products(X, V, y, weights, G)
        return G.T
    return problem.design.rmatmul(problem.residual(V, 0, problem.k))
