"""Figure 1 of the paper: error against runtime and against iterations.

Each method writes a file of its own, so that methods can run side by side and a run that was
interrupted goes on where it was; :mod:`fenchel.reproduce.results` reads them. A size other than
that of the paper is in the names of its files, so that no two sizes meet in a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fenchel.reproduce.configurations import CONFIGURATIONS, Configuration
from fenchel.reproduce.curves import run_method
from fenchel.reproduce.methods import BUDGETS, Method, methods
from fenchel.reproduce.records import facts, read_csv, write_csv

SIZE, QUICK_SIZE = 1000, 120

#: The quick mode goes no further than this. It has no budgets, so that it does the same on every
#: machine.
QUICK_ITERATIONS = 1000

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
        """The name of the folder, and what the names of the other files begin with."""
        size = "" if self.size == SIZE else f"-{self.size}"
        return f"figure1-{self.configuration.name}{size}"


def plan(
    configuration: str = "authors",
    *,
    quick: bool = False,
    full: bool = False,
    size: int | None = None,
    repetitions: int | None = None,
    budget: float | None = None,
    seed: int = 0,
    names: Iterable[str] | None = None,
) -> Plan:
    """The plan of a mode: quick, as far as the budgets of the methods go, or full without budgets.

    ``size`` replaces n = d = k, and ``budget`` the CPU seconds of every method.
    """
    if size is not None and size < 2:
        raise ValueError(f"size must be 2 or more, found {size}: it is the number of classes, too.")
    size = size or (QUICK_SIZE if quick else SIZE)
    chosen = CONFIGURATIONS[configuration]
    known = methods(chosen)
    if size != SIZE:  # the solution need not lie inside the ball
        known["default"] = replace(known["default"], penalised=False)
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
        name: None if full else budget or (None if quick else BUDGETS[name]) for name in known
    }
    return Plan(
        chosen,
        size,
        (2 if quick else chosen.repetitions) if repetitions is None else repetitions,
        budgets,
        seed,
        {name: known[name] for name in known if name in wanted},
    )


def run(task: Plan, output: Path, report: Report, command: str | None = None) -> None:
    """Run the methods whose file is not there yet."""
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
        _compile(method)
        rows = run_method(method, setting, task.repetitions, budget, report)
        about["reached"] = rows[-1].iterations
        write_csv(path, [asdict(row) for row in rows], about)


def _is_there(path: Path, about: dict[str, Any]) -> bool:
    if not path.exists():
        return False
    found, _ = read_csv(path)
    return all(found.get(key) == str(about[key]) for key in SAME)


def _compile(method: Method) -> None:
    """Let the kernels compile, or load, before a clock starts."""
    short = method if method.own_checks else replace(method, iterations=[2])
    run_method(short, CONFIGURATIONS["paper"].figure1(20, 0), 1, None, lambda line: None)
