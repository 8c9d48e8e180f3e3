"""What every sampling scheme can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.design import Design
from fenchel.geometry.base import DualGeometry, PrimalGeometry
from fenchel.problem import Problem


@dataclass(frozen=True)
class Estimate:
    """An average of rank-one matrices, ``left @ right / m``, kept as its m pairs of vectors.

    ``left`` is (rows, m), ``right`` is (m, k), and ``drawn`` holds the m rows that were drawn: of
    V - Y, or of the point of U's geometry.
    """

    left: np.ndarray
    right: np.ndarray
    drawn: np.ndarray

    def matrix(self) -> np.ndarray:
        """The estimate itself; O(rows * k) work for each draw."""
        return self.left @ (self.right / self.right.shape[0])

    def split(self, size: int) -> Iterator[np.ndarray]:
        """The estimates made of ``size`` draws each, one after the other."""
        for start in range(0, self.drawn.size, size):
            part = slice(start, start + size)
            yield Estimate(self.left[:, part], self.right[part], self.drawn[part]).matrix()

    def add_noisy_point(self, out: np.ndarray, weight: float) -> None:
        """Add ``weight`` times the unbiased estimate of U that lies behind an estimate of X U."""
        d = out.shape[0]
        signs = np.where(self.drawn < d, 1.0, -1.0)  # the second half enters with a minus
        np.add.at(out, self.drawn % d, (weight / signs.size * signs)[:, None] * self.right)


class Sampler(ABC):
    """Unbiased estimates of ``X U`` (called xi) and of ``X^T diag(w) (V - Y)`` (called eta).

    The scale is that of :class:`~fenchel.problem.Problem`: for uniform weights xi is the paper's
    xi_U and eta its eta_{V,Y} / n; norms of xi are those of the weighted dual space, so that
    ``variance_bounds`` are the paper's sigma_U^2 times n, and its sigma_V^2. With Omega_V divided
    by n, as in :class:`~fenchel.geometry.base.DualGeometry`, every step and bound is the paper's.

    Where the point of U's geometry is the doubled pair [U1; U2], the rows of both halves are drawn,
    and the sign of a row of the second half goes with its column of X: [X, -X] is never formed.

    Parameters
    ----------
    problem : the problem.
    primal, dual : the geometries, whose norms decide the optimal laws.
    """

    name: ClassVar[str]

    def __init__(self, problem: Problem, primal: PrimalGeometry, dual: DualGeometry) -> None:
        self.problem = problem
        self.primal, self.dual = primal, dual
        #: Exponents of the dual norms, q_U^1 x q_U^2 and q_V^1 x q_V^2.
        self.q_U, self.q_V = primal.norm_type.dual, dual.norm_type.dual
        self.columns = problem.design.column_norms(problem.weights)
        self.rows = row_norms(problem.design, self.q_U.p)
        self.lipschitz = primal.lipschitz(problem)
        self._doubled = primal.center().shape[0] != problem.d

    @abstractmethod
    def primal_law(self, u: np.ndarray) -> np.ndarray:
        """Probabilities of what is drawn for xi at the point u of U's geometry; zero at u = 0."""

    @abstractmethod
    def dual_law(self, V: np.ndarray) -> np.ndarray:
        """Probabilities of what is drawn for eta; zero where V = Y."""

    @abstractmethod
    def primal_outcome(self, u: np.ndarray, index: int, probability: float) -> Estimate:
        """The estimate of X U when ``index``, a flat position in the law, was drawn."""

    @abstractmethod
    def dual_outcome(self, V: np.ndarray, index: int, probability: float) -> Estimate:
        """The estimate of X^T diag(w) (V - Y) when ``index`` was drawn."""

    def draw_primal(self, u: np.ndarray, rng: np.random.Generator, size: int = 1) -> Estimate:
        """The average of ``size`` independent estimates of X U."""
        law = self.primal_law(u)
        drawn = draw(law, rng, size)
        return self._mean([self.primal_outcome(u, i, law.flat[i]) for i in drawn], self.problem.n)

    def draw_dual(self, V: np.ndarray, rng: np.random.Generator, size: int = 1) -> Estimate:
        """The average of ``size`` independent estimates of X^T diag(w) (V - Y)."""
        law = self.dual_law(V)
        drawn = draw(law, rng, size)
        return self._mean([self.dual_outcome(V, i, law.flat[i]) for i in drawn], self.problem.d)

    def variance_bounds(self, batch: int = 1) -> tuple[float, float]:
        """Bounds on sigma_U^2 and sigma_V^2 (eq:variance-bounds-partial, and its general form).

        A mean of ``batch`` draws has its second moment divided by ``batch`` up to a logarithm of
        the dimension (Nemirovski's inequality, as rem:mp-acceleration proposes); where that is
        worse than no gain at all, the bound of one draw stands.
        """
        d, k = self.problem.d, self.problem.k
        R, L = self.primal.radius, self.lipschitz
        largest = outer_norm(self.columns, self.q_U.p)
        sigma_U = 2 * (R * L) ** 2 + 2 * (R * largest) ** 2
        mean = float(self.problem.weights @ self.rows)
        sigma_V = 8 * L**2 + 8 * mean**2
        gain_U = min(1.0, 2 * np.e * np.log(max(k, 3)) / batch)
        gain_V = min(1.0, 2 * np.e * np.log(max(2 * d * k, 3)) / batch)
        return sigma_U * gain_U, sigma_V * gain_V

    def _mean(self, outcomes: list[Estimate], rows: int) -> Estimate:
        """The average of some outcomes; zero where there was no law to draw from."""
        if not outcomes:
            k = self.problem.k
            return Estimate(np.zeros((rows, 1)), np.zeros((1, k)), np.zeros(1, dtype=np.intp))
        if len(outcomes) == 1:
            return outcomes[0]
        return Estimate(
            np.concatenate([e.left for e in outcomes], axis=1),
            np.concatenate([e.right for e in outcomes], axis=0),
            np.concatenate([e.drawn for e in outcomes]),
        )

    def _residual(self, V: np.ndarray, j: int) -> np.ndarray:
        """Row j of V - Y."""
        row = V[j].copy()
        row[self.problem.y[j]] -= 1.0
        return row

    def _signed_column(self, i: int) -> np.ndarray:
        """Column i of [X, -X]."""
        d = self.problem.d
        return self.problem.design.column(i) if i < d else -self.problem.design.column(i - d)

    def _weighted_row(self, j: int) -> np.ndarray:
        """Row j of diag(w) X."""
        columns, values = self.problem.design.row(j)
        out = np.zeros(self.problem.d)
        out[columns] = self.problem.weights[j] * values
        return out

    def _halves(self, norms: np.ndarray) -> np.ndarray:
        """A vector over features, repeated for the second half where u is the doubled pair."""
        return np.tile(norms, 2) if self._doubled else norms


def draw(law: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    """Flat positions drawn from a law; none where the law is zero throughout."""
    cumulative = np.cumsum(law)
    if not cumulative[-1] > 0.0:
        return np.empty(0, dtype=np.intp)
    drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(law)[-1])


def normalised(weights: np.ndarray) -> np.ndarray:
    """Weights as probabilities; zeros stay zeros."""
    total = weights.sum()
    return weights / total if total > 0.0 else weights


def outer_norm(values: np.ndarray, q: float) -> float:
    """The l_q norm of non-negative numbers."""
    return float(values.max()) if np.isinf(q) else float(np.linalg.norm(values, ord=q))


def row_norms(design: Design, q: float) -> np.ndarray:
    """``||X(j,:)||_q`` of every row, for q = 2 or infinity."""
    if np.isinf(q):
        return design.row_max_abs()
    largest = design.row_max_abs()
    scale = np.where(largest > 0.0, largest, 1.0)
    return np.array(
        [scale[j] * np.linalg.norm(design.row(j)[1] / scale[j]) for j in range(design.shape[0])]
    )
