"""How many threads BLAS may use for small work."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the libraries takes a while: once is enough


def one_thread() -> AbstractContextManager:
    """Small products lose more by waiting for a second thread than they gain from it.

    On a busy machine that is a factor of ten, since a waiting BLAS thread spins.
    """
    return _controller().limit(limits=1, user_api="blas")
