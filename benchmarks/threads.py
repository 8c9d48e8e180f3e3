"""Fits of sparse text with one thread and with two: wall seconds, in turns, and whether the same.

    python benchmarks/threads.py [SET ...] [--lam LAM] [--tol TOL] [--repeats N]

SET is a shared set (see examples/_data.py). The objective of both is compared to the last bit;
where BLAS adds up in another order with another number of threads, the last digits may differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

import fenchel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

SETS = ("news20", "clinc150", "debian_section", "debian_maint")
LOSSES = ("hinge", "softmax", "sparsemax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--lam", type=float, default=1e-4)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many counts")
    options = parser.parse_args()
    print(f"{'data':16}{'loss':12}{'1 thread':>10}{'2 threads':>11}{'ratio':>8}")
    for name in options.sets:
        data = load(name)
        for loss in LOSSES:
            arguments = {"X": data["X"], "y": data["y"], "loss": loss}
            arguments |= {"lam": options.lam, "tol": options.tol}
            fenchel.solve(**arguments)  # compile
            seconds: dict[int, float] = {}
            values = set()
            for _ in range(options.repeats):
                for limit in (1, 2):
                    with threadpool_limits(limit):
                        began = time.perf_counter()
                        values.add(fenchel.solve(**arguments).primal)
                        spent = time.perf_counter() - began
                    seconds[limit] = min(seconds.get(limit, spent), spent)
            same = (
                "the same bits" if len(values) == 1 else f"apart by {max(values) - min(values):.0e}"
            )
            print(
                f"{name:16}{loss:12}{seconds[1]:8.2f} s{seconds[2]:9.2f} s"
                f"{seconds[1] / seconds[2]:8.2f}  {same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
