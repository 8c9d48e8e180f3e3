"""The Hessian on a working set of dense data, for the next step to change.

From one step to the next few samples change their support, from one look to the next, and from one
penalty to the next, few entries come and go: what is left of the last Hessian is most of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.design.dense import by_columns
from fenchel.kernels.row_hessian import (
    change_row_hessian,
    grow_dense_hessian,
    grow_row_hessian,
    rearrange,
    row_work,
)
from fenchel.solvers.working_set import Columns, Entries, many

#: A multiplication of the Hessian sample by sample costs as much as so many of BLAS.
ROW_COST = 8

#: The allocator maps larger arrays than this, in bytes, whatever it has free.
MAPPED = 1 << 25


@dataclass
class Room:
    """The one array that the Hessians of a fit are made in, each in the place of the last.

    Two side by side would be the peak of a fit. Of the room for the largest only what is written
    to becomes memory. In a large one what is solved of a Hessian is behind it: taken and freed with
    every step, it would leave gaps that stay memory of the process.
    """

    most: int  # rows of the largest there may be
    instead: int = 0  # bytes that a Newton step without a Hessian took in its place, at most
    blocks: int = 0  # the same of steps on single classes, of dense data

    @cached_property
    def array(self) -> np.ndarray:
        return np.empty(self.size)

    @property
    def size(self) -> int:
        """Numbers that there is room for."""
        return (2 if self._large else 1) * self.most**2

    @property
    def _large(self) -> bool:
        """Whether an array for two is never made of memory that was used before."""
        return 2 * 8 * self.most**2 > MAPPED

    def square(self, size: int) -> np.ndarray:
        """The beginning, as a matrix."""
        return self.array[: size * size].reshape(size, size)

    def behind(self, size: int) -> np.ndarray | None:
        """What is left behind a Hessian of so many rows, in a large room: at least as much."""
        return self.array[size * size :] if self._large else None

    def factor(self, size: int, n_rows: int) -> np.ndarray:
        """Zeros for the product that a Hessian of sparse data is made of."""
        return np.zeros((size, n_rows))


@dataclass(frozen=True)
class KeptHessian:
    """A Hessian H on entries of U, and the curvature h that it belongs to: no rows for none."""

    entries: Entries
    h: np.ndarray
    H: np.ndarray
    exact: bool = True  # not of single precision

    @classmethod
    def none(cls, k: int) -> KeptHessian:
        return cls(Entries.empty(), np.empty((0, k)), np.empty((0, 0)))

    def work(
        self, columns: Columns, entries: Entries, h: np.ndarray, weights: np.ndarray
    ) -> tuple[float, float, float, float]:
        """What the next Hessian costs from this one, from nothing, and by BLAS; and a product.

        In multiplications; one of BLAS counts as an eighth.
        """
        (classes, bounds), size = entries.bounds, float(entries.u.size)
        if not self.h.size and many(h):  # no need to look closer: BLAS it is
            return np.inf, np.inf, size**2 * h.shape[0] / 8, 2.0 * size * h.shape[0]
        lacking = self._place(columns, entries) < 0
        new = np.bincount(entries.code[lacking], minlength=classes.size)
        sizes = np.diff(bounds).astype(float), new.astype(float)
        n_rows, meetings, anew, changed = row_work(h, self.h, weights, classes, *sizes)
        return ROW_COST * changed / 8, ROW_COST * anew / 8, size**2 * n_rows / 8, 2.0 * meetings

    def at(
        self, columns: Columns, entries: Entries, h: np.ndarray, weights: np.ndarray, room: Room
    ) -> KeptHessian:
        """The Hessian on the entries of dense data for h, sample by sample; this one is used up.

        Both are in the room.
        """
        (Xt,), (classes, bounds), H = columns.data, entries.bounds, self.H
        args = weights, entries.feature, classes, bounds
        if entries is not self.entries:
            H = room.square(entries.u.size)
            place = self._place(columns, entries)
            fresh = np.flatnonzero(place < 0)
            at = np.searchsorted(fresh, bounds)
            rearrange(room.array, self.entries.u.size, place)
            if many(self.h):
                grow_dense_hessian(Xt, by_columns(self.h), *args, fresh, at, H)
            else:
                grow_row_hessian(Xt, self.h, *args, fresh, at, H)
        change_row_hessian(Xt, h, self.h, *args, H)
        return KeptHessian(entries, h, H, self.exact)

    def _place(self, columns: Columns, entries: Entries) -> np.ndarray:
        """Where the entries are among those of this Hessian: -1 where they are not."""
        if entries is self.entries:
            return np.arange(entries.u.size)
        return entries.place_in(self.entries, columns.data[0].shape[0])
