"""How far the certified gap goes: every fixed instance to 1e-6, the small ones to 1e-8.

    python benchmarks/accuracy.py [--limit SECONDS]

Prints CPU seconds, one thread, to certified gaps over P(0) with solver="auto"; "-" where the limit
of a run came first. The text is the shared set news20 (see examples/_data.py), which is left out
where it is not there.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

import fenchel
from components import problems
from fenchel.datasets import make_paper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

LEVELS = (1e-2, 1e-4, 1e-6, 1e-8)


def instances() -> list[tuple[str, dict, float]]:
    """A name, arguments of ``fenchel.solve``, and the gap that is asked for."""
    found = [(name, arguments, 1e-8 if "digits" in name or "=200" in name else 1e-6)
             for name, arguments in problems()]  # fmt: skip
    data = make_paper(1000, rng=0)
    arguments = {"X": data.X, "y": data.y, "classes": data.classes, "lam": data.lam}
    found.append(("synthetic n=d=k=1000", arguments, 1e-6))
    try:
        text = load("news20")
    except (FileNotFoundError, SystemExit) as missing:
        print(f"news20 is left out: {missing}")
        return found
    return found + [(f"news20, lam {lam:g}", {"X": text["X"], "y": text["y"], "lam": lam}, 1e-6)
                    for lam in (1e-3, 1e-4)]  # fmt: skip


def seconds_to(arguments: dict, loss: str, tol: float, limit: float) -> tuple[dict, float]:
    """CPU seconds after which the gap over P(0) was at most each level, and the last gap."""
    reached: dict[float, float] = {}
    scale: list[float] = []
    began = time.process_time()

    def watch(record: fenchel.termination.Record) -> bool:
        spent = time.process_time() - began
        scale.append(record.primal)  # that of U = 0 comes first
        for level in LEVELS:
            if record.best_gap <= level * scale[0]:
                reached.setdefault(level, spent)
        return spent > limit

    result = fenchel.solve(**arguments, loss=loss, tol=tol, callback=watch)
    return reached, result.gap / scale[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=300.0, help="CPU seconds of a run")
    options = parser.parse_args()
    with threadpool_limits(1):
        made = instances()
        for loss in ("hinge", "softmax"):  # compile, for dense and for sparse data
            for _, arguments, _ in (made[0], made[-1]):
                seconds_to(arguments, loss, 1e-1, 20.0)
        print(f"{'problem':32}" + "".join(f"{x:9g}" for x in LEVELS) + "   last gap")
        for loss in ("hinge", "softmax"):
            for name, arguments, tol in made:
                reached, gap = seconds_to(arguments, loss, tol, options.limit)
                cells = "".join(
                    f"{reached[x]:9.2f}" if x in reached else f"{'-':>9}" for x in LEVELS
                )
                print(f"{loss + ' ' + name:32}{cells}{gap:11.1e}", flush=True)


if __name__ == "__main__":
    main()
