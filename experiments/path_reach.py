"""Where along a regularisation path the best model lies: how far down a path should go.

    FENCHEL_DATA=folder python experiments/path_reach.py [DATA ...]

Test accuracy (30% of the rows) of softmax models with penalties from lambda_max down to a
thousandth of it, four to a factor of ten.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import fenchel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

SETS = ("dna", "usps", "letter", "isolet1560", "primary_cancers", "nakayama", "nci60", "hwu64",
        "news20", "stackoverflow20")  # fmt: skip
PARTS = np.geomspace(1.0, 1e-3, 13)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=SETS)
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a penalty")
    options = parser.parse_args()
    print(f"{'data':<17}{'n':>7}{'d':>8}{'best at':>10}{'accuracy':>10}{'at 1e-2':>9}{'CPU':>8}")
    for name in options.data:
        with threadpool_limits(1):
            report(name, options.max_time)


def report(name: str, max_time: float) -> None:
    data = load(name)
    X, y = data["X"], data["y"]
    if name == "nakayama":  # as its page says
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = fenchel.SparseLinearClassifier("softmax", alpha_scale="max", max_time=max_time)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the last points, at max_time
        path = model.path(X, y, alphas=PARTS)
    spent = time.process_time() - began
    accuracy = [np.mean(_predicted(point, X_test, path.classes) == y_test) for point in path]
    best = int(np.argmax(accuracy))
    print(
        f"{name:<17}{X.shape[0]:>7}{X.shape[1]:>8}{PARTS[best]:>10.1e}{accuracy[best]:>10.3f}"
        f"{accuracy[np.abs(PARTS - 1e-2).argmin()]:>9.3f}{spent:>6.0f} s",
        flush=True,
    )


def _predicted(point: fenchel.path.PathPoint, X, classes: np.ndarray) -> np.ndarray:
    coef = point.coef.toarray() if hasattr(point.coef, "toarray") else point.coef
    return classes[np.argmax(X @ coef.T + point.intercept, axis=1)]


if __name__ == "__main__":
    main()
