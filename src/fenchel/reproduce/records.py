"""Results as CSV files that say how they were made, and the look of the pictures."""

from __future__ import annotations

import csv
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import Any

import fenchel
from fenchel.exceptions import require
from fenchel.plotting import save_figure

__all__ = ["STYLE", "facts", "read_csv", "save_figure", "styled", "write_csv", "write_text"]

#: Environment variables that limit the threads of a product.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

#: matplotlib settings of all pictures of results.
STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, which keeps the files small
    "svg.hashsalt": "fenchel",  # the same picture gives the same file
}


def facts(seed: int | None, command: str | None = None, **more: Any) -> dict[str, Any]:
    """What a result needs to be made again: version, seed, command, machine and libraries.

    ``command`` defaults to that of this process, without the folders of the program. Neither a
    path nor the name of the machine is in it. ``load`` is the number of processes that wanted a
    core when the run began, this one included: above the number of cores the machine was shared.
    """
    if command is None:
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    threads = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    return {
        "command": command,
        "fenchel": fenchel.__version__,
        "seed": seed,
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "threads": " ".join(threads) or "not limited",
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "scipy", "numba")},
        **more,
    }


def cpu_model() -> str:
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write_csv(
    path: str | os.PathLike[str],
    rows: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write rows with the same keys, under the facts as lines ``# key: value``, all at once."""
    rows = list(rows)
    if not rows:
        raise ValueError("there are no rows to write.")
    text = StringIO()
    for key, value in (facts or {}).items():
        text.write(f"# {key}: {value}\n")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _short(value) for key, value in row.items()})
    return write_text(path, text.getvalue())


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file under a temporary name and rename it, so that no half file is left."""
    path = Path(path)
    target = Path(os.path.realpath(path))  # where a link points to
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def read_csv(path: str | os.PathLike[str]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The facts and the rows of a file that :func:`write_csv` wrote, as strings."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    head = [line[2:].partition(": ") for line in lines if line.startswith("# ")]
    body = [line for line in lines if not line.startswith("#")]
    return {key: value for key, _, value in head}, list(csv.DictReader(body))


def _short(value: Any) -> Any:
    """Floats with seven digits: more would only be noise in the history of the repository."""
    return f"{value:.7g}" if isinstance(value, float) else value


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of the results."""
    with require("matplotlib", "plot").rc_context(STYLE):
        yield
