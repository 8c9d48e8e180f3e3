"""The problem in a ball: seconds to a certified gap for the solvers that take a radius.

    [FENCHEL_DATA=folder] python benchmarks/ball.py [DATA ...] [--limit 10]

DATA are digits, synthetic-200 (the paper's, with its radius) and shared sets (see
examples/_data.py). The radius of the others is half the size of the solution with a penalty of 0.1
of lambda_max, so that the ball binds; inside it there is no penalty. CPU seconds of one thread with
all certificates, gaps in units of P(0); "-" where the limit came first, and the last gap.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import fenchel
from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.solving import solve_problem

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
SOLVERS = {
    "hinge": ("primal-dual", "mirror-prox", "sublinear"),
    "softmax": ("primal-dual", "mirror-prox"),
}


def problem_of(name: str, loss: str) -> Problem:
    """The data in a ball that binds."""
    if name.startswith("synthetic"):
        data = make_paper(int(name.split("-")[1]), rng=0)
        classes = data.classes
        return Problem.from_data(
            data.X, data.y, loss=loss, lam=0.0, radius=data.radius, classes=classes
        )
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        shared = load(name)
        X, y = shared["X"], shared["y"]
    lam = 0.1 * fenchel.lambda_max(X, y, loss=loss)
    size = float(abs(fenchel.solve(X, y, loss=loss, lam=lam, tol=1e-2).U).sum())
    return Problem.from_data(X, y, loss=loss, lam=0.0, radius=0.5 * size)


def follow(problem: Problem, solver: str, limit: float) -> tuple[dict[float, float], float]:
    """CPU seconds to every level, and the last gap."""
    reached: dict[float, float] = {}
    last = [np.inf]
    began = time.process_time()

    def note(record: fenchel.Record) -> bool:
        spent, last[0] = time.process_time() - began, record.best_gap / problem.at_zero
        for level in LEVELS:
            if last[0] <= level:
                reached.setdefault(level, spent)
        return spent > limit

    solve_problem(problem, solver=solver, tol=LEVELS[-1], rng=0, callback=note)
    return reached, last[0]


def compile_all() -> None:
    """Let no run pay for compiling: narrow data and wide, which begin with other steps."""
    rng, y = np.random.default_rng(0), np.arange(40) % 4
    for X in (rng.random((40, 6)), rng.random((40, 60))):
        for loss, solvers in SOLVERS.items():
            for solver in solvers:
                problem = Problem.from_data(X, y, loss=loss, lam=0.0, radius=1.0)
                solve_problem(problem, solver=solver, max_iter=200, tol=1e-8, rng=0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=["digits", "synthetic-200"])
    parser.add_argument("--limit", type=float, default=10.0)
    options = parser.parse_args()
    compile_all()
    heads = "".join(f"{level:>9.0e}" for level in LEVELS)
    print(f"{'data':<16}{'loss':<9}{'radius':>8} {'solver':<17}{heads}  last gap")
    for name in options.data:
        for loss, solvers in SOLVERS.items():
            problem = problem_of(name, loss)
            for solver in solvers:
                reached, last = follow(problem, solver, options.limit)
                cells = "".join(
                    f"{reached[level]:>9.2f}" if level in reached else f"{'-':>9}"
                    for level in LEVELS
                )
                print(f"{name:<16}{loss:<9}{problem.radius:>8.3g} {solver:<17}{cells}"
                      f"{last:>10.1e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
