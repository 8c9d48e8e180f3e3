"""How kernels are compiled: the first call on a machine waits for it, so nothing unused is made."""

from __future__ import annotations

from typing import Any

from numba import njit


def kernel(**options: Any) -> Any:
    """Compile what Python calls: without the entry for C that numba adds to every function."""
    return njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)


def helper(**options: Any) -> Any:
    """Compile what only kernels call: without an entry for Python either.

    A long one that is called at one place, with the options of its caller, is best compiled as a
    part of it, ``inline="always"``: else its code is optimised once more for itself.
    """
    return kernel(no_cpython_wrapper=True, **options)
