"""The mixed norms of the paper (eq. def:mixed-norms)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def conjugate(p: float) -> float:
    """The exponent q with 1/p + 1/q = 1."""
    if p == 1:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1)


@dataclass(frozen=True)
class MixedNorm:
    """``||A||_{p x q}``: the l_p norm of the l_q norms of the rows (p: rows, q: within a row)."""

    p: float
    q: float

    def rows(self, A: np.ndarray) -> np.ndarray:
        """The l_q norm of every row."""
        if self.q == 1:
            return np.abs(A).sum(axis=1)
        if np.isinf(self.q):
            return np.abs(A).max(axis=1)
        return np.linalg.norm(A, ord=self.q, axis=1)

    def __call__(self, A: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The norm; with ``weights`` the outer sum is ``(sum_i weights_i rows_i^p)^(1/p)``."""
        rows = self.rows(A)
        if np.isinf(self.p):
            return float(rows.max())
        powers = rows**self.p
        total = powers.sum() if weights is None else weights @ powers
        return float(total ** (1 / self.p))

    @property
    def dual(self) -> MixedNorm:
        """The dual norm has the conjugate exponents (Sra 2012, Lemma 3)."""
        return MixedNorm(conjugate(self.p), conjugate(self.q))

    def __str__(self) -> str:
        def name(p: float) -> str:
            return "inf" if np.isinf(p) else f"{p:g}"

        return f"{name(self.p)}x{name(self.q)}"
