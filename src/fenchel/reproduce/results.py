"""The files of Figure 1 as curves, their summary, and the authors' numbers beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.reproduce.records import read_csv, write_csv


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


def read_curves(folder: Path, size: int) -> dict[str, Curve]:
    """All curves of a folder by the name of the method; all have to be of this size.

    The default solver returns the best points that it met, and its curve is theirs.
    """
    curves: dict[str, Curve] = {}
    for path in sorted(folder.glob("*.csv")):
        about, rows = read_csv(path)
        if about.get("size") != str(size):
            raise ValueError(f"{path} is of size {about.get('size')} and not {size}: remove it")
        curve = read_curve(rows)
        curves[path.stem] = curve.best_so_far() if path.stem == "default" else curve
    return curves


def authors_curves() -> dict[str, Curve]:
    """What the authors published, by the name of the method."""
    _, rows = read_csv(Path(__file__).with_name("authors_figure1.csv"))
    names = dict.fromkeys(row["method"] for row in rows)
    return {name: read_curve([row for row in rows if row["method"] == name]) for name in names}


def lower_bound(curves: dict[str, Curve]) -> float:
    """The best dual value: the optimum is not below it, and errors are measured from it."""
    return max(curve.best_dual for curve in curves.values())


def summarise(curves: dict[str, Curve], path: Path, about: dict[str, Any]) -> Path:
    """Write means and ranges over the repetitions of all methods."""
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
    about = about | {
        "optimum": f"between {optimum:.6f} and {upper:.6f}",
        "accuracy": "primal value less the lower of these bounds",
    }
    return write_csv(path, rows, about)


#: Gaps whose first certified point is listed, and iterations at which gaps are listed.
GAPS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
ITERATIONS = (100, 1000, 10_000, 100_000, 1_000_000, 3_162_277)


def reached(curves: dict[str, Curve]) -> list[str]:
    """For every method the CPU seconds to the first point whose mean gap is small enough."""
    lines = [_line("CPU seconds to a mean gap of", list(GAPS))]
    for name, curve in curves.items():
        gap = np.array([values.mean() for values in curve.gap])
        first = [np.flatnonzero(gap <= goal) for goal in GAPS]
        lines.append(_line(name, [curve.seconds[f[0]] if f.size else None for f in first]))
    return lines


def after(curves: dict[str, Curve]) -> list[str]:
    """For every method the mean gap after some numbers of iterations."""
    lines = [_line("mean gap after iterations", [f"{T:.2g}" for T in ITERATIONS])]
    for name, curve in curves.items():
        gaps = {T: v.mean() for T, v in zip(curve.iterations, curve.gap, strict=True)}
        lines.append(_line(name, [gaps.get(T) for T in ITERATIONS]))
    return lines


def slopes(curves: dict[str, Curve]) -> list[str]:
    """For every method the slope of log(mean gap) over log(T), fitted in the decade up to a T."""
    lines = [_line("log-log slope up to iterations", [f"{T:.2g}" for T in ITERATIONS])]
    for name, curve in curves.items():
        lines.append(_line(name, [_slope(curve, T) for T in ITERATIONS]))
    return lines


def _slope(curve: Curve, last: int) -> str:
    """A dash where the curve does not cover the decade, which may begin a rounding below it."""
    T, gap = curve.iterations, np.array([values.mean() for values in curve.gap])
    here = (0.0999 * last <= T) & (last >= T)
    if not (T[0] <= 0.1 * last and last in T and here.sum() > 1):
        return "-"
    slope = np.polyfit(np.log(T[here]), np.log(gap[here]), 1)[0]
    return "-" if np.isnan(slope) else f"{round(slope, 2) + 0.0:.2f}"  # no minus before a zero


def _line(name: str, cells: list[Any]) -> str:
    text = [cell if isinstance(cell, str) else _cell(cell) for cell in cells]
    return f"{name:<30}" + "".join(f"{cell:>9}" for cell in text)


def _cell(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.3g}"


def _range(name: str, values: np.ndarray) -> dict[str, float]:
    return {
        name: float(values.mean()),
        f"{name}_min": float(values.min()),
        f"{name}_max": float(values.max()),
    }
