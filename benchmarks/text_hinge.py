"""The hinge loss on sparse text with many classes: CPU seconds to certified gaps over P(0).

    python benchmarks/text_hinge.py [SET:LAM ...] [--limit SECONDS]

SET is a shared set (see examples/_data.py). Each is solved by the certified solver, and by Newton
steps from the first, without steps on single classes; "-" where the limit came first.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from components import LEVELS, NewtonAlone, certify_every_point, print_row, times_to_gap

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

SETS = ("hwu64:1e-4", "banking77:1e-4", "news20:1e-4", "clinc150:1e-4", "debian_section:1e-4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET:LAM")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds a solver")
    options = parser.parse_args()
    solvers = NewtonAlone(), "primal-dual"
    certify_every_point()
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        for solver in solvers:  # compile
            X = load("hwu64")["X"][:2000]
            arguments = {"X": X, "y": rng.integers(0, 9, 2000), "lam": 1e-3}
            times_to_gap(arguments, solver, 60.0, 1e-3)
        print(f"{'problem (hinge)':24} {'solver':16}" + "".join(f"{x:8g}" for x in LEVELS))
        for chosen in options.sets:
            name, lam = chosen.split(":")
            data = load(name)
            arguments = {"X": data["X"], "y": data["y"], "lam": float(lam)}
            for solver in solvers:
                label = solver if isinstance(solver, str) else solver.name
                reached = times_to_gap(arguments, solver, options.limit, 1e-6)
                print_row(f"{name}, lam {lam}", label, reached)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
