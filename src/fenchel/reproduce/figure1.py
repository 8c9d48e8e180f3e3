"""Figure 1 of the paper: error against runtime and against iterations.

Each method writes a file of its own, so that methods can run side by side and a run that was
interrupted goes on where it was; then all files that there are make one summary and two pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.reproduce.configurations import CONFIGURATIONS, Configuration
from fenchel.reproduce.curves import run_method
from fenchel.reproduce.methods import BUDGETS, Method, methods
from fenchel.reproduce.records import facts, read_csv, write_csv

SIZE, QUICK_SIZE = 1000, 120

#: The quick mode goes no further than this, and has this many CPU seconds for a method.
QUICK_ITERATIONS, QUICK_BUDGET = 1000, 4.0

#: A method that is not repeated in the same way would not give the same file.
SAME = ("fenchel", "seed", "size", "repetitions", "budget", "step", "iterations")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to run: ``plan`` fills in what a mode decides."""

    configuration: Configuration
    size: int
    repetitions: int
    budgets: dict[str, float | None]  # CPU seconds by method; None is no limit
    seed: int
    methods: dict[str, Method]

    @property
    def title(self) -> str:
        return f"figure1-{self.configuration.name}"


def plan(
    configuration: str = "authors",
    *,
    quick: bool = False,
    full: bool = False,
    repetitions: int | None = None,
    budget: float | None = None,
    seed: int = 0,
    names: Iterable[str] | None = None,
) -> Plan:
    """The plan of a mode: quick, as far as the budgets of the methods go, or full without budgets.

    ``budget`` replaces the CPU seconds of every method.
    """
    chosen = CONFIGURATIONS[configuration]
    known = methods(chosen)
    wanted = list(known) if names is None else list(names)
    for name in wanted:
        if name not in known:
            raise ValueError(f"no method {name!r} in this configuration: use {', '.join(known)}.")
    if quick:
        known = {
            name: replace(m, iterations=[T for T in m.iterations if T <= QUICK_ITERATIONS])
            for name, m in known.items()
        }
    budgets: dict[str, float | None] = {
        name: None if full else budget or (QUICK_BUDGET if quick else BUDGETS[name])
        for name in known
    }
    return Plan(
        chosen,
        QUICK_SIZE if quick else SIZE,
        (2 if quick else chosen.repetitions) if repetitions is None else repetitions,
        budgets,
        seed,
        {name: known[name] for name in known if name in wanted},
    )


def run(task: Plan, output: Path, report: Report, command: str | None = None) -> Path:
    """Run the methods whose file is not there yet; return the folder of the files."""
    folder = output / task.title
    setting = task.configuration.figure1(task.size, task.seed)
    for name, method in task.methods.items():
        budget = task.budgets[name]
        path = folder / f"{name}.csv"
        about = facts(
            task.seed,
            command,
            configuration=task.configuration.name,
            size=task.size,
            repetitions=task.repetitions if method.random else 1,
            budget="none" if budget is None else f"{budget:g} CPU s",
            step=method.step,
            iterations=f"up to {method.iterations[-1]}",
            seconds="CPU seconds of one thread, certificates and compiling not counted",
        )
        if _is_there(path, about):
            report(f"{name}: found")
            continue
        _compile(method, task.configuration)
        rows = run_method(method, setting, task.repetitions, budget, report)
        about["reached"] = rows[-1].iterations
        write_csv(path, [asdict(row) for row in rows], about)
    return folder


def _is_there(path: Path, about: dict[str, Any]) -> bool:
    if not path.exists():
        return False
    found, _ = read_csv(path)
    return all(found.get(key) == str(about[key]) for key in SAME)


def _compile(method: Method, configuration: Configuration) -> None:
    """Let the kernels compile, or load, before a clock starts."""
    run_method(
        replace(method, iterations=[2]), configuration.figure1(20, 0), 1, None, lambda line: None
    )


@dataclass(frozen=True)
class Curve:
    """The points of a method over its repetitions, by number of iterations."""

    iterations: np.ndarray
    seconds: np.ndarray  # the mean
    primal: list[np.ndarray]
    gap: list[np.ndarray]
    inside: bool  # all points are inside the ball

    @property
    def best_dual(self) -> float:
        """The highest lower bound on the optimum."""
        return max(float((p - g).max()) for p, g in zip(self.primal, self.gap, strict=True))

    @property
    def best_primal(self) -> float:
        """The lowest upper bound on the optimum of the ball problem."""
        return min(float(p.min()) for p in self.primal) if self.inside else np.inf

    def accuracy(self, optimum: float) -> list[np.ndarray]:
        """Primal values less the optimum."""
        return [primal - optimum for primal in self.primal]

    def best_so_far(self) -> Curve:
        """The best primal and the best dual point up to each number of iterations; one run."""
        primal = np.concatenate(self.primal)
        dual = np.maximum.accumulate(primal - np.concatenate(self.gap))
        primal = np.minimum.accumulate(primal)
        return replace(self, primal=list(primal[:, None]), gap=list((primal - dual)[:, None]))


def read_curve(rows: list[dict[str, str]]) -> Curve:
    """The rows of one method; a missing dual value is a gap that is not a number."""
    T = np.array([int(row["iterations"]) for row in rows])
    columns = {
        key: np.array([float(row[key] or "nan") for row in rows])
        for key in ("seconds", "primal", "dual")
    }
    grid = np.unique(T)
    at = [grid_point == T for grid_point in grid]
    return Curve(
        grid,
        np.array([columns["seconds"][here].mean() for here in at]),
        [columns["primal"][here] for here in at],
        [(columns["primal"] - columns["dual"])[here] for here in at],
        inside=all(row.get("certifies") == "ball" for row in rows),
    )


def read_curves(folder: Path) -> tuple[dict[str, Curve], dict[str, str]]:
    """All curves of a folder, and the facts of the last file.

    The default solver returns the best points that it met, and its curve is theirs.
    """
    curves: dict[str, Curve] = {}
    about: dict[str, str] = {}
    for path in sorted(folder.glob("*.csv")):
        about, rows = read_csv(path)
        curve = read_curve(rows)
        curves[path.stem] = curve.best_so_far() if path.stem == "default" else curve
    return curves, about


def authors_curves() -> dict[str, Curve]:
    """What the authors published."""
    _, rows = read_csv(Path(__file__).with_name("authors_figure1.csv"))
    names = dict.fromkeys(row["method"] for row in rows)
    return {name: read_curve([row for row in rows if row["method"] == name]) for name in names}


def lower_bound(curves: dict[str, Curve]) -> float:
    """The best dual value: the optimum is not below it, and errors are measured from it."""
    return max(curve.best_dual for curve in curves.values())


def summarise(task: Plan, folder: Path, output: Path, command: str | None = None) -> Path:
    """Means and ranges over the repetitions, of all methods whose files are in the folder."""
    curves, _ = read_curves(folder)
    optimum = lower_bound(curves)
    upper = min(curve.best_primal for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        errors = curve.accuracy(optimum)
        for i, T in enumerate(curve.iterations):
            rows.append(
                {
                    "method": name,
                    "iterations": int(T),
                    "repetitions": errors[i].size,
                    "seconds": float(curve.seconds[i]),
                    **_range("accuracy", errors[i]),
                    **_range("gap", curve.gap[i]),
                }
            )
    about = facts(task.seed, command, configuration=task.configuration.name, size=task.size)
    about |= {"optimum": f"between {optimum:.6f} and {upper:.6f}"}
    about["accuracy"] = "primal value less the lower of these bounds"
    return write_csv(output / f"{task.title}.csv", rows, about)


def _range(name: str, values: np.ndarray) -> dict[str, float]:
    return {
        name: float(values.mean()),
        f"{name}_min": float(values.min()),
        f"{name}_max": float(values.max()),
    }
