"""How many threads BLAS may use, and loops over parts of the data in as many.

Compiled kernels let go of Python's lock, so that plain threads share their work. Whoever limits
BLAS (``OPENBLAS_NUM_THREADS``, threadpoolctl, joblib for its workers) limits these loops as well.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

#: Products with fewer multiplications than this are made by one thread.
SMALL_WORK = 1 << 27

#: A loop with less work than this, in numbers read or multiplied, is over before another thread
#: has woken up.
SHORT_LOOP = 1 << 20

#: No loop is shared by more threads than this: each has working space of its own.
MOST_THREADS = 8

Part = TypeVar("Part")
Found = TypeVar("Found")


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


def allowed_threads() -> int:
    """As many as BLAS may use now."""
    found = (library.num_threads for library in _controller().lib_controllers)
    return min(max(found, default=1), MOST_THREADS)


def each(function: Callable[[Part], Found], parts: Iterable[Part], work: float) -> list[Found]:
    """What a function finds in every part, in the order of the parts.

    The parts are shared by the threads that are allowed, if there is enough work in all of them.
    They must be the same for any number of threads, and write to places of their own: then what is
    found is the same to the bit. The function must not call this one.
    """
    parts = list(parts)
    n_threads = 1 if work < SHORT_LOOP else min(allowed_threads(), len(parts))
    if n_threads == 1:
        return [function(part) for part in parts]
    found: dict[int, Found] = {}
    waiting = deque(range(len(parts)))

    def take_turns() -> None:
        while True:
            try:
                turn = waiting.popleft()
            except IndexError:
                return
            found[turn] = function(parts[turn])

    # each in a copy of the context: what numpy does about overflow, and limits of time
    others = [_pool().submit(copy_context().run, take_turns) for _ in range(n_threads - 1)]
    try:
        take_turns()
    finally:
        waiting.clear()  # after an error or Ctrl-C nobody begins another part
        for other in others:
            other.result()
    return [found[turn] for turn in range(len(parts))]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_THREADS - 1, thread_name_prefix="fenchel")


# the threads of a process that forks are not there in its child, which makes its own
os.register_at_fork(after_in_child=_pool.cache_clear)
