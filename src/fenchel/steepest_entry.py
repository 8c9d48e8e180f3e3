"""How fast the hinge loss falls from zero along a single coefficient."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fenchel.losses import Hinge
from fenchel.problem import Problem


def steepest_entry(problem: Problem) -> float:
    """A lower bound on the smallest penalty with a solution of zeros, 0 where none is known.

    With the scores ``t x_ij`` in class l alone, and t so small that no other class overtakes, the
    loss of a sample of class l falls by ``t x_ij``, and that of another rises by ``t max(x_ij, 0)``
    (by ``t x_ij`` where l is its only wrong class). So zero is optimal for no lam below::

        max_{j,l} { sum_{y_i = l} w_i x_ij - sum_{y_i != l} w_i max(x_ij, 0) } / c_j

    and the same for -X. A word that hardly any other class has makes it nearly as large as the
    largest gradient: with text the search for lambda_max ends there. A dense feature, which all
    classes have, tells nothing, and is not asked.
    """
    if not (problem.design.is_sparse and isinstance(problem.loss, Hinge) and problem.loss.plain):
        return 0.0
    n, c, X = problem.n, problem.penalty_factor, problem.design.X
    labels = sp.csr_array((problem.weights, (np.arange(n), problem.y)), shape=(n, problem.k))
    best = 0.0
    for sign in (1.0, -1.0):
        asked = (c > 0.0) & ~(problem.nonnegative & (sign < 0.0))
        values = sign * X.data
        rise = values if problem.k == 2 else np.maximum(values, 0.0)
        # what the own class gains, and what it was counted for among all: one product
        falls = (_with(X, values + rise).T @ labels).max(axis=1).toarray()
        falls -= _with(X, rise).T @ problem.weights
        best = max(best, float((falls[asked] / c[asked]).max(initial=0.0)))
    return best


def _with(X: sp.csr_array, values: np.ndarray) -> sp.csr_array:
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
