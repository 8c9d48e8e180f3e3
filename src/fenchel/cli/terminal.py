"""What the command says: one-line complaints, progress, and where the output goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    target = Path(os.path.realpath(path))  # where a link points to
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Complain before the work and not after it.

    Parameters
    ----------
    outputs : the names of the files to write, by option; None where it was not given.
    inputs : files that are read, which no output may replace.
    """
    taken = {os.path.realpath(path): "an input" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        target = Path(os.path.realpath(path))
        if not path:
            raise ValueError(f"{option} '': the name is empty: give the name of a file")
        if target.is_dir():
            raise IsADirectoryError(f"{option} {path} is a folder: give the name of a file")
        if target.exists() and not target.is_file():
            raise ValueError(f"{option} {path} is no regular file, and would be replaced by one")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{option} {path}: its folder does not exist")
        if str(target) in taken:
            raise ValueError(f"{option} {path} is {taken[str(target)]} too: give it another name")
        taken[str(target)] = option
        try:
            with NamedTemporaryFile(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent):
                pass
        except OSError as error:
            raise OSError(f"{option} {path} cannot be written: {error.strerror}") from error


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
