"""``fenchel predict``: labels, probabilities, scores, the best classes, or the accuracy."""

from __future__ import annotations

import csv
import warnings
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from fenchel.cli.data import read
from fenchel.cli.files import Data, Expected
from fenchel.cli.labels import as_labels_of
from fenchel.cli.terminal import EXIT, check_writable, writing
from fenchel.estimators import SparseLinearClassifier
from fenchel.persistence import load

#: Entries of a block of scores: rows are predicted and written block by block.
BLOCK_ENTRIES = 1 << 22


def run(options: Namespace) -> int:
    """Predict block by block, and write."""
    check_writable({"--output": options.output}, [options.model, options.data, options.labels])
    if options.labels is not None and not options.score:
        raise ValueError(f"--labels {options.labels}: only --score needs labels: leave it out")
    model = _load(options.model)
    data = read(options, _expected(model), labels=options.score)
    with warnings.catch_warnings():
        # names were checked, and the columns put in order, when the file was read
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if options.score:
            rows: Iterator[list[Any]] = iter([[_accuracy(model, data, options)]])
        else:
            rows = predictions(model, data, options)
        with writing(options.output) as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    return EXIT.OK


def _load(path: str) -> SparseLinearClassifier:
    try:
        return load(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None


def _expected(model: SparseLinearClassifier) -> Expected:
    names = getattr(model, "feature_names_in_", None)
    return Expected(
        model.n_features_in_,
        None if names is None else names.tolist(),
        **getattr(model, "source_", {}),
    )


def predictions(
    model: SparseLinearClassifier, data: Data, options: Namespace
) -> Iterator[list[Any]]:
    """The rows of the output, a header first where there is more than one column."""
    classes = model.classes_.tolist()
    if options.top is not None:
        if not 1 <= options.top <= len(classes):
            raise ValueError(f"--top must be between 1 and {len(classes)}, found {options.top}")
        yield [f"{what}_{i + 1}" for i in range(options.top) for what in ("label", "score")]
    elif options.proba or options.decision:
        if options.proba:
            _check_proba(model)
        yield classes
    size = max(1, BLOCK_ENTRIES // len(classes))
    for rows in gen_batches(data.X.shape[0], size):
        yield from _block(model, data.X[rows], options)


def _block(model: SparseLinearClassifier, X: Any, options: Namespace) -> Iterator[list[Any]]:
    if options.top is not None:
        labels, scores = model.predict_topk(X, options.top, return_scores=True)
        for names, values in zip(labels.tolist(), scores, strict=True):
            yield [cell for pair in zip(names, map(_number, values), strict=True) for cell in pair]
    elif options.proba or options.decision:
        scores = model.predict_proba(X) if options.proba else model.decision_function(X)
        if scores.ndim == 1:  # two classes: the second score less the first one
            scores = np.stack([-scores / 2, scores / 2], axis=1)
        for values in scores:
            yield [_number(value) for value in values]
    else:
        for label in model.predict(X).tolist():
            yield [label]


def _check_proba(model: SparseLinearClassifier) -> None:
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"--proba: the {model.loss} loss models no probabilities: use --decision, or fit with "
            "--loss softmax"
        )


def _accuracy(model: SparseLinearClassifier, data: Data, options: Namespace) -> str:
    if data.y is None:
        raise ValueError(f"--score: {options.data} has no labels: use --target or --labels")
    found = as_labels_of(model.predict(data.X), model.classes_)
    labels = as_labels_of(data.y, model.classes_)
    known = as_labels_of(model.classes_, model.classes_).tolist()
    if set(known).isdisjoint(labels.tolist()):
        raise ValueError(
            f"--score: no label in {options.labels or options.data} (the first is {labels[0]}) is "
            f"one of the model's (the first is {known[0]}): give labels of the same kind"
        )
    right = int((found == labels).sum())
    return f"accuracy {right / data.y.size:.6f} ({right} of {data.y.size})"


def _number(value: float) -> str:
    return f"{value:.9g}"
