"""How many threads BLAS may use for small work."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

#: Products with fewer multiplications than this are made by one thread.
SMALL_WORK = 1 << 27


@cache
def _controller() -> ThreadpoolController:
    # looking for the libraries takes a while: once is enough
    return ThreadpoolController().select(user_api="blas")


def one_thread() -> AbstractContextManager:
    """Small products lose more by waiting for a second thread than they gain from it.

    On a busy machine that is a factor of ten, since a waiting BLAS thread spins.
    """
    if all(library.num_threads == 1 for library in _controller().lib_controllers):
        return nullcontext()  # to ask takes a tenth of the time
    return _controller().limit(limits=1)


def threads_for(work: float) -> AbstractContextManager:
    """One thread for products of so many multiplications, if they are few."""
    return one_thread() if work < SMALL_WORK else nullcontext()
