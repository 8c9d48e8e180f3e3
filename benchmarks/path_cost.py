"""What a regularisation path costs, in units of its last fit alone (CPU seconds of one thread).

    python benchmarks/path_cost.py [DATA ...] [--alphas 20] [--eps 0.01]

DATA are digits (scikit-learn's) and shared sets (see examples/_data.py): banking77, hwu64, ...
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from fenchel import SparseLinearClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["digits", "banking77", "hwu64"])
    parser.add_argument("--losses", nargs="*", default=["hinge", "softmax", "sparsemax"])
    parser.add_argument("--alphas", type=int, default=20)
    parser.add_argument("--eps", type=float, default=0.01)
    options = parser.parse_args()
    print(f"{'data':<12}{'loss':<11}{'alone':>9}{'path':>9}{'ratio':>7}{'non-zeros':>11}{'gap':>9}")
    for name in options.data:
        if name == "digits":
            X, y = load_digits(return_X_y=True)
            X = X / 16
        else:
            data = load(name)
            X, y = data["X"], data["y"]
        for loss in options.losses:
            with threadpool_limits(1):
                report(name, loss, X, y, options.alphas, options.eps)


def report(name: str, loss: str, X, y, n_alphas: int, eps: float) -> None:
    model = SparseLinearClassifier(loss)
    model.path(X, y, alphas=2, eps=0.9)  # compile first
    began = time.process_time()
    path = model.path(X, y, alphas=n_alphas, eps=eps)
    whole = time.process_time() - began
    began = time.process_time()
    last = SparseLinearClassifier(loss, alpha=float(path.alphas[-1])).fit(X, y)
    alone = time.process_time() - began
    print(
        f"{name:<12}{loss:<11}{alone:>7.1f} s{whole:>7.1f} s{whole / alone:>7.2f}"
        f"{path.nonzeros[-1]:>11,}{max(path.dual_gaps):>9.1e}  {last.status_}",
        flush=True,
    )


if __name__ == "__main__":
    main()
