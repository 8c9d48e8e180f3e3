"""Ctrl-C, in whatever form it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
