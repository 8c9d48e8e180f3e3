"""Table 1 of the paper: seconds for T iterations of the sublinear solver at n = d = k.

    OPENBLAS_NUM_THREADS=1 python benchmarks/table1.py [--sizes 400 800 ...] [--step online]

``loop`` is the time of the iterations (best of the repeats), ``setup`` that of the norms of X and
its transposed copy. ``stream`` is the time of a plain compiled loop that goes once through exactly
the arrays which an iteration has to go through, at random places too, with one addition an element:

- of U: reads a row of X and the column norms, reads and writes E and the sum S of a class,
- of V: reads a column of X, reads and writes W and S of a class, a row of block sums, and beta, the
  true class and B over all rows; reads weight tau.

Like the run, it begins with memory that was never written: in T iterations at the largest sizes
every class is met for the first time, and the system hands out its pages then. ``loop/stream`` is
what counts on a machine that is shared with others. ``cpu`` is the thread's own time for ``loop``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numba import njit

from fenchel.datasets import make_paper
from fenchel.kernels.sublinear import DUAL_USED, FIELDS, PRIMAL_USED, SIZE, TILE
from fenchel.problem import Problem
from fenchel.solvers.sublinear import Sublinear

PAPER = {400: 1.17, 800: 2.07, 1600: 4.27, 3200: 7.55, 6400: 15.56}
TARGET = {400: 0.03, 800: 0.06, 1600: 0.12, 3200: 0.35, 6400: 0.9}


@njit(nogil=True, fastmath=True)
def stream(X, Xt, sigma, primal, dual, block, rows, at, classes, other_classes):
    """Read what an iteration reads, and write what it writes, with one addition an element."""
    n, d = X.shape
    total = 0.0
    for t in range(classes.size):
        x, row = X[at[t] % n], primal[classes[t]]
        for i in range(d):
            total += x[i] * sigma[i]
        for i in range(row.size):
            row[i] += 1.0
        x, row, q = Xt[at[t] % d], dual[other_classes[t]], block[at[t] % block.shape[0]]
        for j in range(n):
            total += x[j]
            q[j] += 1.0
        for j in range(row.size):
            row[j] += 1.0
        for b in range(rows.shape[0]):
            for j in range(3 * TILE):  # beta, V(j, y), B
                rows[b, j] += 1.0
            for j in range(3 * TILE, 4 * TILE):  # weight tau
                total += rows[b, j]
    return total


def timed(function, repeats):
    """The least (wall, cpu) seconds of some calls."""
    best = [np.inf, np.inf]
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.thread_time()
        function()
        best[0] = min(best[0], time.perf_counter() - wall)
        best[1] = min(best[1], time.thread_time() - cpu)
    return best


def measure(n: int, T: int, repeats: int, step: str) -> tuple[float, ...]:
    data = make_paper(n, variant="paper", rng=0)
    problem = Problem.from_data(
        data.X, data.y, lam=data.lam, radius=data.radius, classes=data.classes
    )
    solver = Sublinear(step=step)
    loop, cpu, setup = np.inf, np.inf, np.inf
    for _ in range(repeats):
        clock = time.perf_counter()
        run = solver.init(problem, None, np.random.default_rng(0), T)
        setup = min(setup, time.perf_counter() - clock)
        wall, own = timed(lambda run=run: solver.advance(run, T), 1)
        loop, cpu = min(loop, wall), min(cpu, own)
    s = run.lazy
    rng = np.random.default_rng(1)
    # the classes that an iteration meets, as far as they are stored
    places = [rng.integers(0, m, T) for m in (n, s.count[PRIMAL_USED], s.count[DUAL_USED])]
    rows = s.rows.reshape(-1, FIELDS * TILE)
    blocks = -(-s.count[DUAL_USED] // s.count[SIZE])
    plain, plain_cpu = np.inf, np.inf
    for _ in range(max(3, repeats)):
        primal, dual = np.empty_like(s.primal), np.empty_like(s.dual)  # as a run begins
        arguments = (*run.data[:2], s.sigma, primal, dual, s.block[:blocks], rows)
        wall, own = timed(lambda a=arguments: stream(*a, *places), 1)
        plain, plain_cpu = min(plain, wall), min(plain_cpu, own)
    return loop, cpu, setup, plain, plain_cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(PAPER))
    parser.add_argument("--T", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--step", default="theory", help="theory, as in the paper, or online")
    options = parser.parse_args()
    measure(64, 100, 1, options.step)  # compile
    print(f"{'n=d=k':>6} {'loop s':>8} {'cpu s':>8} {'target':>7} {'paper':>7} {'setup s':>8} "
          f"{'us/iter':>8} {'stream s':>9} {'loop/stream':>11} {'cpu/cpu':>8}")  # fmt: skip
    seconds = {}
    for n in options.sizes:
        repeats = options.repeats if n <= 1600 else max(2, options.repeats // 2)
        loop, cpu, setup, plain, plain_cpu = measure(n, options.T, repeats, options.step)
        seconds[n] = cpu
        print(f"{n:6d} {loop:8.4f} {cpu:8.4f} {TARGET.get(n, np.nan):7.2f} "
              f"{PAPER.get(n, np.nan):7.2f} {setup:8.3f} {1e6 * loop / options.T:8.2f} "
              f"{plain:9.4f} {loop / plain:11.2f} {cpu / plain_cpu:8.2f}", flush=True)  # fmt: skip
    sizes = [n for n in seconds if n >= 800]
    if len(sizes) > 1:
        low, high = sizes[0], sizes[-1]
        growth = np.log(seconds[high] / seconds[low]) / np.log(high / low)
        print(f"growth exponent {low} -> {high}: {growth:.2f} (target at most 1.2)")


if __name__ == "__main__":
    main()
