"""Whether the search over the radius (rem:radius) pays: certified gaps with it and without.

    python benchmarks/radius_search.py [--iterations 200000]

Digits (n = 1797, d = 64, k = 10), hinge loss, the sublinear solver. ``bound`` works in the ball of
radius P(0) / lam, which surely holds a solution; ``search`` in a ball that grows. ``norm`` is the
size of an accurate solution, by the primal-dual solver. Gaps are those of the penalised problem,
relative to P(0) = 1, seconds are CPU.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import fenchel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=200_000)
    arguments = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X = X / 16
    fenchel.solve(X, y, lam=1e-2, solver="sublinear", max_iter=10, rng=0)  # compile
    print(f"{'lam':>8} {'P(0)/lam':>9} {'norm':>7} {'radius':>7} {'iterations':>10} {'seconds':>8} "
          f"{'primal':>8} {'gap':>8}")  # fmt: skip
    for lam in (1e-2, 1e-3, 1e-4, 1e-5):
        good = fenchel.solve(X, y, lam=lam, solver="primal-dual", max_iter=2000, tol=1e-3)
        norm = float(np.abs(good.U).sum())
        for name, radius in (("bound", None), ("search", "search")):
            for iterations in (arguments.iterations // 10, arguments.iterations):
                begin = time.process_time()
                result = fenchel.solve(
                    X, y, lam=lam, radius=radius, solver="sublinear", max_iter=iterations, rng=0,
                    tol=1e-6,
                )  # fmt: skip
                seconds = time.process_time() - begin
                print(f"{lam:>8g} {1 / lam:>9g} {norm:>7.1f} {name:>7} {iterations:>10} "
                      f"{seconds:>8.2f} {result.primal:>8.4f} {result.gap:>8.4f}",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
