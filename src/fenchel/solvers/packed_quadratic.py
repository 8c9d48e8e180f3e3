"""The quadratic of a Newton step without its matrix, for any data: X at the positions of curvature.

With ``D = X s`` on the positions p of :mod:`fenchel.kernels.curvature`::

    s^T H s = sum_p weight_p D_p (D_p - mean_i(p)),            mean_i = sum_{p in row i} share_p D_p

The loops are in :mod:`fenchel.kernels.l1_newton`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrf

from fenchel.kernels import l1_newton as kernels
from fenchel.kernels.block_factors import factor_size, factorise, pack_factor, precondition
from fenchel.solvers.kept_hessian import Room
from fenchel.solvers.l1_model import forms_hessian

#: Class blocks of the preconditioner have at most this many entries.
BLOCK = 256

#: Blocks up to this size are made in one compiled loop, because there are many of them.
SMALL_BLOCK = 48


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
        return own + block_bytes(np.diff(_class_bounds(self.klass, self.klass.size)))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """That of H, without damping."""
        out = np.empty(self.klass.size)
        kernels.diagonal_of(self.packed, self.positions, out)
        return out

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
        bounds, factors = self.block_factors(face)
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
        everything = np.arange(self.klass.size)
        Q = room.factor(everything.size, number[-1] + 1 if number.size else 0)
        classes = list(pairwise(_class_bounds(self.klass, everything.size)))
        for low, high in classes:  # of all positions the scale can be as large as the scores
            members = everything[low:high]
            some = _positions_of(members, self.packed)
            scale = np.sqrt(share[some] * weight[some])
            kernels.scatter_by_row(members, self.packed, some.start, scale, number[row[some]], Q)
        H = -(Q @ Q.T)
        for low, high in classes:
            members = everything[low:high]
            H[low:high, low:high] += _class_products(members, self.packed, weight.__getitem__)
        H[everything, everything] += self.damping
        return H

    def block_factors(self, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the face's classes, and factors of their blocks of H, with damping."""
        _, weight, share = self.positions
        packed, damping, space = self.packed, self.damping, self.spare[0]
        bounds = _class_bounds(self.klass[face], BLOCK)
        sizes = np.diff(bounds)
        offset = np.concatenate([[0], np.cumsum(factor_size(sizes))])
        factors = np.empty(offset[-1])
        space[:] = 0.0
        kernels.small_factors(
            face, bounds, packed, self.positions, damping, SMALL_BLOCK, space, factors, offset
        )

        def curvature(some: slice) -> np.ndarray:  # of all positions it would be a large array
            return weight[some] * (1.0 - share[some])

        for t in np.flatnonzero(sizes > SMALL_BLOCK):
            members = face[bounds[t] : bounds[t + 1]]
            K = _class_products(members, packed, curvature)
            K[np.arange(members.size), np.arange(members.size)] += damping[members]
            _factorise(K, factors[offset[t] : offset[t + 1]])
        return bounds, factors


def block_bytes(sizes: np.ndarray) -> int:
    """What the class blocks of the preconditioner take, for classes with so many entries."""
    whole, rest = np.divmod(sizes, BLOCK)
    return int(8 * (whole * factor_size(BLOCK) + factor_size(rest)).sum())


def _factorise(K: np.ndarray, factor: np.ndarray) -> None:
    """The factor of a block by LAPACK, or by the loop that makes up for rounding."""
    R, failed = dpotrf(K.T, lower=0, clean=0)  # by columns: its transpose is by rows
    if failed:
        factorise(K, factor)
    else:
        pack_factor(R.T, factor)


def _class_products(
    members: np.ndarray, packed: tuple, weight_of: Callable[[slice], np.ndarray]
) -> np.ndarray:
    """``M diag(weight) M^T`` for entries of one class, where M holds their values of X."""
    some = _positions_of(members, packed)
    low, width = some.start, some.stop - some.start
    if width == 0:
        return np.zeros((members.size, members.size))
    weight, stored = weight_of(some), int((packed[1][members] - packed[0][members]).sum())
    if 5 * stored > members.size * width:
        M = np.zeros((members.size, width))
        kernels.scatter(members, packed, low, M)
        M *= np.sqrt(weight)
        return M @ M.T
    K = np.empty((members.size, members.size))
    kernels.sparse_products(members, packed, weight, low, np.zeros(width), K)
    return K


def _positions_of(members: np.ndarray, packed: tuple) -> slice:
    """From the first to the last position of some entries of one class."""
    start, stop, base, position, _ = packed
    begin, end = start[members], stop[members]
    stored = end > begin
    if not stored.any():
        return slice(0, 0)
    # the positions of an entry ascend, and those of a class are neighbours
    first = int(base[members[0]])
    low, high = position[begin[stored]].min(), position[end[stored] - 1].max()
    return slice(first + int(low), first + int(high) + 1)


def _class_bounds(klass: np.ndarray, longest: int) -> np.ndarray:
    """Where runs of one class begin and end, cut into pieces of at most ``longest``."""
    runs = np.concatenate([[0], np.flatnonzero(np.diff(klass)) + 1, [klass.size]])
    if klass.size and np.diff(runs).max() <= longest:
        return runs
    pieces = [np.arange(low, high, longest) for low, high in pairwise(runs)]
    return np.concatenate([*pieces, [klass.size]]).astype(np.int64)
