"""What is known of a data file: its format, what is in it, and what a model expects of it."""

from __future__ import annotations

import bz2
import csv
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from fenchel.problem import Matrix

FORMATS = ("svmlight", "csv", "tsv", "npz", "npy")

SUFFIXES = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight",
    ".csv": "csv", ".tsv": "tsv", ".npz": "npz", ".npy": "npy",
}  # fmt: skip

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True)
class Data:
    """Samples and labels (None where there are none), and how the file says them.

    Attributes
    ----------
    X : samples, (n, d).
    y : labels as they are in the file, (n,).
    names : of the features, where a table has a header.
    target : column of the labels in a table: its name, or without a header its number from 1.
    index_base : the number of the first feature in svmlight.
    """

    X: Matrix
    y: np.ndarray | None = None
    names: list[str] | None = None
    target: str | int | None = None
    index_base: int | None = None


@dataclass(frozen=True)
class Expected:
    """What a model says of its data, as in :class:`Data`; nothing where there is no model."""

    n_features: int | None = None
    names: list[str] | None = None
    target: str | int | None = None
    index_base: int | None = None


def format_of(path: Path) -> str:
    """The format that a file name stands for."""
    name = path.with_suffix("") if path.suffix in COMPRESSED else path
    kind = SUFFIXES.get(name.suffix.lower())
    if kind is None or (name is not path and kind in ("npz", "npy")):
        raise ValueError(f"{path}: the name does not tell the format: use --format")
    return kind


def open_text(path: Path, newline: str | None = None) -> IO[str]:
    """Open a text that may be compressed."""
    opener = COMPRESSED.get(path.suffix, open)
    return opener(path, "rt", encoding="utf-8-sig", newline=newline)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file ({error.reason})") from error
    except (
        ValueError, EOFError, OverflowError, OSError, zipfile.BadZipFile, zlib.error, csv.Error,
    ) as error:  # fmt: skip
        # numpy's words for anything that it does not know recommend what must not be done
        pickled = "allow_pickle" in str(error)
        what = "no arrays of numbers as numpy.save and numpy.savez write them" if pickled else error
        raise ValueError(f"{path}: {what}") from error
