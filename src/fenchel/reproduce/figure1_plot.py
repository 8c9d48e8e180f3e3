"""The pictures of Figure 1: error in natural and in log-log scale, with the authors' numbers.

The natural scale is that of the paper's picture, so another size is drawn in log-log scale only,
with lines that fall as the theory says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fenchel.exceptions import require
from fenchel.plotting import save_figure
from fenchel.reproduce.configurations import CONFIGURATIONS
from fenchel.reproduce.figure1 import SIZE
from fenchel.reproduce.methods import methods
from fenchel.reproduce.records import styled
from fenchel.reproduce.results import Curve, lower_bound

#: Colours of the methods (those of the paper's figure for its three) and line styles.
LOOKS = {
    "full-smd": ("#1f4fd8", "-"),
    "full-smd-online": ("#1f4fd8", (0, (4, 1.5))),
    "partial": ("#2a9d5c", "-"),
    "partial-online": ("#2a9d5c", (0, (4, 1.5))),
    "ssm": ("#222222", "-"),
    "mirror-prox": ("#d62728", "-"),
    "mirror-prox-online": ("#d62728", (0, (4, 1.5))),
    "mirror-descent": ("#ff8c1a", "-"),
    "default": ("#8a2be2", "-"),
}

FORMATS = ("png", "svg")

#: What the authors call F*, for their instance.
AUTHORS_OPTIMUM = 0.3374

#: Axes in natural scale end here, the first two as in the paper's picture. With R = n the gaps
#: begin at 16 and not at 8.
NATURAL_ERROR, NATURAL_SECONDS, NATURAL_ITERATIONS = 6.0, 500.0, 4000.0
NATURAL_GAP = {"authors": 6.0, "paper": 20.0}

#: Lines beside the gaps: the power of T, its name, and the first and last T.
GUIDES = ((-0.5, r"$1/\sqrt{T}$", 1e3, 1e6), (-1.0, "$1/T$", 10.0, 3e3))

#: Errors below this are not drawn in log-log scale.
SMALLEST = 5e-5


def draw(
    curves: dict[str, Curve],
    theirs: dict[str, Curve],
    files: Path,
    configuration: str,
    size: int,
) -> list[Path]:
    """Two pictures, against seconds and against iterations; ``theirs`` are the authors' numbers.

    ``files`` is what their names begin with.
    """
    optimum = lower_bound(curves)
    paths = []
    for axis in ("seconds", "iterations"):
        with styled():
            figure = _picture(curves, theirs, optimum, configuration, axis, size)
            paths += [
                save_figure(figure, files.with_name(f"{files.name}-{axis}.{suffix}"))
                for suffix in FORMATS
            ]
    return paths


def _picture(
    curves: dict[str, Curve],
    theirs: dict[str, Curve],
    optimum: float,
    configuration: str,
    axis: str,
    size: int,
) -> Any:
    scales = ("natural", "log-log") if size == SIZE else ("log-log",)
    panels = [(quantity, scale) for quantity in ("accuracy", "gap") for scale in scales]
    height = 0.6 + 3.8 * len(scales)
    figure = require("matplotlib.figure", "plot").Figure(
        figsize=(10.0, height), layout="constrained"
    )
    axes = figure.subplots(len(scales), 2).ravel()
    labels = {name: m.label for name, m in methods(CONFIGURATIONS[configuration]).items()}
    for panel, (quantity, scale) in zip(axes, panels, strict=True):
        for name in [name for name in LOOKS if name in curves]:
            values = _values(curves[name], quantity, optimum)
            _curve(panel, curves[name], axis, values, LOOKS[name], labels[name])
        for name, curve in theirs.items():
            values = _values(curve, quantity, AUTHORS_OPTIMUM)
            _their_curve(panel, curve, axis, values, LOOKS[name][0], labels[name])
        _axes(panel, quantity, axis, scale, curves, configuration)
    if size != SIZE and axis == "iterations":
        _guides(axes[-1], curves)
    handles, names = axes[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    who = "the authors' program" if configuration == "authors" else "the paper as printed"
    figure.suptitle(
        f"Figure 1 with the settings of {who}: n = d = k = {size}, lam = {1 / size:g}", fontsize=11
    )
    return figure


def _values(curve: Curve, quantity: str, optimum: float) -> list[np.ndarray]:
    return curve.accuracy(optimum) if quantity == "accuracy" else curve.gap


def _curve(
    panel: Any, curve: Curve, axis: str, values: list[np.ndarray], look: Any, label: str
) -> None:
    """The mean over the repetitions, and a band from the smallest to the largest."""
    color, style = look
    x = getattr(curve, axis)
    mean, low, high = (np.array([f(v) for v in values]) for f in (np.mean, np.min, np.max))
    kept = mean > SMALLEST
    marker = "o" if x.size <= 20 else None
    panel.plot(x[kept], mean[kept], color=color, linestyle=style, marker=marker, markersize=3,
               label=label)  # fmt: skip
    if any(v.size > 1 for v in values):
        panel.fill_between(x, np.maximum(low, SMALLEST), high, color=color, alpha=0.15, linewidth=0)


def _their_curve(
    panel: Any, curve: Curve, axis: str, values: list[np.ndarray], color: str, label: str
) -> None:
    mean = np.array([v.mean() for v in values])
    if np.isnan(mean).all():  # SSM has no dual point there
        return
    panel.plot(getattr(curve, axis), mean, color=color, linestyle=":", linewidth=0.9, marker="s",
               markersize=4.5, markerfacecolor="none", markeredgewidth=0.9,
               label=f"{label}, authors' numbers")  # fmt: skip


def _guides(panel: Any, curves: dict[str, Curve]) -> None:
    """From the largest mean gap of a first point down."""
    top = max(float(curve.gap[0].mean()) for curve in curves.values())
    for power, name, first, last in GUIDES:
        end = top * (last / first) ** power
        panel.plot([first, last], [top, end], color="#888888", linestyle=":", linewidth=1.1)
        panel.annotate(name, (last, end), xytext=(3, 0), textcoords="offset points",
                       color="#666666", va="center")  # fmt: skip


def _axes(
    panel: Any,
    quantity: str,
    axis: str,
    scale: str,
    curves: dict[str, Curve],
    configuration: str,
) -> None:
    what = "primal accuracy" if quantity == "accuracy" else "duality gap (ball)"
    panel.set_title(f"{what}, {scale} scale")
    panel.set_ylabel("$F(U) - F_*$" if quantity == "accuracy" else "gap")
    panel.set_xlabel("seconds (CPU, one thread)" if axis == "seconds" else "iterations")
    if scale == "log-log":
        panel.set(xscale="log", yscale="log")
        return
    panel.set_ylim(0.0, NATURAL_ERROR if quantity == "accuracy" else NATURAL_GAP[configuration])
    if axis == "seconds":
        longest = max(float(curve.seconds.max()) for curve in curves.values())
        panel.set_xlim(0.0, min(NATURAL_SECONDS, longest))
    else:
        panel.set_xlim(0.0, NATURAL_ITERATIONS)
