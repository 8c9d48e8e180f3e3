"""How kernels are compiled: the first call on a machine waits for it, so nothing unused is made."""

from __future__ import annotations

import gc
from typing import Any

from numba import njit
from numba.core.compiler import Compiler, Flags


def kernel(**options: Any) -> Any:
    """Compile what Python calls: without the entry for C that numba adds to every function."""
    return njit(
        cache=True, nogil=True, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler, **options
    )


def helper(**options: Any) -> Any:
    """Compile what only kernels call: without an entry for Python either.

    A long one that is called at one place, with the options of its caller, is best compiled as a
    part of it, ``inline="always"``: else its code is optimised once more for itself.
    """
    return kernel(no_cpython_wrapper=True, **options)


class _Flags(Flags):
    """The options of a kernel, as numba has them but for their hash.

    Numba's own is that of the names of all options, and so one for all: for each operator in a
    kernel it compared the options, one by one, with those of all other kernels.
    """

    __slots__ = ("_text",)

    def _as_text(self) -> str:
        """What is not left at its default; asked for when nothing changes any more."""
        if not hasattr(self, "_text"):
            self._text = self.summary()
        return self._text

    def __hash__(self) -> int:
        return hash(self._as_text())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._as_text() == other._as_text()


class _KernelCompiler(Compiler):
    """Numba's compiler, in less time."""

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        locals: Any,
    ) -> None:
        flags = _Flags(flags)
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    def compile_extra(self, func: Any) -> Any:
        """Without a search for garbage.

        A compiler makes so many objects that Python would look through all that the process has,
        of every imported package, again and again. What is garbage afterwards is found as ever.
        """
        is_on = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if is_on:
                gc.enable()
