"""Tables: which row is a header, which columns are features, and which one holds the labels."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.cli.files import Data, Expected, open_text

#: What may stand between two cells, by format, and how another one is asked for.
SEPARATORS = {"csv": ",", "tsv": "\t"}
REMEDIES = {
    ",": "--format csv", "\t": "--format tsv", ";": "--separator ';'", "|": "--separator '|'",
}  # fmt: skip


def read_table(path: Path, kind: str, options: Any, model: Expected, labels: bool) -> Data:
    """Read a table with or without a header.

    Parameters
    ----------
    path, kind : of the table: csv or tsv.
    options : with ``target``, ``labels`` and ``separator`` of the command line.
    model : whose features are found by name where the table has a header, else by place.
    labels : whether those of the table are needed.
    """
    separator = options.separator or SEPARATORS[kind]
    with open_text(path, newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=separator) if row]
    if not rows:
        raise ValueError("the file is empty")
    _refuse_another_separator(rows, separator)
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(f"row {number} has {len(row)} cells, the first row has {width}")
    header = _header(rows, model.names)
    first = 1 if header is None else 2  # row of the first sample
    samples = rows[first - 1 :]
    label = _label_column(options, header, width, model, labels)
    columns = [c for c in range(width) if c != label]
    if header is not None and model.names is not None:
        columns = _columns_of(model.names, header)
    if not columns:
        raise ValueError(
            f"one column, with {separator!r} between cells, and it holds the labels: give a file "
            "with features, or --labels if they are in another file"
        )
    X = _numbers(samples, columns, first)
    y, target = None, None
    if label is not None:
        target = label + 1 if header is None else header[label]
        y = _labels(samples, label, first) if labels else None
    return Data(X, y, None if header is None else [header[c] for c in columns], target)


def _refuse_another_separator(rows: list[list[str]], separator: str) -> None:
    """Complain where the first row is one cell, and would be as many as the second otherwise."""
    if len(rows[0]) > 1:
        return
    for other, remedy in REMEDIES.items():
        counts = [separator.join(row).count(other) for row in rows[:2]]
        if counts[0] == counts[-1] > 0:
            raise ValueError(
                f"one column, with {separator!r} between cells, but {counts[0] + 1} with "
                f"{other!r}: use {remedy}"
            )


def _header(rows: list[list[str]], names: list[str] | None) -> list[str] | None:
    """The first row where it is a header.

    It is one where it has all names of the model, or a word in a column that has a number below
    it. Where only the labels are words it is a sample.
    """
    first = rows[0]
    if names is None or not set(names) <= set(first):
        below = rows[1] if len(rows) > 1 else first
        words = [c for c in range(len(first)) if _is_number(below[c]) and not _is_number(first[c])]
        if not words:
            return None
        if any(map(_is_number, first)):
            raise ValueError(
                f"{first[words[0]]!r} (row 1, column {words[0] + 1}) stands above a number, but "
                "row 1 also holds numbers and is no header: correct it, or write a header of words"
            )
    for c, name in enumerate(first):
        if name in first[:c]:
            columns = f"columns {first.index(name) + 1} and {c + 1}"
            raise ValueError(f"{columns} are both named {name!r}: give each a name of its own")
    return first


def _label_column(
    options: Any, header: list[str] | None, width: int, model: Expected, labels: bool
) -> int | None:
    if options.target is not None:
        return _named_column(options.target, header, width)
    if options.labels is not None:
        return None
    if model.n_features is None:
        return width - 1
    if header is not None and model.names is not None:
        return _label_by_name(header, model.names, model.target, labels)
    return _label_by_place(width, model.n_features, model)


def _named_column(target: str, header: list[str] | None, width: int) -> int:
    if header is not None and target in header:
        return header.index(target)
    if target.isdecimal() and 1 <= int(target) <= width:
        return int(target) - 1
    found = f"the columns are {', '.join(header)}" if header else "there is no header"
    raise ValueError(f"no column {target!r}: {found}")


def _label_by_name(
    header: list[str], names: list[str], target: str | int | None, labels: bool
) -> int | None:
    """The column that held the model's labels, else the only one that is no feature."""
    others = [c for c, name in enumerate(header) if name not in names]
    if target is not None:
        return next((c for c in others if header[c] == target), None)
    if labels and len(others) > 1:
        found = ", ".join(header[c] for c in others)
        raise ValueError(f"the labels may be in any of the columns {found}: use --target")
    return others[0] if others else None


def _label_by_place(width: int, n_features: int, model: Expected) -> int | None:
    if width == n_features:
        return None
    if width != n_features + 1:
        raise ValueError(f"{width} columns, but the model has {n_features} features")
    if model.names is not None:
        raise ValueError("no header says which column holds the labels: use --target")
    return width - 1 if model.target is None else int(model.target) - 1


def _columns_of(names: list[str], header: list[str]) -> list[int]:
    places = {name: c for c, name in enumerate(header)}
    for name in names:
        if name not in places:
            raise ValueError(f"no column {name!r}, which the model needs")
    return [places[name] for name in names]


def _numbers(samples: list[list[str]], columns: list[int], first: int) -> np.ndarray:
    X = np.empty((len(samples), len(columns)))
    for i, row in enumerate(samples):
        try:
            X[i] = [float(row[c]) for c in columns]
        except ValueError:
            bad = next(c for c in columns if not _is_number(row[c]))
            where = f"row {first + i}, column {bad + 1}"
            raise ValueError(f"{row[bad]!r} is not a number ({where})") from None
    return X


def _labels(samples: list[list[str]], column: int, first: int) -> np.ndarray:
    labels = [row[column].strip() for row in samples]
    if "" in labels:
        where = f"row {first + labels.index('')}, column {column + 1}"
        raise ValueError(f"the label is empty ({where}): write one, or drop the row")
    return np.array(labels)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
