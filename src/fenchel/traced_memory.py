"""What a fit that is traced takes: arrays, and the room of its Hessians as far as it is used."""

from __future__ import annotations

import mmap
import sys
import tracemalloc
from functools import cached_property

import numpy as np
from numba.core.dispatcher import Dispatcher

from fenchel.solvers.kept_hessian import Room

#: Numbers in a page of memory: numpy asks for huge ones.
PAGE = 1 << 18


class Peak:
    """The most that was traced and written to in a room, which is not traced, at a time."""

    most = written = 0
    counted = 0  # of what was written, in the most
    room: TracedRoom | None = None
    formed = 0, 0  # rows of the largest Hessian, and the samples of its factor, if it has one

    def write(self, size: int) -> None:
        """From here on so many bytes of the room are memory, if there were not more before."""
        if size > self.written:
            self.fold()
            self.written = size

    def fold(self) -> int:
        """The peak so far, or as long as there was a trace."""
        if tracemalloc.is_tracing():
            now = tracemalloc.get_traced_memory()[1] + self.written
            if now > self.most:
                self.most, self.counted = now, self.written
            tracemalloc.reset_peak()
        return self.most

    def taken(self) -> int:
        """The peak, without those pages that nobody has written to after all.

        They are zero: of what is behind a Hessian, a face takes its own size.
        """
        most = self.fold()
        if self.room is None:
            return most
        counted = self.room.array[: self.counted // 8]
        pages = (counted[at : at + PAGE] for at in range(0, counted.size, PAGE))
        return most - sum(page.nbytes for page in pages if not page.any())

    def end(self) -> None:
        """End the trace."""
        self.fold()
        tracemalloc.stop()


class TracedRoom(Room):
    """Tells how much of it is written to: most is only reserved."""

    peak: Peak

    @classmethod
    def of(cls, room: Room, peak: Peak) -> TracedRoom:
        traced = cls(room.most, room.instead, room.blocks)
        traced.peak, peak.room = peak, traced
        return traced

    @cached_property
    def array(self) -> np.ndarray:
        # of the system itself, so that it is not traced
        return np.frombuffer(mmap.mmap(-1, 8 * self.size), dtype=np.float64)

    def square(self, size: int) -> np.ndarray:
        self.peak.write(8 * size**2)
        self.peak.formed = max(self.peak.formed, (size, 0))
        return super().square(size)

    def factor(self, size: int, n_rows: int) -> np.ndarray:
        self.peak.formed = max(self.peak.formed, (size, n_rows))
        return super().factor(size, n_rows)

    def behind(self, size: int) -> np.ndarray | None:
        behind = super().behind(size)
        if behind is not None:  # what is solved is about all of it
            self.peak.write(2 * 8 * size**2)
        return behind


def kernels_and_modules() -> tuple[int, int]:
    """How many kernels and modules are loaded, about: equal numbers where none came."""
    ours = [module for name, module in sys.modules.items() if name.startswith("fenchel.")]
    kernels = [f for module in ours for f in vars(module).values() if isinstance(f, Dispatcher)]
    return sum(len(f.overloads) for f in kernels), len(sys.modules)
