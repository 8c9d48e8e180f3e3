"""Pictures of a run and of a model (matplotlib, the extra ``plot``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fenchel.exceptions import require
from fenchel.problem import Matrix

if TYPE_CHECKING:
    from fenchel.solving import Result


def new_figure(columns: int, width: float = 5.0, height: float = 3.8) -> tuple[Any, Any]:
    """A figure that needs no display, with a row of axes."""
    figure_class = require("matplotlib.figure", "plot").Figure
    figure = figure_class(figsize=(width * columns, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def plot_gap(axes: Any, results: Mapping[str, Result]) -> None:
    """The best certified gap so far against the solver's seconds."""
    for label, result in results.items():
        seconds = [record.seconds for record in result.history[1:]]
        gaps = [max(record.best_gap, 1e-16) for record in result.history[1:]]
        axes.plot(seconds, gaps, marker="o", markersize=3, label=label)
    axes.set(yscale="log", xlabel="seconds of the solver", ylabel="certified gap")
    axes.set_xlim(left=0.0)
    axes.set_title("certified gap against time")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend()


def plot_coefficients(axes: Any, U: Matrix, title: str) -> None:
    """The coefficients as a picture, classes by features; white is exactly zero."""
    dense = U.toarray() if sp.issparse(U) else np.asarray(U)
    limit = float(np.abs(dense).max()) or 1.0
    image = axes.imshow(
        np.ma.masked_equal(dense.T, 0.0),
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
    )
    axes.set(xlabel="feature", ylabel="class", title=title)
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def save_figure(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure under a temporary name and rename it, so that no half picture is left."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        figure.savefig(temporary, dpi=130, format=path.suffix.lstrip(".") or "png")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
