"""What the command says: one-line complaints, progress, and where the output goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

from fenchel.termination import Record


class EXIT(IntEnum):
    """Exit codes."""

    OK = 0
    INPUT = 1
    USAGE = 2
    NOT_CONVERGED = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def complain(kind: str, what: object) -> None:
    """One line on standard error, whatever the message is made of."""
    text = " ".join(str(what).split()) or type(what).__name__
    sys.stderr.write(f"fenchel: {kind}: {text}\n")


def say(text: str = "") -> None:
    """A line on standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line on standard error: progress, and what is not the answer itself."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def writing(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | None, option: str) -> None:
    """Complain before the work and not after it."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: its folder does not exist")


@contextmanager
def progress(verbose: bool) -> Iterator[Any]:
    """A callback that shows every check of a fit: a live line where rich and a terminal are there.

    Without ``verbose`` it is None.
    """
    if not verbose:
        yield None
        return
    if sys.stderr.isatty():
        with suppress(ImportError):
            from rich.console import Console

            with Console(stderr=True).status("fitting") as status:
                yield lambda record: status.update(_line(record))
            return
    yield lambda record: note(_line(record))


def _line(record: Record) -> str:
    return (
        f"iteration {record.iteration}, {record.wall:.1f} s: objective {record.primal:.6g}, "
        f"certified gap {record.best_gap:.3g}, {record.nnz} non-zeros"
    )
