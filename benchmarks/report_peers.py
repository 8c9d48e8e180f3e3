"""From the stored results of ``run_peers.py`` to the tables and pictures of docs/benchmarks.md."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

from peer_rows import EXCLUDED, LEVELS, ROWS, Row, Target

DOCS = Path(__file__).resolve().parents[1] / "docs"
GAP_TARGET = "certified gap at most 3e-4 when the suboptimality is 1e-4"
BEGIN, END = "<!-- begin: written by benchmarks/run_peers.py -->", "<!-- end -->"


class Results:
    """The runs of one problem with a number of threads.

    Suboptimality and gap are relative to P(0), as ``tol`` is, or to P* (``at_optimum``).
    P* is bounded from below by the best certified dual value of all runs, so that a
    suboptimality given here is never smaller than the true one.
    """

    def __init__(
        self, row: Row, records: list[dict[str, Any]], threads: str, at_optimum: bool = False
    ) -> None:
        of_row = [r for r in records if r["row"] == row.name]
        self.row, self.seconds = row, "cpu" if threads == "1" else "wall"
        done = [r for r in of_row if r["status"] == "ok"]
        known = [r for r in of_row if r["status"] in ("ok", "bound")]  # also of earlier runs
        self.bound = max((float(r["dual"]) for r in known), default=-math.inf)
        self.at_optimum = at_optimum and self.bound > 0
        self.known_to = min((self._run(r)["suboptimality"] for r in done), default=math.inf)
        self.runs: dict[str, list[dict[str, float]]] = {}
        self.said: dict[str, str] = {}
        self.limit = 0.0
        self.product = math.nan
        for record in of_row:
            if record["threads"] != threads:
                continue
            if record["status"] == "product":
                self.product = float(record["cpu"])
            elif record["status"] == "ok":
                self.runs.setdefault(record["solver"], []).append(self._run(record))
            else:
                self.said[record["solver"]] = record["status"]
            if record["solver"] != "fenchel":
                self.limit = float(record["limit"])

    def _run(self, record: dict[str, Any]) -> dict[str, float]:
        scale = self.bound if self.at_optimum else float(record["at_zero"])
        return {
            "seconds": float(record[self.seconds]),
            "suboptimality": max((float(record["value"]) - self.bound) / scale, 1e-16),
            "gap": max(float(record["gap"]) / scale, 1e-16),
        }

    def time(self, solver: str, level: float, what: str = "suboptimality") -> float:
        """Seconds of the fastest run that reached a level; infinite where none did."""
        there = [r["seconds"] for r in self.runs.get(solver, []) if r[what] <= level]
        return min(there, default=math.inf)

    def peers(self) -> list[str]:
        """Those that could begin, whether a run of theirs ended in time or not."""
        began = [s for s in self.said if self.said[s] in ("killed", "limit")]
        return [s for s in dict.fromkeys([*self.runs, *began]) if s != "fenchel"]

    def best_peer(self, level: float, what: str = "suboptimality") -> tuple[float, str]:
        return min(((self.time(s, level, what), s) for s in self.peers()), default=(math.inf, ""))

    def at_least(self) -> float:
        """A bound on the time of peers that did not get there: what each was given, the least.

        A peer that ended by itself, at its last tolerance or with a value that no longer moved,
        does not get there in any time.
        """
        given = []
        for solver in self.peers():
            ended = self.said.get(solver, "")
            if ended == "killed":
                given.append(self.limit)
            elif ended == "limit":
                given.append(max(run["seconds"] for run in self.runs[solver]))
        return min(given, default=math.inf)

    def ratio(self, level: float) -> tuple[float, str]:
        """Best peer / fenchel, and how it is written: "> r" where the peers ran out of time."""
        ours, (theirs, _) = self.time("fenchel", level), self.best_peer(level)
        if math.isinf(ours):
            return 0.0, "-" if math.isinf(theirs) else "lost"
        if math.isfinite(theirs):
            return theirs / ours, _short(theirs / ours)
        bound = self.at_least() / ours
        return bound, "no peer" if math.isinf(bound) else f"> {_short(bound)}"

    def gap_at(self, solver: str, level: float) -> float:
        """The certified gap of the fastest run that reached a suboptimality."""
        there = [r for r in self.runs.get(solver, []) if r["suboptimality"] <= level]
        return min(there, key=lambda r: r["seconds"])["gap"] if there else math.inf


def report(store: Path, write: bool) -> None:
    """Print the tables; ``write`` puts them, and the picture, into docs/benchmarks.md."""
    with store.open(newline="") as file:
        records = list(csv.DictReader(file))
    machine = json.loads(store.with_suffix(".json").read_text())
    parts = [_facts(machine, records)]
    for threads in sorted({r["threads"] for r in records if r["status"] != "bound"}):
        results, at_optimum = (
            [r for r in found if r.runs or r.said]
            for found in (
                [Results(row, records, threads, scale) for row in ROWS] for scale in (False, True)
            )
        )
        clock = "CPU" if threads == "1" else "wall"
        parts += [
            f"## {threads} thread{'s' * (threads != '1')}, {clock} seconds, "
            "suboptimality relative to P(0)",
            _main_table(results),
            "### Relative to P*", _main_table(at_optimum),
            "### Every solver", _all_table(results),
            "### Certified gaps", _certified_table(results),
        ]  # fmt: skip
        if threads == "1":
            parts += ["### Targets", _target_table(results, at_optimum)]
            if write:
                _picture(results, DOCS / "benchmarks.png")
    text = "\n\n".join(parts)
    print(text)
    if write:
        page = DOCS / "benchmarks.md"
        before, _, rest = page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _facts(machine: dict[str, Any], records: list[dict[str, Any]]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    warm = [r for r in records if r["status"].startswith("warm-up") and r["threads"] == "1"]
    times = "; ".join(
        f"{r['row'].split()[0]} {float(r['warm_up']):.1f} s {r['status'].split()[1]}" for r in warm
    )
    limits = {
        who: sorted({float(r["limit"]) for r in records if r["limit"] and r["solver"] in names})
        for who, names in (
            ("fenchel", {"fenchel"}),
            ("a peer", {r["solver"] for r in records} - {"fenchel"}),
        )
    }
    seconds = ", ".join(f"{who} {'-'.join(f'{t:g}' for t in ts)}" for who, ts in limits.items())
    lines = [
        f"Limits in seconds a run: {seconds}; a cell has half as much again.",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}.",
        f"Versions: {versions}.",
        f"Warm-up of fenchel in a new process, not in the tables: {times}.",
        *(f"Not compared: {peer}: {reason}." for peer, reason in EXCLUDED.items()),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _main_table(results: list[Results]) -> str:
    """Ours, the best peer and their ratio, at every level."""
    rows = []
    for found in results:
        cells = [found.row.name]
        for level in LEVELS:
            ours, (theirs, who) = found.time("fenchel", level), found.best_peer(level)
            peer = f"{_short(theirs)} {who}" if who and theirs < math.inf else "-"
            cells.append(f"{_short(ours)} / {peer} / **{found.ratio(level)[1]}**")
        cells.append(f"{found.known_to:.0e}")
        rows.append(cells)
    heads = ["problem", *(f"{level:.0e}" for level in LEVELS), "P* known to"]
    return _table(heads, rows)


def _all_table(results: list[Results]) -> str:
    """Seconds of every solver, or why there are none."""
    rows = []
    for found in results:
        for solver in found.runs:
            times = [_short(found.time(solver, level)) for level in LEVELS]
            rows.append([found.row.name, solver, *times, found.said.get(solver, "")])
        without = {why: [s for s in found.said if found.said[s] == why and s not in found.runs]
                   for why in found.said.values()}  # fmt: skip
        for why, solvers in without.items():
            if solvers:
                nothing = ["-"] * len(LEVELS)
                rows.append([found.row.name, ", ".join(solvers), *nothing, why])
    return _table(["problem", "solver", *(f"{level:.0e}" for level in LEVELS), "remark"], rows)


def _certified_table(results: list[Results]) -> str:
    """Seconds to a certified gap, and the gap of each at a suboptimality of 1e-4."""
    rows = []
    for found in results:
        times = [_short(found.time("fenchel", level, "gap")) for level in LEVELS]
        theirs, who = found.best_peer(1e-3, "gap")
        peer = f"{_short(theirs)} {who}" if theirs < math.inf else "-"
        gaps = [(found.gap_at(solver, 1e-4), solver) for solver in ("fenchel", *found.peers())]
        said = ", ".join(f"{solver} {gap:.0e}" for gap, solver in gaps if gap < math.inf)
        rows.append([found.row.name, *times, peer, said or "-"])
    heads = [
        "problem", *(f"{level:.0e}" for level in LEVELS), "best peer to 1e-03",
        "certified gap when the suboptimality is 1e-4",
    ]  # fmt: skip
    return _table(heads, rows)


def _target_table(results: list[Results], at_optimum: list[Results]) -> str:
    rows = []
    for found, strict in zip(results, at_optimum, strict=True):
        for target in found.row.targets:
            rows.append([found.row.name, *_judge(found, target), *_judge(strict, target)[1:]])
        cells = [*_judge_gap(found), *_judge_gap(strict)]
        rows.append([found.row.name, GAP_TARGET, *cells])
    return _table(["problem", "target", "relative to P(0)", "", "relative to P*", ""], rows)


def _judge_gap(found: Results) -> tuple[str, str]:
    gap = found.gap_at("fenchel", 1e-4)
    got = f"{gap:.1e}" if gap < math.inf else "1e-4 not reached"
    return got, "met" if gap <= 3e-4 else "missed"


def _judge(found: Results, target: Target) -> tuple[str, str, str]:
    """What was wanted, what was found, and "met", "missed" or (no peer got there) "open"."""
    what = "gap" if target.certified else "suboptimality"
    ours = found.time("fenchel", target.level, what)
    goal = f"{'certified ' * target.certified}{target.level:.0e}"
    if target.times is not None:
        ratio, written = found.ratio(target.level)
        wanted = f"{target.times:g} times faster than the best peer to {goal}"
        if target.times == 1:
            wanted = f"as fast as the best peer to {goal}"
        missed = "open" if written.startswith(">") else "missed"
        return wanted, f"{written} times", "met" if ratio >= target.times else missed
    if target.products is not None:
        used, limit = ours / found.product, target.products
        wanted, got = f"{goal} in {limit:g} products X @ U", f"{_short(used)} products"
    else:
        assert target.seconds is not None
        used, limit = ours, target.seconds
        wanted, got = f"{goal} in {limit:g} s", f"{_short(used)} s"
    return wanted, got, "met" if used <= limit else "missed"


def _picture(results: list[Results], path: Path) -> None:
    """Suboptimality against seconds, one panel a problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = 5
    lines = math.ceil(len(results) / columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.1 * columns, 2.5 * lines), squeeze=False)
    solvers = list(dict.fromkeys(s for found in results for s in found.runs if found.runs[s]))
    colours = {s: "black" if s == "fenchel" else f"C{i}" for i, s in enumerate(solvers)}
    for axis, found in zip(axes.flat, results, strict=False):
        for solver, runs in found.runs.items():
            runs = sorted(runs, key=lambda r: r["seconds"])
            axis.loglog(
                [max(r["seconds"], 1e-3) for r in runs], [r["suboptimality"] for r in runs],
                "o-", ms=2.5, lw=1.8 if solver == "fenchel" else 1.0, color=colours[solver],
            )  # fmt: skip
        axis.set_title(found.row.name, fontsize=8)
        axis.set_xlim(3e-3, 100.0)
        axis.set_ylim(3e-7, 2.0)
        axis.tick_params(labelsize=6)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(results) :]:
        axis.axis("off")
    handles = [plt.Line2D([], [], color=colours[s], marker="o", ms=3, label=s) for s in solvers]
    figure.legend(handles=handles, ncols=len(solvers), loc="lower center", fontsize=8)
    figure.supxlabel("CPU seconds", fontsize=9, y=0.02)
    figure.supylabel("P(U) - P*, relative", fontsize=9)
    figure.tight_layout(rect=(0.01, 0.03, 1, 1))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _short(number: float) -> str:
    if math.isinf(number):
        return "-"
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
