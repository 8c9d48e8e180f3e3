"""Ctrl-C, in whatever form it arrives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block for a Ctrl-C that came within it.

    For imports: an interrupt inside the import of an extension module may come out as its
    ImportError about a broken installation, or be swallowed.
    """
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not listens or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt where compiled code turned it into a SystemError.

    numba does that now and then in a kernel that returns a tuple; the interrupt is then among the
    error's causes.
    """
    try:
        yield
    except SystemError as error:
        if _holds_interrupt(error):
            raise KeyboardInterrupt from error
        raise


def _holds_interrupt(error: BaseException) -> bool:
    """Whether the error, or one that it came from, is a KeyboardInterrupt."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()  # an error may be its own cause
    while pending:
        one = pending.pop()
        if isinstance(one, KeyboardInterrupt):
            return True
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            pending += [one.__cause__, one.__context__]
    return False
