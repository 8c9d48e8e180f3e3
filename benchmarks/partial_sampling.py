"""Time of one partial-sampling iteration against a plain loop that streams U and V once.

    python benchmarks/partial_sampling.py [sizes ...]

The stream reads and writes, in the same order, what an iteration has to: the doubled U, V, and the
sums of the iterates. Both are compiled and run in one thread, in turns; the least CPU times are
shown.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time

import numpy as np
from numba import njit

from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.solvers.stochastic import PartialSampling


@njit(cache=True, fastmath=True)
def stream(A, S, factor):
    for i in range(A.shape[0]):
        for l in range(A.shape[1]):
            S[i, l] += A[i, l]
            A[i, l] *= factor


def seconds(*calls, repeats=60):
    """The least CPU seconds of each call."""
    least = [np.inf] * len(calls)
    for _ in range(repeats):
        for c, call in enumerate(calls):
            begin = time.thread_time()
            call()
            least[c] = min(least[c], time.thread_time() - begin)
    return least


def main(sizes):
    print(f"{'n=d=k':>6} {'loss':>8} {'iteration':>12} {'stream':>12} {'ratio':>6}")
    for n in sizes:
        data = make_paper(n, rng=0)
        U, U_sum = np.ones((2 * n, n)), np.zeros((2 * n, n))
        V, V_sum = np.ones((n, n)), np.zeros((n, n))

        def once(U=U, U_sum=U_sum, V=V, V_sum=V_sum):
            stream(U, U_sum, 1.0000001)
            stream(V, V_sum, 1.0000001)

        for loss in ("hinge", "softmax"):
            problem = Problem.from_data(
                data.X, data.y, loss=loss, lam=data.lam, radius=data.radius, classes=data.classes
            )
            solver = PartialSampling()
            state = solver.init(problem, None, np.random.default_rng(0), 10**6)
            iteration, plain = seconds(lambda s=solver, t=state: s.advance(t, 1), once)
            print(f"{n:>6} {loss:>8} {iteration * 1e3:>9.3f} ms {plain * 1e3:>9.3f} ms "
                  f"{iteration / plain:>6.2f}")  # fmt: skip


if __name__ == "__main__":
    main([int(a) for a in sys.argv[1:]] or [200, 500, 1000, 2000])
