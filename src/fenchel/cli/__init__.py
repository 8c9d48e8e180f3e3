"""The command ``fenchel``: fit, predict and reproduce from a shell.

Exit codes: 0 all went well, 1 the input or the data are at fault, 2 wrong usage, 3 the model was
fitted but not to the tolerance, 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
import zipfile
from collections.abc import Sequence

from fenchel.cli.terminal import EXIT, complain
from fenchel.interrupts import deferred_interrupts

__all__ = ["main"]

#: What a wrong file or a wrong value leads to; anything else is a mistake of ours.
EXPECTED = (ValueError, TypeError, OSError, MemoryError, ImportError, EOFError, zipfile.BadZipFile)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors are one line on standard error."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        complain("interrupted", "nothing was written")
        return EXIT.INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    with deferred_interrupts():  # it takes seconds, in which Ctrl-C may come
        from fenchel.cli.parser import make_parser

    try:
        options = make_parser().parse_args(argv)
    except SystemExit as stopped:  # help and version end with 0, wrong usage with 2
        return stopped.code if isinstance(stopped.code, int) else EXIT.USAGE
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *rest: complain("warning", message)
            code: int = options.run(options)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # nobody reads any more: keep the interpreter from saying so once again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT.BROKEN_PIPE
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        kind = (
            "error" if isinstance(error, EXPECTED) else f"internal error ({type(error).__name__})"
        )
        complain(kind, error)
        return EXIT.INPUT
