"""The certified solver against its own components.

    [FENCHEL_DATA=folder] python benchmarks/components.py [--large] [--loss softmax] [--only PART]

On problems that need no download, and for the hinge loss on genes and text where the shared folder
is named.

Prints CPU seconds, one thread, of fresh runs with each of the gaps over P(0) as ``tol``; "-" where
the limit of 20 s on the clock (60 s for n=d=k=1000, --large) came first. What takes less than half
a second is the fastest of several runs, which are made in turns. Then in how many cases the whole
took how many times as long as the better of its parts. With --large also what a gap of 0.01 at
n=d=k=1000 costs in dense products X @ U of that size, timed in the same process.

With --loss softmax suboptimality (P(U) - P*) / P(0) instead, which is what the steps on single
classes are for: with them, and Newton steps alone from the beginning.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from sklearn.datasets import load_digits, make_classification
from threadpoolctl import threadpool_limits

import fenchel
from _benchopt_shim import load
from fenchel.datasets import make_paper
from fenchel.solvers.base import Solver
from fenchel.solvers.hybrid_gradient import HybridGradient
from fenchel.solvers.proximal_newton import ProximalNewton

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)

#: Runs that take less than so many seconds are made so often.
SHORT, REPEATS = 0.5, 7
SOLVERS = ("hybrid-gradient", "proximal-newton", "primal-dual")

#: More than so many times the time of its better part, and the whole loses.
LOSES = 1.3


def problems() -> list[tuple[str, dict]]:
    X, y = load_digits(return_X_y=True)
    found = [(f"digits/16, lam {lam:g}", {"X": X / 16, "y": y, "lam": lam})
             for lam in (1e-2, 1e-3, 1e-4)]  # fmt: skip
    for n in (200, 400):
        data = make_paper(n, rng=0)
        arguments = {"X": data.X, "y": data.y, "classes": data.classes, "lam": data.lam}
        found.append((f"synthetic n=d=k={n}", arguments))
    return found


def wide() -> list[tuple[str, dict]]:
    """Data with many features: mostly noise, and real ones where the folder is named."""
    X, y = make_classification(400, 3000, n_informative=60, n_classes=12, random_state=2)
    found = [("noise, 400 x 3000", {"X": X, "y": y, "lam": 1e-2})]
    for name in ("nci60", "nakayama") if "FENCHEL_DATA" in os.environ else ():
        data = load("dataset", "genes")(genes=name).get_data()
        arguments = {"X": data["X"], "y": data["y"], "classes": np.arange(data["k"])}
        found += [(f"{name}, lam {lam:g}", arguments | {"lam": lam}) for lam in (1e-2, 1e-3)]
    return found


def text() -> list[tuple[str, dict]]:
    """Sparse rows of the comparison with the peers, where the folder is named."""
    found = []
    for name, lam in (("news20", 1e-3), ("news20", 1e-4), ("clinc150", 1e-4)):
        if "FENCHEL_DATA" in os.environ:
            data = load("dataset", "text")(text=name).get_data()
            arguments = {"X": data["X"], "y": data["y"], "classes": np.arange(data["k"])}
            found.append((f"{name}, lam {lam:g}", arguments | {"lam": lam}))
    return found


def times_to_gap(
    arguments: dict, solver: str | Solver, limit: float, tol: float
) -> dict[float, float]:
    """CPU seconds after which the certified gap was at most each level, times P(0) = 1."""
    reached: dict[float, float] = {}
    began = time.process_time()

    def watch(record: fenchel.termination.Record) -> bool:
        spent = time.process_time() - began
        for level in LEVELS:
            if record.best_gap <= level:
                reached.setdefault(level, spent)
        return spent > limit

    fenchel.solve(**arguments, solver=solver, tol=tol, callback=watch)
    return reached


def fresh_seconds(
    arguments: dict, level: float, limit: float, solvers: list[str]
) -> dict[str, float]:
    """CPU seconds of these solvers with this ``tol``; infinite where the limit came first."""
    found = dict.fromkeys(SOLVERS, np.inf)
    for repeat in range(1 + REPEATS):  # the first loads what is compiled, and compiles the rest
        for solver in solvers:
            if repeat > 1 and found[solver] >= SHORT:
                continue
            began = time.process_time()
            result = fenchel.solve(**arguments, solver=solver, tol=level, max_time=limit)
            spent = time.process_time() - began if result.status == "converged" else np.inf
            found[solver] = min(found[solver], spent) if repeat > 1 else spent
    return found


def report_parts(name: str, arguments: dict, limit: float) -> list[tuple[float, str]]:
    """Print a row for each solver; returns what the whole is in parts of the better part."""
    reached: dict[str, dict[float, float]] = {solver: {} for solver in SOLVERS}
    ratios = []
    for i, level in enumerate(LEVELS):
        left = [solver for solver in SOLVERS if len(reached[solver]) == i]
        seconds = fresh_seconds(arguments, level, limit, left)
        for solver in SOLVERS:
            if seconds[solver] < np.inf:
                reached[solver][level] = seconds[solver]
        *parts, whole = (seconds[solver] for solver in SOLVERS)
        if min(parts) < np.inf:
            ratios.append((whole / min(parts), f"{name} to {level:g}"))
        elif whole == np.inf:
            break
    for solver in SOLVERS:
        print_row(name, solver, reached[solver])
    return ratios


def print_row(name: str, solver: str, reached: dict[float, float]) -> None:
    cells = (f"{reached[level]:8.3f}" if level in reached else f"{'-':>8}" for level in LEVELS)
    print(f"{name:24} {solver:16}" + "".join(cells), flush=True)


class NewtonAlone(ProximalNewton):
    """Newton steps from the first, without steps on single classes."""

    name = "newton-alone"

    def init(self, *arguments):
        state = super().init(*arguments)
        state.by_class = None
        return state


def times_to_value(arguments: dict, solver, optimum: float) -> dict[float, float]:
    """CPU seconds after which (P - P*) / P(0) was at most each level."""
    reached: dict[float, float] = {}
    values: list[float] = []
    began = time.process_time()

    def watch(record: fenchel.termination.Record) -> bool:
        spent = time.process_time() - began
        values.append(record.primal)
        for level in LEVELS:
            if record.primal - optimum <= level * values[0]:
                reached.setdefault(level, spent)
        return spent > 30.0

    fenchel.solve(**arguments, loss="softmax", solver=solver, tol=1e-6, callback=watch)
    return reached


def softmax(large: bool) -> None:
    """The same for the softmax loss, the fastest of three runs."""
    certify_every_point()
    made = problems()
    if large:
        data = make_paper(1000, rng=0)
        made.append(("synthetic n=d=k=1000", {"X": data.X, "y": data.y, "lam": data.lam}))
    print(f"{'problem (softmax)':24} {'solver':16}" + "".join(f"{x:8g}" for x in LEVELS))
    for name, arguments in made:
        arguments.pop("classes", None)  # peers cannot be told of classes without a sample
        optimum = fenchel.solve(**arguments, loss="softmax", tol=1e-7, max_time=30).dual
        for solver in (NewtonAlone(), "primal-dual"):
            label = solver if isinstance(solver, str) else solver.name
            runs = [times_to_value(arguments, solver, optimum) for _ in range(3)]
            common = set.intersection(*(set(run) for run in runs))
            best = {level: min(run[level] for run in runs) for level in common}
            print_row(name, label, best)


def certify_every_point() -> None:
    """Times to rough gaps are read off one run to a small one."""
    ProximalNewton.is_far = Solver.is_far
    HybridGradient.is_far = Solver.is_far


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="n=d=k=1000 too, a few minutes more")
    parser.add_argument("--loss", choices=("hinge", "softmax"), default="hinge")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a run")
    options = parser.parse_args()
    large = options.large
    with threadpool_limits(1):
        if options.loss == "softmax":
            return softmax(large)
        print(f"{'problem (hinge)':24} {'solver':16}" + "".join(f"{x:8g}" for x in LEVELS))
        ratios = []
        for name, arguments in problems() + wide() + text():
            if options.only in name:
                ratios += report_parts(name, arguments, options.limit)
        print_ratios(ratios)
        if large:
            report_large()


def print_ratios(ratios: list[tuple[float, str]]) -> None:
    """How often the whole takes longer than the better of its parts, and where most."""
    ratios = sorted(ratios, reverse=True)
    above = ", ".join(f"{r:.2f} ({where})" for r, where in ratios if r > LOSES)
    print(
        f"primal-dual took {ratios[0][0]:.2f} times as long as the better part at most; in "
        f"{sum(r > LOSES for r, _ in ratios)} of {len(ratios)} cases more than {LOSES} times: "
        f"{above or 'none'}"
    )


def report_large() -> None:
    data = make_paper(1000, rng=0)
    arguments = {"X": data.X, "y": data.y, "classes": data.classes, "lam": data.lam}
    U = np.random.default_rng(0).standard_normal((1000, 1000))
    products = []
    for _ in range(10):
        began = time.process_time()
        data.X @ U
        products.append(time.process_time() - began)
    for solver in SOLVERS:
        reached = times_to_gap(arguments, solver, 60.0, 1e-2)
        print_row("synthetic n=d=k=1000", solver, reached)
        if 1e-2 in reached:
            print(f"  gap 0.01 = {reached[1e-2] / min(products):.0f} dense products X @ U")


if __name__ == "__main__":
    main()
