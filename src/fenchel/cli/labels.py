"""Labels: read from a file of their own, tidied, and compared with those of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fenchel.cli.files import open_text


def read_labels(path: Path) -> np.ndarray:
    """Labels of a numpy file, or of a text with one label a line."""
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    with open_text(path) as file:
        lines = file.read().rstrip().splitlines()
    labels = [line.strip() for line in lines]
    if "" in labels:
        raise ValueError(f"line {labels.index('') + 1} is empty: every sample needs a label")
    return np.array(labels)


def tidy(y: np.ndarray) -> np.ndarray:
    """Whole numbers as integers, everything else as it is."""
    if y.dtype.kind == "f":
        whole = np.isfinite(y).all() and (y == np.rint(y)).all() and (np.abs(y) < 2**53).all()
        return y.astype(np.int64) if whole else y
    if y.dtype.kind == "U":
        words = np.unique(y).tolist()
        if all(_is_integer(word) for word in words):
            return y.astype(np.int64)
    return y


def as_labels_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels that compare with the model's classes: as words, or as Python's exact numbers."""
    if classes.dtype.kind in "UO":
        return y.astype(str)
    return np.array([_value(label) for label in y.tolist()], dtype=object)


def _is_integer(word: str) -> bool:
    """In the form in which Python writes it, so that nothing is lost ("007" stays a word)."""
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19 and str(int(word)) == word


def _value(label: object) -> object:
    """The number that a word stands for; a word that is none of the numbers stays a word."""
    if isinstance(label, str):
        for number in (int, float):
            try:
                return number(label)
            except ValueError:
                pass
    return label
