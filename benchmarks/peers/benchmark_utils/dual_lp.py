"""The hinge problem as a linear program in its dual form, which is the smaller one.

Over V (n, k), stored class by class, with Y the labels as unit vectors::

    max  1 - (1/n) sum_i V_{i, y_i}
    s.t. -lam <= (1/n) X^T (V - Y) <= lam,    V 1 = 1,    V >= 0

The multipliers of the d k ranges are the coefficients U.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

#: Programs with more non-zeros are refused: a solver makes several copies of them.
MOST_NONZEROS = 100_000_000


def nonzeros(X, k):
    return k * (X.nnz if sp.issparse(X) else X.size) + X.shape[0] * k


def too_large(X, k, most=MOST_NONZEROS):
    """The reason to refuse a program of this size, or None."""
    size = nonzeros(X, k)
    if size <= most:
        return None
    return f"the linear program has {size / 1e6:.0f} million non-zeros (limit {most / 1e6:.0f})"


@dataclass(frozen=True)
class DualLP:
    """minimise ``cost @ v`` over ``lower <= A v <= upper``, ``0 <= v <= 1``; A is CSC."""

    A: sp.csc_array
    lower: np.ndarray
    upper: np.ndarray
    cost: np.ndarray
    shape: tuple

    @classmethod
    def build(cls, X, y, k, lam):
        n, d = X.shape
        Xt = sp.csc_array(X.T if sp.issparse(X) else np.asarray(X).T)
        ranges = sp.block_diag([Xt / n] * k, format="csc")
        simplex = sp.hstack([sp.eye_array(n, format="csc")] * k, format="csc")
        Y = np.zeros((n, k))
        Y[np.arange(n), y] = 1.0
        centre = (X.T @ Y / n).T.ravel()
        return cls(
            A=sp.csc_array(sp.vstack([ranges, simplex], format="csc")),
            lower=np.concatenate([centre - lam, np.ones(n)]),
            upper=np.concatenate([centre + lam, np.ones(n)]),
            cost=Y.T.ravel() / n,
            shape=(n, d, k),
        )

    def point(self, v, multipliers):
        """U and V from a solution; HiGHS and PDLP agree on the sign of a multiplier."""
        n, d, k = self.shape
        U = np.asarray(multipliers)[: d * k].reshape(k, d).T
        V = np.clip(np.asarray(v).reshape(k, n).T, 0.0, None)
        V = V + 1e-300  # a row of zeros, from a run that was stopped early, becomes uniform
        return {"U": np.ascontiguousarray(U), "V": V / V.sum(axis=1, keepdims=True)}
