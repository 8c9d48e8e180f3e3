"""Compare fenchel with its peers on the problems of ``peer_rows.py``, and print the table.

    python benchmarks/run_peers.py --quick            a few minutes, small problems only
    python benchmarks/run_peers.py                    everything, one thread
    python benchmarks/run_peers.py --threads 2        and with two
    python benchmarks/run_peers.py --report           tables and pictures from the stored results

Every cell is a process of its own with one solver on one problem, and appends to
``results/peers.csv`` (``--quick``: to a file of its own, so that a short run changes no figure).
The solvers and problems are those of ``benchmarks/peers``, which benchopt runs too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import report_peers
from peer_rows import EXCLUDED, ROWS, SOLVERS, Row

HERE = Path(__file__).resolve().parent
FIELDS = ("row", "solver", "threads", "status", "stop", "cpu", "wall", "value", "dual", "gap",
          "nnz", "at_zero", "setup", "warm_up", "limit")  # fmt: skip
PACKAGES = ("fenchel", "numpy", "scipy", "numba", "scikit-learn", "cyanure", "glmnetforpython",
            "spams-bin", "ortools", "highspy")  # fmt: skip


def main() -> None:
    options = _options()
    name = "peers-quick" if options.quick else "peers"
    store = HERE / "results" / f"{name}.csv"
    if not options.report:
        if "FENCHEL_DATA" not in os.environ:
            print("FENCHEL_DATA is not set: problems on the shared data sets are skipped.")
        for peer, reason in EXCLUDED.items():
            print(f"not compared: {peer}: {reason}")
        records = _read(store)
        warm = [r for r in records if r["status"].startswith("warm-up")]
        if not options.rows or not warm:
            _write(store, _warm_ups(records, options.threads))
        for row in _chosen_rows(options):
            for solver, loss, parameters in SOLVERS:
                if loss in (None, row.loss) and solver.startswith(options.solvers):
                    key, new = _cell(_read(store), row, solver, parameters, options)
                    _write(store, _replaced(_read(store), key, new))
        store.with_suffix(".json").write_text(json.dumps(_machine(), indent=1) + "\n")
    report_peers.report(store, not options.quick)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four small problems, short runs")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, help="seconds a run of a peer (10; quick: 5)")
    parser.add_argument("--our-limit", type=float, help="seconds a run of fenchel (60; quick: 10)")
    parser.add_argument("--rows", help="only problems whose name contains one of these, by commas")
    parser.add_argument("--solvers", help="only solver files that begin with one of these")
    options = parser.parse_args()
    options.solvers = tuple(options.solvers.split(",")) if options.solvers else ""
    options.limit = options.limit or (5.0 if options.quick else 10.0)
    options.our_limit = options.our_limit or (10.0 if options.quick else 60.0)
    return options


def _chosen_rows(options: argparse.Namespace) -> list[Row]:
    rows = [row for row in ROWS if row.quick or not options.quick]
    if options.rows:
        rows = [row for row in rows if any(part in row.name for part in options.rows.split(","))]
        if not rows:
            raise SystemExit(f"no problem matches {options.rows!r}: {[row.name for row in ROWS]}")
    return rows


def _cell(
    records: list[dict[str, Any]],
    row: Row,
    solver: str,
    parameters: dict[str, Any],
    options: argparse.Namespace,
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Measure one cell: what its records are known by, and the records."""
    name = _solver_name(solver, parameters)
    key = {"row": row.name, "solver": name, "threads": str(options.threads)}
    limit = options.our_limit if solver == "fenchel_auto" else options.limit
    duals = [float(r["dual"]) for r in records if r["row"] == row.name and r["dual"]]
    began = time.perf_counter()
    lines = _run(
        {
            "solver": solver,
            "solver_parameters": parameters,
            "dataset": row.dataset,
            "dataset_parameters": row.parameters,
            "loss": row.loss,
            "lam": row.lam,
            "threads": options.threads,
            "limit": limit,
            "dual": max(duals, default=-1e300),
            "warm_up_only": False,
        },
        options.threads,
    )
    new = [key | {"limit": limit} | line for line in lines]
    runs = [line for line in lines if line["status"] == "ok"]
    last = lines[-1]["status"]
    if not runs:
        print(f"{row.name:28s} {name:14s} {last}", flush=True)
    else:
        best = min(runs, key=lambda line: line["value"])
        print(
            f"{row.name:28s} {name:14s} {len(runs):2d} runs, best P {best['value']:.8f} "
            f"gap/P(0) {min(r['gap'] for r in runs) / best['at_zero']:.1e} in {best['cpu']:.3g} "
            f"CPU s ({last}; cell {time.perf_counter() - began:.0f} s)",
            flush=True,
        )
    return key, [{field: line.get(field, "") for field in FIELDS} for line in new]


def _replaced(
    records: list[dict[str, Any]], key: dict[str, str], new: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The records with those of one cell measured anew; what was known of P* stays known."""
    kept = [r for r in records if any(r[f] != v for f, v in key.items())]
    duals = [float(r["dual"]) for r in records if r["row"] == key["row"] and r["dual"]]
    bound = {"row": key["row"], "solver": "", "status": "bound", "dual": max(duals, default="")}
    kept = [r for r in kept if (r["row"], r["status"]) != (key["row"], "bound")]
    if duals:
        kept.append({field: bound.get(field, "") for field in FIELDS})
    return kept + new


def _solver_name(solver: str, parameters: dict[str, Any]) -> str:
    return "-".join([solver.split("_")[0], *map(str, parameters.values())])


def _run(spec: dict[str, Any], threads: int, **environment: str) -> list[dict[str, Any]]:
    """The records of a cell, the last of which says how it ended."""
    env = os.environ | environment | _libraries()
    for variable in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        env[f"{variable}_NUM_THREADS"] = str(threads)
    done = subprocess.run(
        [sys.executable, str(HERE / "_peer_cell.py"), json.dumps(spec)],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == -signal.SIGPROF:
        lines.append({"status": "killed"})  # at the limit, which it has no means to keep itself
    elif done.returncode:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        lines.append({"status": f"failed (exit code {done.returncode}): {said}"[:300]})
    return lines or [{"status": "failed: no record"}]


def _libraries() -> dict[str, str]:
    """glmnetforpython wants a libgfortran by its plain name; numpy carries one under another."""
    libraries = Path(np.__file__).resolve().parents[1] / "numpy.libs"
    bundled = sorted(libraries.glob("libgfortran-*.so.5*"))
    if not bundled:
        return {}
    folder = Path(tempfile.gettempdir()) / f"fenchel-bench-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    link = folder / "libgfortran.so.5"
    link.unlink(missing_ok=True)
    link.symlink_to(bundled[0])
    return {"LD_LIBRARY_PATH": f"{folder}:{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def _warm_ups(records: list[dict[str, Any]], threads: int) -> list[dict[str, Any]]:
    """Seconds of fenchel's first small problem in a new process: compiled then, and cached."""
    records = [r for r in records if not (r["status"].startswith("warm-up")
                                          and r["threads"] == str(threads))]  # fmt: skip
    spec = {"solver": "fenchel_auto", "solver_parameters": {}, "dataset": "digits",
            "dataset_parameters": {}, "lam": 1e-2, "threads": threads, "limit": 60.0,
            "dual": -1e300, "warm_up_only": True}  # fmt: skip
    with tempfile.TemporaryDirectory() as cache:
        for loss in ("hinge", "softmax"):
            for state in ("compiled", "cached"):
                line = _run(spec | {"loss": loss}, threads, NUMBA_CACHE_DIR=cache)[-1]
                print(f"warm-up of fenchel, {loss}, {state}: {line['warm_up']:.1f} s", flush=True)
                new = {"row": f"{loss} small", "solver": "fenchel", "threads": str(threads),
                       "status": f"warm-up {state}", "warm_up": line["warm_up"]}  # fmt: skip
                records.append({field: new.get(field, "") for field in FIELDS})
    return records


def _machine() -> dict[str, Any]:
    """What the times depend on."""
    cpu = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.split(":")[1].strip() for line in info.read_text().splitlines()
                  if line.startswith("model name")]  # fmt: skip
        cpu = models[0] if models else cpu
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(),
            "versions": versions}  # fmt: skip


def _read(store: Path) -> list[dict[str, Any]]:
    if not store.exists():
        return []
    with store.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(store: Path, records: list[dict[str, Any]]) -> None:
    store.parent.mkdir(exist_ok=True)
    partial = store.with_suffix(".part")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    partial.replace(store)


if __name__ == "__main__":
    main()
