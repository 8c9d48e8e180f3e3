"""The blocks of a Hessian within the classes: made once for a step, factored for every face."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrf

from fenchel.kernels import class_products as kernels
from fenchel.kernels import l1_newton
from fenchel.kernels.block_factors import factor_size, factorise, pack_factor

#: Class blocks of the preconditioner have at most this many entries.
BLOCK = 256

#: Blocks up to this size are made and factored in one compiled loop, because there are many.
SMALL_BLOCK = 48

#: A larger block is made by BLAS where at least this part of its values is stored.
FULL = 0.2


@dataclass(frozen=True)
class DiagonalBlocks:
    """The blocks of all entries, without damping: rows up to the diagonal, from ``offset`` on."""

    bounds: np.ndarray
    offset: np.ndarray
    products: np.ndarray

    @classmethod
    def of(
        cls, klass: np.ndarray, packed: tuple, positions: tuple, longest: int = BLOCK
    ) -> DiagonalBlocks:
        """The blocks of runs of one class, cut into pieces of at most ``longest`` entries."""
        bounds = class_bounds(klass, longest)
        sizes, offset = np.diff(bounds), _offsets(np.diff(bounds))
        ranges, products = kernels.block_ranges(bounds, packed), np.empty(offset[-1])
        places = sizes * (ranges[:, 1] - ranges[:, 0])
        by_blas = (sizes > SMALL_BLOCK) & (ranges[:, 2] > FULL * places)
        kernels.class_products(
            bounds, offset, by_blas, ranges, packed, positions, SMALL_BLOCK, products
        )
        blocks = cls(bounds, offset, products)
        for t in np.flatnonzero(by_blas):
            low, high, _ = ranges[t]
            weight, share = (values[low:high] for values in positions[1:])
            M = np.zeros((sizes[t], high - low))
            l1_newton.scatter(np.arange(bounds[t], bounds[t + 1]), packed, low, M)
            M *= np.sqrt(weight * (1.0 - share))
            products[offset[t] : offset[t + 1]] = (M @ M.T)[np.tril_indices(sizes[t])]
        return blocks

    def block(self, t: int) -> np.ndarray:
        """Block t as a matrix: what is above its diagonal is zero."""
        size = self.bounds[t + 1] - self.bounds[t]
        K = np.zeros((size, size))
        K[np.tril_indices(size)] = self.products[self.offset[t] : self.offset[t + 1]]
        return K

    def factors(self, face: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the face's blocks, and factors of these, with damping."""
        within = np.searchsorted(face, self.bounds)
        sizes = np.diff(within)
        at = _offsets(sizes)
        factors = np.empty(at[-1])
        kernels.small_factors(
            face, within, self.bounds, self.offset, self.products, damping, SMALL_BLOCK, at, factors
        )
        for t in np.flatnonzero(sizes > SMALL_BLOCK):
            members = face[within[t] : within[t + 1]]
            kept = members - self.bounds[t]
            K = self.block(int(t))[np.ix_(kept, kept)]
            K[np.arange(kept.size), np.arange(kept.size)] += damping[members]
            factorise_block(K, factors[at[t] : at[t + 1]])
        return within, factors


def block_bytes(sizes: np.ndarray) -> int:
    """What the blocks of classes with so many entries take, and as much for their factors."""
    whole, rest = np.divmod(sizes, BLOCK)
    return int(2 * 8 * (whole * factor_size(BLOCK) + factor_size(rest)).sum())


def class_bounds(klass: np.ndarray, longest: int) -> np.ndarray:
    """Where runs of one class begin and end, cut into pieces of at most ``longest``."""
    runs = np.concatenate([[0], np.flatnonzero(np.diff(klass)) + 1, [klass.size]])
    if klass.size and np.diff(runs).max() <= longest:
        return runs
    pieces = [np.arange(low, high, longest) for low, high in pairwise(runs)]
    return np.concatenate([*pieces, [klass.size]]).astype(np.int64)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    """Where the rows of blocks of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(factor_size(sizes))])


def factorise_block(K: np.ndarray, factor: np.ndarray) -> None:
    """The factor of a block by LAPACK, or by the loop that makes up for rounding."""
    R, failed = dpotrf(K.T, lower=0, clean=0)  # by columns: its transpose is by rows
    if failed:
        factorise(K, factor)
    else:
        pack_factor(R.T, factor)
