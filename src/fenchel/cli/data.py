"""Reading samples and labels from files; every error names the file and the place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from fenchel.cli.files import Data, Expected, format_of, named
from fenchel.cli.labels import read_labels, tidy
from fenchel.cli.table import read_table
from fenchel.validation import check_design


def read(options: Any, model: Expected | None = None, *, labels: bool = True) -> Data:
    """Read the data that the command line names.

    Parameters
    ----------
    options : with ``data``, ``format``, ``separator``, ``target``, ``labels``, ``index_base``.
    model : what the model expects, where there is one.
    labels : whether they are needed; where they are not, what DATA says of them is not checked.
    """
    path = Path(options.data)
    kind = options.format or format_of(path)
    _check_options(options, kind)
    expected = model or Expected()
    inside = labels and options.labels is None
    with named(path):
        if kind == "svmlight":
            data = _svmlight(path, options.index_base, expected, inside)
        elif kind in ("csv", "tsv"):
            data = read_table(path, kind, options, expected, inside)
        elif kind == "npz":
            data = _npz(path)
        else:
            data = Data(np.load(path, allow_pickle=False))
        X = check_design(data.X)
        if expected.n_features not in (None, X.shape[1]):
            raise ValueError(f"{X.shape[1]} features, but the model has {expected.n_features}")
        y = _tidied(data.y, X.shape[0]) if inside else None
    if options.labels is not None:
        with named(Path(options.labels)):
            y = _tidied(read_labels(Path(options.labels)), X.shape[0])
    return replace(data, X=X, y=y)


def _check_options(options: Any, kind: str) -> None:
    """Refuse what this format has no use for."""
    if options.target is not None and kind not in ("csv", "tsv"):
        raise ValueError(
            f"--target {options.target}: {options.data} is read as {kind}, and only csv and tsv "
            "have columns with names: leave it out, or use --labels"
        )
    if options.separator is not None and kind not in ("csv", "tsv"):
        raise ValueError(
            f"--separator {options.separator!r}: {options.data} is read as {kind}, and only csv "
            "and tsv have cells: leave it out"
        )
    if options.index_base != "auto" and kind != "svmlight":
        raise ValueError(
            f"--index-base {options.index_base}: {options.data} is read as {kind}, and only "
            "svmlight numbers its features: leave it out"
        )


def _tidied(y: np.ndarray | None, n: int) -> np.ndarray | None:
    if y is None:
        return None
    if y.shape != (n,):
        raise ValueError(f"labels of shape {y.shape} for {n} sample(s): give one label a sample")
    return tidy(y)


def _svmlight(path: Path, index_base: str, model: Expected, labels: bool) -> Data:
    path.stat()  # the reader's own message for a missing file is less clear
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except OverflowError:
        raise ValueError(
            "a feature has a number of 2^31 or more: number the features from 0 or 1 on"
        ) from None
    if labels and (np.abs(y) >= 2**53).any():
        largest = y[np.abs(y).argmax()]
        raise ValueError(
            f"a label is {largest:.0f}: from 2^53 on svmlight's labels run together: use --labels"
        )
    lowest, highest = (X.indices.min(), X.indices.max()) if X.indices.size else (None, 0)
    base = _base(lowest, highest, index_base, model)
    if base == 1 and lowest == 0:
        why = "--index-base is 1" if index_base == "1" else "the model's data count from 1"
        raise ValueError(f"a feature number is 0, but {why}: use --index-base 0 if this file does")
    size = highest + 1 - base
    if model.n_features is not None:
        if size > model.n_features:
            raise ValueError(
                f"a feature number is {highest}, but the model has {model.n_features} features, "
                f"counted from {base} (see --index-base)"
            )
        size = model.n_features
    X = sp.csr_array((X.data, X.indices - base, X.indptr), shape=(X.shape[0], size))
    return Data(X, y, index_base=base)


def _base(lowest: int | None, highest: int, index_base: str, model: Expected) -> int:
    """The number of the first feature: as asked for, as in the model's data, or as it seems."""
    if index_base != "auto":
        return int(index_base)
    if model.index_base is not None:
        return model.index_base
    if lowest == 0:
        return 0
    if lowest is None or model.n_features is None or highest >= model.n_features:
        return 1
    raise ValueError(
        f"feature numbers from {lowest} to {highest} may count from 0 or from 1, and the model "
        "does not know, as it was not fitted on svmlight: use --index-base"
    )


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
