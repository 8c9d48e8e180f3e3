"""Limits of time that long loops look at, in the midst of an iteration.

A solver knows no clock: without a limit nothing here does anything, and the same seed gives the
same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NEVER = float("inf")

#: Readings of ``time.perf_counter``: when steps end in good order, and when a pass is cut off.
_limits: ContextVar[tuple[float, float]] = ContextVar("limits", default=(NEVER, NEVER))


class TimeLimitError(Exception):
    """The time for a pass is over, and it is not finished."""


@contextmanager
def until(deadline: float, of_pass: float) -> Iterator[None]:
    """Let steps in the block end at the first reading of the clock, and a pass at the second."""
    token = _limits.set((deadline, of_pass))
    try:
        yield
    finally:
        _limits.reset(token)


def late() -> bool:
    """Whether it is time to end: for a loop whose last step is as good as any."""
    return time.perf_counter() >= _limits.get()[0]


def leave_in_time() -> None:
    """Raise TimeLimitError when a pass has no more time: the first half of one is worth nothing."""
    if time.perf_counter() >= _limits.get()[1]:
        raise TimeLimitError
