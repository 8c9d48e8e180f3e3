"""How much a deterministic iteration costs beyond its matrix products, at n = d = k = 1000.

    python benchmarks/mirror_prox_products.py [--size 1000] [--threads 1]

Prints, for Mirror Prox and mirror descent, the time of an iteration, of its products timed alone,
the ratio of the two, and the share of a profiled run that is spent inside the products.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.solvers.mirror_descent import MirrorDescent
from fenchel.solvers.mirror_prox import MirrorProx


def best(action, repeats):
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def time_products(problem, count, repeats):
    """``count / 2`` pairs of X @ U and X.T @ W on dense random factors."""
    rng = np.random.default_rng(0)
    U = rng.standard_normal((problem.d, problem.k))
    W = rng.standard_normal((problem.n, problem.k))

    def products():
        for _ in range(count // 2):
            problem.design.matmul(U)
            problem.design.rmatmul(W)

    return best(products, repeats)


class TimedDesign:
    """Adds up the time spent in products."""

    def __init__(self, design):
        self._design, self.seconds = design, 0.0

    def __getattr__(self, name):
        return getattr(self._design, name)

    def matmul(self, U):
        began = time.perf_counter()
        out = self._design.matmul(U)
        self.seconds += time.perf_counter() - began
        return out

    def rmatmul(self, W):
        began = time.perf_counter()
        out = self._design.rmatmul(W)
        self.seconds += time.perf_counter() - began
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    data = make_paper(options.size, rng=0)
    problem = Problem.from_data(
        data.X, data.y, lam=data.lam, radius=data.radius, classes=data.classes
    )
    print(f"n = d = k = {options.size}, {options.threads} thread(s), hinge loss")
    print(f"{'solver':<28}{'iteration':>11}{'products':>11}{'ratio':>8}{'in products':>13}")
    with threadpool_limits(options.threads):
        for label, solver, count in (
            ("mirror-prox (theory)", MirrorProx(step="theory"), 4),
            ("mirror-prox (online)", MirrorProx(step="online"), 4),
            ("mirror-descent (theory)", MirrorDescent(step="theory"), 2),
        ):
            state = solver.init(problem, None, np.random.default_rng(0), 1000)
            solver.advance(state, 2)  # compile and warm up
            iteration, products = np.inf, np.inf
            for _ in range(options.repeats):  # interleaved, so that a busy spell hits both
                iteration = min(iteration, best(lambda s=solver, st=state: s.advance(st, 1), 1))
                products = min(products, time_products(problem, count, 1))
            timed = TimedDesign(problem.design)
            object.__setattr__(problem, "design", timed)
            total = best(lambda s=solver, st=state: s.advance(st, 10), 1)
            object.__setattr__(problem, "design", timed._design)
            print(
                f"{label:<28}{iteration:>9.3f} s{products:>9.3f} s{iteration / products:>8.2f}"
                f"{timed.seconds / total:>12.0%}"
            )


if __name__ == "__main__":
    main()
