"""The quadratic of a Newton step on dense data, class by class."""

from __future__ import annotations

import numpy as np

from fenchel.kernels import class_quadratic as kernels
from fenchel.kernels.block_factors import factor_size
from fenchel.kernels.curvature import curvature_everywhere
from fenchel.solvers.l1_model import DENSE_SIZE
from fenchel.solvers.working_set import Columns, Entries

#: No class may have more entries: all its pairs have a place in its block.
MOST = 64


class ClassQuadratic:
    """``s^T H s / 2`` for dense data and classes with few entries each.

    Where nearly every sample has curvature in every class, X itself is read, by its columns, and no
    index of a position is needed. The blocks of H that belong to one class are formed once: sweeps
    work with them inside of a class, and preconditioners are made of parts of them.
    """

    def __init__(
        self,
        columns: Columns,
        entries: Entries,
        h: np.ndarray,
        weights: np.ndarray,
        damping: np.ndarray,
    ) -> None:
        classes, self.bounds = entries.bounds
        (self.Xt,) = columns.data
        self.feature, self.damping = entries.feature, damping
        shape = classes.size, self.Xt.shape[1]
        _, W, S = curvature_everywhere(h, weights, classes)
        self.W, self.S = W.reshape(shape), S.reshape(shape)
        self.offset = entries.offset
        self.K = columns.blocks(entries, self.W * (1.0 - self.S))

    @staticmethod
    def suits(columns: Columns, entries: Entries) -> bool:
        """Whether the classes have few entries of dense data, which are too many for a Hessian."""
        largest = int(np.diff(entries.bounds[1]).max(initial=0))
        return not columns.sparse and entries.u.size > DENSE_SIZE and largest <= MOST

    def begin(self) -> None:
        self.D, self.mean = np.zeros_like(self.W), np.zeros(self.W.shape[1])
        self.spare = np.empty_like(self.D), np.empty_like(self.mean)

    @property
    def work(self) -> float:
        """Multiplications of a product with H, about half."""
        return float(self.feature.size * self.W.shape[1])

    def sweep(
        self,
        g: np.ndarray,
        u: np.ndarray,
        penalty: np.ndarray,
        below: np.ndarray,
        s: np.ndarray,
    ) -> float:
        return kernels.sweep(
            self.Xt, self.feature, self.bounds, self.K, self.offset, self.W, self.S, self.damping,
            g, u, penalty, below, s, self.D, self.mean,
        )  # fmt: skip

    def slopes(self, face: np.ndarray) -> np.ndarray:
        out = np.empty(face.size)
        kernels.slopes(*self._of(face), self.W, self.D, self.mean, out)
        return out

    def solve(
        self, face: np.ndarray, residual: np.ndarray, tol: float, most: int
    ) -> tuple[np.ndarray, int]:
        damping, of = self.damping[face], self._of(face)
        parts = of[-1]
        sizes = np.diff(parts)
        factors, space = np.empty(int(factor_size(sizes).sum())), np.empty(int(sizes.max()) ** 2)
        kernels.face_factors(self.K, self.offset, self.bounds, face, parts, damping, space, factors)
        solution = np.zeros(face.size)
        n_iter = kernels.conjugate_gradients(
            *of, self.W, self.S, damping, factors, residual, tol, most, *self.spare, solution
        )
        return solution, n_iter

    def value(self) -> float:
        return kernels.half_square(self.W, self.D, self.mean)

    def value_after(self, face: np.ndarray, change: np.ndarray) -> float:
        D, mean = self.spare
        D[:], mean[:] = self.D, self.mean
        kernels.shift(*self._of(face), self.S, change, D, mean)
        return kernels.half_square(self.W, D, mean)

    def accept(self) -> None:
        (self.D, self.mean), self.spare = self.spare, (self.D, self.mean)

    def _of(self, face: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X by columns, the features of the face, and the bounds of its classes."""
        return self.Xt, self.feature[face], np.searchsorted(face, self.bounds)
