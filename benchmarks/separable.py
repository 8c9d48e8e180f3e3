"""Losses given by a function and its derivative against the same losses with a closed form.

    python benchmarks/separable.py

CPU seconds of one thread to a certified gap of 1e-3 over P(0) with a penalty of 1e-3, the fastest
of three runs; and the iterations, which should be the same. hwu64 where FENCHEL_DATA has it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import fenchel
from fenchel.losses import SeparableLoss

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

SMALLEST = 1e-300

LOSSES = {
    "softmax": SeparableLoss(
        lambda v, _: v * np.log(np.maximum(v, SMALLEST)),
        lambda v, _: np.log(np.maximum(v, SMALLEST)) + 1.0,
    ),
    "sparsemax": SeparableLoss(lambda v, _: 0.5 * v**2, lambda v, _: v),
    "hinge": SeparableLoss(lambda v, true: true * v, lambda v, true: true + 0 * v, affine=True),
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    X, y = load_digits(return_X_y=True)
    sets = {"digits": (X / 16, y)}
    if "FENCHEL_DATA" in os.environ:
        text = load("hwu64")
        sets["hwu64"] = text["X"], text["y"]
    print(f"{'data':8} {'loss':10} {'closed form':>16} {'by its function':>18} {'ratio':>6}")
    with threadpool_limits(1):
        for name, data in sets.items():
            for loss, generic in LOSSES.items():
                if (name, loss) == ("hwu64", "hinge"):
                    continue  # bisection: minutes
                (t, n), (s, m) = (timed(*data, which) for which in (loss, generic))
                print(f"{name:8} {loss:10} {t:8.3f} s {n:3} it {s:10.3f} s {m:3} it {s / t:6.1f}")


def timed(X: Any, y: np.ndarray, loss: Any) -> tuple[float, int]:
    """The fastest of three runs after one that compiles, and its iterations."""
    seconds = []
    for _ in range(4):
        begin = time.process_time()
        result = fenchel.solve(X, y, loss=loss, lam=1e-3, tol=1e-3)
        seconds.append(time.process_time() - begin)
        assert result.status == "converged"
    return min(seconds[1:]), result.history[-1].iteration


if __name__ == "__main__":
    main()
