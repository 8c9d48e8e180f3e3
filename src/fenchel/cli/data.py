"""Reading samples and labels from files; every error names the file and the place."""

from __future__ import annotations

import bz2
import csv
import gzip
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from fenchel.problem import Matrix
from fenchel.validation import check_design

FORMATS = ("svmlight", "csv", "tsv", "npz", "npy")

SUFFIXES = {
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".txt": "svmlight",
    ".csv": "csv", ".tsv": "tsv", ".npz": "npz", ".npy": "npy",
}  # fmt: skip

COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True)
class Data:
    """Samples, labels as they are in the file (None where it has none), and names of features."""

    X: Matrix
    y: np.ndarray | None = None
    names: list[str] | None = None


def read(options: Any, *, n_features: int | None = None, names: Any = None) -> Data:
    """Read the data that the command line names.

    Parameters
    ----------
    options : with ``data``, ``format``, ``target``, ``labels`` and ``index_base``.
    n_features : of the model, where there is one: svmlight files do not say it.
    names : of the model's features; columns of a table are put in this order.
    """
    path = Path(options.data)
    kind = options.format or format_of(path)
    with _named(path):
        if kind == "svmlight":
            data = _svmlight(path, options.index_base, n_features)
        elif kind in ("csv", "tsv"):
            own_labels = options.labels is not None and options.target is None
            data = _table(path, "," if kind == "csv" else "\t", options.target, own_labels, names)
        elif kind == "npz":
            data = _npz(path)
        else:
            data = Data(np.load(path, allow_pickle=False))
        X = check_design(data.X)
        if n_features is not None and X.shape[1] != n_features:
            raise ValueError(f"{X.shape[1]} features, but the model has {n_features}")
    y = data.y
    if options.labels is not None:
        with _named(Path(options.labels)):
            y = _read_labels(Path(options.labels))
            if y.shape != (X.shape[0],):
                raise ValueError(f"{y.size} label(s), but {path.name} has {X.shape[0]} sample(s)")
    return Data(X, None if y is None else _tidy(y), data.names)


def format_of(path: Path) -> str:
    """The format that a file name stands for."""
    name = path.with_suffix("") if path.suffix in COMPRESSED else path
    kind = SUFFIXES.get(name.suffix.lower())
    if kind is None or (name is not path and kind in ("npz", "npy")):
        raise ValueError(f"{path}: the name does not tell the format: use --format")
    return kind


def as_labels_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels in the type of the model's classes, so that they can be compared."""
    if classes.dtype.kind in "UO":
        return y.astype(str)
    try:
        return y.astype(np.float64)
    except ValueError:
        return np.full(y.shape, np.nan)  # words are none of the numbers


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file ({error.reason})") from error
    except (ValueError, EOFError, OverflowError, zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path}: {error}") from error


def _svmlight(path: Path, index_base: str, n_features: int | None) -> Data:
    zero_based: Any = {"auto": "auto", "0": True, "1": False}[index_base]
    path.stat()  # the reader's own message for a missing file is less clear
    X, y = load_svmlight_file(str(path), zero_based=zero_based)
    if n_features is not None:
        if X.shape[1] > n_features:
            raise ValueError(f"a feature number is {X.shape[1]}, but the model has {n_features}")
        X.resize((X.shape[0], n_features))
    return Data(sp.csr_array(X), y)


def _npz(path: Path) -> Data:
    """X, or the parts of a CSR matrix as ``scipy.sparse.save_npz`` writes them, and y."""
    with np.load(path, allow_pickle=False) as file:
        if "header.json" in file.files:
            raise ValueError("this is a model, not data")
        y = file.get("y")
        if "X" in file:
            return Data(file["X"], y)
        parts = ("data", "indices", "indptr", "shape")
        if not all(part in file for part in parts):
            found = ", ".join(file.files) or "nothing"
            raise ValueError(f"needs X, or {', '.join(parts)} of a CSR matrix; found {found}")
        if "format" in file and file["format"].item() not in (b"csr", "csr"):
            raise ValueError(f"a {file['format'].item()!r} matrix: save it as CSR (X.tocsr())")
        data, indices, indptr, shape = (file[part] for part in parts)
    X = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    X.check_format()
    return Data(X, y)


def _table(
    path: Path, delimiter: str, target: str | None, without_target: bool, names: Any
) -> Data:
    """A table with or without a header; the target is a name, a number from 1, or the last."""
    opener = COMPRESSED.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        raise ValueError("the file is empty")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(f"row {number} has {len(row)} cells, the first row has {width}")
    header = None
    if names is not None or _is_header(rows[0], rows[1] if len(rows) > 1 else None):
        header, rows = rows[0], rows[1:]
    label_column = _column(target, header, width, without_target, names)
    columns = [c for c in range(width) if c != label_column]
    if names is not None and header is not None:
        missing = [name for name in names if name not in header]
        if missing:
            raise ValueError(f"no column {missing[0]!r}, which the model needs")
        columns = [header.index(name) for name in names]
    X = np.empty((len(rows), len(columns)))
    for i, row in enumerate(rows):
        try:
            X[i] = [float(row[c]) for c in columns]
        except ValueError:
            bad = next(c for c in columns if not _is_number(row[c]))
            where = f"row {i + 1 + (header is not None)}, column {bad + 1}"
            raise ValueError(f"{row[bad]!r} is not a number ({where})") from None
    y = None if label_column is None else np.array([row[label_column].strip() for row in rows])
    return Data(X, y, None if header is None else [header[c] for c in columns])


def _is_header(first: list[str], second: list[str] | None) -> bool:
    """A row is a header where it has a word in a column that has a number below it.

    Where only the labels are words, the first row is a sample.
    """
    if second is None:
        return False
    return any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=True))


def _column(
    target: str | None, header: list[str] | None, width: int, without: bool, names: Any
) -> int | None:
    if target is None:
        if without:
            return None
        if names is not None and header is not None:  # of a model: the labels may be absent
            return next((c for c in range(width) if header[c] not in names), None)
        return width - 1
    if header is not None and target in header:
        return header.index(target)
    if target.isdecimal() and 1 <= int(target) <= width:
        return int(target) - 1
    if names is not None:  # of a model: data without labels can be predicted
        return None
    found = f"the columns are {', '.join(header)}" if header else "there is no header"
    raise ValueError(f"no column {target!r}: {found}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_labels(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    opener = COMPRESSED.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8-sig") as file:
        return np.array([line.strip() for line in file if line.strip()])


def _tidy(y: np.ndarray) -> np.ndarray:
    """Whole numbers as integers, everything else as it is."""
    if y.dtype.kind == "f":
        whole = np.isfinite(y).all() and (y == np.rint(y)).all() and (np.abs(y) < 2**53).all()
        return y.astype(np.int64) if whole else y
    if y.dtype.kind == "U":
        words = np.unique(y).tolist()
        if all(_is_integer(word) for word in words):
            return y.astype(np.int64)
    return y


def _is_integer(word: str) -> bool:
    """In the form in which Python writes it, so that nothing is lost ("007" stays a word)."""
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19 and str(int(word)) == word
