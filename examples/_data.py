"""The shared data sets: ``NAME.npz`` files in the folder that FENCHEL_DATA names."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


def find(name: str) -> Path:
    """A file of the folder; the example ends with a message where it is absent."""
    path = Path(os.environ.get("FENCHEL_DATA", DEFAULT)) / name
    if not path.exists():
        sys.exit(f"skipped: {path} is absent; set FENCHEL_DATA to the folder that holds it.")
    return path


def load(name: str) -> dict[str, Any]:
    """X, y and classes, and X_test and y_test where there is a test part."""
    found = {}
    with np.load(find(f"{name}.npz"), allow_pickle=False) as file:
        found["classes"] = file["classes"]
        for part in ("", "_test"):
            if f"y{part}" not in file:
                continue
            found[f"y{part}"] = file[f"y{part}"]
            if f"X{part}" in file:
                found[f"X{part}"] = file[f"X{part}"].astype(float)
                continue
            arrays = [file[f"{key}{part}"] for key in ("data", "indices", "indptr")]
            arrays[0] = arrays[0].astype(float)
            found[f"X{part}"] = sp.csr_array(tuple(arrays), shape=tuple(file[f"shape{part}"]))
    return found


def load_text(name: str, part: str) -> tuple[list[str], list[str]]:
    """The texts and their labels."""
    with gzip.open(find(f"{name}.{part}.txt.gz"), "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return [words for _, words in rows], [label for label, _ in rows]
