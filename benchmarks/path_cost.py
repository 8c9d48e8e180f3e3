"""What a regularisation path costs, in units of its last fit alone (CPU seconds of one thread).

    python benchmarks/path_cost.py [DATA ...] [--alphas 20] [--eps 1e-3]

DATA are digits (scikit-learn's, divided by 16), raw-digits, standardised-digits, and shared sets
(see examples/_data.py): banking77, hwu64, ...
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from fenchel import SparseLinearClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

DIGITS = {"digits": lambda X: X / 16, "raw-digits": lambda X: X, "standardised-digits": scale}

#: P(0), the unit of tol (1e-3 here): the largest gap of the path is printed in it.
SCALE = {"hinge": lambda k: 1.0, "softmax": np.log, "sparsemax": lambda k: 0.5 * (1 - 1 / k)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["digits", "banking77", "hwu64"])
    parser.add_argument("--losses", nargs="*", default=["hinge", "softmax", "sparsemax"])
    parser.add_argument("--alphas", type=int, default=20)
    parser.add_argument("--eps", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=2, help="of which the fastest counts")
    options = parser.parse_args()
    print(
        f"{'data':<20}{'loss':<11}{'alone':>10}{'path':>10}{'ratio':>7}{'non-zeros':>11}"
        f"{'largest gap':>12}"
    )
    for name in options.data:
        if name in DIGITS:
            X, y = load_digits(return_X_y=True)
            X = DIGITS[name](X)
        else:
            data = load(name)
            X, y = data["X"], data["y"]
        for loss in options.losses:
            with threadpool_limits(1):
                report(name, loss, X, y, options.alphas, options.eps, options.repeats)


def report(name: str, loss: str, X, y, n_alphas: int, eps: float, repeats: int) -> None:
    wholes, alones = [], []
    for _ in range(repeats + 1):  # the first compiles
        began = time.process_time()
        path = SparseLinearClassifier(loss).path(X, y, alphas=n_alphas, eps=eps)
        wholes.append(time.process_time() - began)
        began = time.process_time()
        last = SparseLinearClassifier(loss, alpha=float(path.alphas[-1])).fit(X, y)
        alones.append(time.process_time() - began)
    whole, alone = min(wholes[1:] or wholes), min(alones[1:] or alones)
    largest = max(path.dual_gaps) / SCALE[loss](len(path.classes))
    print(
        f"{name:<20}{loss:<11}{alone:>8.2f} s{whole:>8.2f} s{whole / alone:>7.2f}"
        f"{path.nonzeros[-1]:>11,}{largest:>12.1e}  {last.status_}",
        flush=True,
    )


if __name__ == "__main__":
    main()
