"""The quadratic of a Newton step without its matrix, for any data: X at the positions of curvature.

With ``D = X s`` on the positions p of :mod:`fenchel.kernels.curvature`::

    s^T H s = sum_p weight_p D_p (D_p - mean_i(p)),            mean_i = sum_{p in row i} share_p D_p

The loops are in :mod:`fenchel.kernels.l1_newton`.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from fenchel.kernels import l1_newton as kernels
from fenchel.kernels.block_factors import precondition
from fenchel.solvers.diagonal_blocks import DiagonalBlocks, block_bytes, class_bounds
from fenchel.solvers.kept_hessian import Room
from fenchel.solvers.l1_model import forms_hessian


class PackedQuadratic:
    """``s^T H s / 2`` for the values of X at the positions with curvature, or those of X itself."""

    def __init__(
        self, klass: np.ndarray, packed: tuple, positions: tuple, damping: np.ndarray
    ) -> None:
        self.klass, self.packed, self.positions, self.damping = klass, packed, positions, damping
        self.row, self.weight, _ = positions
        self.n_rows = int(self.row.max()) + 1 if self.row.size else 1

    @property
    def nbytes(self) -> int:
        """What the gathered values of X and their positions take, and what is made of as many.

        And the preconditioner, if all entries are used.
        """
        own = self.packed[4].nbytes + self.packed[3].nbytes
        own += sum(part.nbytes for part in self.positions) + 2 * self.weight.nbytes
        return own + block_bytes(np.diff(class_bounds(self.klass, self.klass.size)))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """That of H, without damping."""
        out = np.empty(self.klass.size)
        kernels.diagonal_of(self.packed, self.positions, out)
        return out

    @cached_property
    def blocks(self) -> DiagonalBlocks:
        """Those of H within the classes, for the preconditioner."""
        return DiagonalBlocks.of(self.klass, self.packed, self.positions)

    def begin(self) -> None:
        self.D, self.mean = np.zeros(self.row.size), np.zeros(self.n_rows)
        # one for all uses: D is as large as the scores
        self.spare = np.empty_like(self.D), np.empty_like(self.mean)

    @property
    def work(self) -> float:
        """Multiplications of a product with H, about half."""
        return float((self.packed[1] - self.packed[0]).sum())

    def sweep(
        self,
        g: np.ndarray,
        u: np.ndarray,
        penalty: np.ndarray,
        below: np.ndarray,
        s: np.ndarray,
    ) -> float:
        return kernels.sweep(
            self.packed, self.positions, self.diagonal, g, u, penalty, below, self.damping, s,
            self.D, self.mean,
        )  # fmt: skip

    def slopes(self, face: np.ndarray) -> np.ndarray:
        out = np.empty(face.size)
        kernels.slopes(face, self.packed, self.positions, self.D, self.mean, out)
        return out

    def solve(
        self, face: np.ndarray, residual: np.ndarray, tol: float, most: int
    ) -> tuple[np.ndarray, int]:
        solution = np.zeros(face.size)
        z, Hd = np.empty(face.size), np.empty(face.size)
        bounds, factors = self.blocks.factors(face, self.damping)
        precondition(bounds, factors, residual, z)
        d = z.copy()
        rz = residual @ z
        n_iter = 0
        while n_iter < most and np.abs(residual).max() > tol:
            kernels.multiply(face, self.packed, self.positions, self.damping, d, *self.spare, Hd)
            dHd = d @ Hd
            if dHd <= 0.0:
                break
            solution += (rz / dHd) * d
            residual -= (rz / dHd) * Hd
            precondition(bounds, factors, residual, z)
            rz_new = residual @ z
            d = z + (rz_new / rz) * d
            rz = rz_new
            n_iter += 1
        return solution, n_iter

    def value(self) -> float:
        return kernels.half_square(self.row, self.weight, self.D, self.mean)

    def value_after(self, face: np.ndarray, change: np.ndarray) -> float:
        D, mean = self.spare
        D[:], mean[:] = self.D, self.mean
        kernels.shift(face, change, self.packed, self.positions, D, mean)
        return kernels.half_square(self.row, self.weight, D, mean)

    def accept(self) -> None:
        (self.D, self.mean), self.spare = self.spare, (self.D, self.mean)

    def forms_hessian(self) -> bool:
        """Whether H is formed, where that is the faster way (:func:`.l1_model.forms_hessian`)."""
        return forms_hessian(self.klass.size, min(self.n_rows, self.row.size // 2))

    def hessian(self, room: Room) -> np.ndarray:
        """H with damping: blocks within the classes, minus one product for the row means."""
        row, weight, share = self.positions
        number = np.cumsum(np.bincount(row) > 0) - 1  # of the rows in use
        size = self.klass.size
        Q = room.factor(size, number[-1] + 1 if number.size else 0)
        kernels.scatter_by_row(self.packed, row, weight, share, number, Q)
        H = -(Q @ Q.T)
        blocks = DiagonalBlocks.of(self.klass, self.packed, self.positions, longest=size)
        for t, (low, high) in enumerate(pairwise(blocks.bounds)):
            K = blocks.block(t)
            H[low:high, low:high] = K + np.tril(K, -1).T
        H[np.arange(size), np.arange(size)] += self.damping
        return H
