"""``class_weight``: factors on the weights of the samples, by class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fenchel.validation import check_number


def class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The factor of every class, (k,); ``codes`` and ``weights`` are those of the samples."""
    totals = np.bincount(codes, weights=weights, minlength=classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return weights.sum() / (classes.size * np.where(totals > 0.0, totals, 1.0))
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced', or a dictionary from label to factor, found "
            f"{class_weight!r}."
        )
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in set(labels)]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is no label in y (such as {labels[0]!r}): "
            "name labels as y has them, and leave out the others."
        )
    factors = np.ones(classes.size)
    for column, label in enumerate(labels):
        if label in class_weight:
            factors[column] = check_number(
                f"class_weight[{label!r}]", class_weight[label], remedy="give a factor >= 0"
            )
    if not (factors * totals).any():
        raise ValueError(
            "class_weight is zero for every class that has samples: give at least one of them a "
            "factor > 0."
        )
    return factors
