"""Table 1 of the paper: the time of T iterations of the sublinear algorithm at n = d = k."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.reproduce.configurations import CONFIGURATIONS, Configuration, Setting
from fenchel.reproduce.records import facts, read_csv, write_csv
from fenchel.solvers.sublinear import Sublinear
from fenchel.threads import one_thread

SIZES, QUICK_SIZES = (400, 800, 1600, 3200, 6400), (50, 100, 200)
ITERATIONS, QUICK_ITERATIONS = (10_000, 20_000), (1_000, 2_000)


def authors_seconds() -> dict[tuple[int, int], float]:
    """The paper's table, by size and iterations."""
    _, rows = read_csv(Path(__file__).with_name("authors_table1.csv"))
    return {(int(r["size"]), int(r["iterations"])): float(r["seconds"]) for r in rows}


def run(
    configuration: str,
    output: Path,
    report: Callable[[str], None],
    *,
    quick: bool = False,
    repetitions: int | None = None,
    sizes: Iterable[int] | None = None,
    seed: int = 0,
    command: str | None = None,
) -> list[dict[str, Any]]:
    """Time all sizes and numbers of iterations; write ``table1-CONFIGURATION.csv``."""
    chosen = CONFIGURATIONS[configuration]
    repetitions = repetitions or (2 if quick else chosen.repetitions)
    sizes = tuple(sizes or (QUICK_SIZES if quick else SIZES))
    published = authors_seconds()
    rows = []
    with one_thread():
        _measure(chosen, chosen.table1(20, 0), 10, 0)  # compile, or load what was compiled
        for size in sizes:
            setting = chosen.table1(size, seed)
            for T in QUICK_ITERATIONS if quick else ITERATIONS:
                times = np.array([_measure(chosen, setting, T, r) for r in range(repetitions)])
                loop, setup = times.T
                theirs = published.get((size, T))
                rows.append(
                    {
                        "size": size,
                        "iterations": T,
                        "repetitions": repetitions,
                        "seconds": float(loop.mean()),
                        "seconds_min": float(loop.min()),
                        "seconds_max": float(loop.max()),
                        "setup": float(setup.mean()),
                        "authors": theirs,
                        "authors_over_ours": theirs and theirs / float(loop.mean()),
                    }
                )
                report(line(rows[-1]))
    about = facts(
        seed,
        command,
        configuration=configuration,
        growth=f"{growth(rows):.2f} (seconds ~ size^growth from {sizes[0]} to {sizes[-1]})",
        seconds="CPU seconds of one thread for the iterations; setup: norms and a copy of X",
    )
    write_csv(output / f"table1-{configuration}.csv", rows, about)
    return rows


def _measure(
    configuration: Configuration, setting: Setting, T: int, repetition: int
) -> tuple[float, float]:
    """CPU seconds of the iterations, and of what comes before them."""
    # the step of Table 1 in the authors' program is half of that of Figure 1
    step = "theory" if configuration.name == "paper" else setting.authors_step(T) / 2.0
    solver = Sublinear(step)
    began = time.process_time()
    state = solver.init(setting.ball, None, np.random.default_rng([2020, repetition]), T)
    ready = time.process_time()
    solver.advance(state, T)
    return time.process_time() - ready, ready - began


def growth(rows: list[dict[str, Any]]) -> float:
    """The exponent with which the time of the most iterations grows from the first size on."""
    most = max(row["iterations"] for row in rows)
    by_size = {row["size"]: row["seconds"] for row in rows if row["iterations"] == most}
    first, last = min(by_size), max(by_size)
    return float(np.log(by_size[last] / by_size[first]) / np.log(last / first))


HEAD = f"{'n=d=k':>6} {'T':>6} {'seconds':>8} {'min':>8} {'max':>8} {'authors':>8} {'ratio':>6}"


def line(row: dict[str, Any]) -> str:
    """One row for people."""
    text = (
        f"{row['size']:>6} {row['iterations']:>6} {row['seconds']:>8.4f} "
        f"{row['seconds_min']:>8.4f} {row['seconds_max']:>8.4f}"
    )
    if row["authors"] is not None:
        text += f" {row['authors']:>8.2f} {row['authors_over_ours']:>6.1f}"
    return text
