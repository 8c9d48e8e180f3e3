"""Tables and pictures of docs/real-data.md, from the CSV files that ``real_data.py run`` wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common import RESULTS, new_figure, read_csv, save_figure, styled
from page import fill, markdown
from real_data import CURVES, FRACTIONS, GAPS, LARGE, MIDDLE, ROWS, SETS

PAGE = "real-data.md"
HINGE = ("primal-dual", "mirror-prox", "mirror-descent", "partial-sampling", "sublinear",
         "subgradient")  # fmt: skip
SOFTMAX = tuple(s.replace("sublinear", "full-sampling") for s in HINGE)
COLOURS = {
    "primal-dual": "black",
    "mirror-prox": "tab:blue",
    "mirror-descent": "tab:cyan",
    "partial-sampling": "tab:orange",
    "sublinear": "tab:red",
    "full-sampling": "tab:red",
    "subgradient": "tab:olive",
}
MARKERS = dict(zip(COLOURS, "osD^vvP", strict=True))
LOSSES = {"hinge": "tab:red", "softmax": "tab:blue", "sparsemax": "tab:green"}


class Table:
    """The rows by (set, loss, solver, fraction)."""

    def __init__(self) -> None:
        _, rows = read_csv(ROWS)
        self.rows = {(r["set"], r["loss"], r["solver"], float(r["fraction"])): r for r in rows}
        _, points = read_csv(CURVES)
        self.curves: dict[tuple, list[tuple[float, float, float]]] = {}
        for p in points:
            key = p["set"], p["loss"], p["solver"], float(p["fraction"])
            point = float(p["seconds"]), float(p["primal"]), float(p["dual"])
            self.curves.setdefault(key, []).append(point)

    def time(self, key: tuple, gap: float) -> str:
        """Seconds to a gap; where it was not reached, the gap at the end in brackets."""
        r = self.rows.get(key)
        if r is None:
            return ""
        if not r["gap"]:
            return "no memory"
        reached = r[f"to {gap:g}"]
        return short(float(reached)) if reached else f"({float(r['gap']):.1g})"


def short(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def time_tables(table: Table) -> None:
    for gap in (1e-1, 1e-3):
        rows = [
            [name, f"{f:g}", *(table.time((name, "hinge", solver, f), gap) for solver in HINGE)]
            for name in SETS
            for f in FRACTIONS
        ]
        fill(
            PAGE,
            f"seconds to {gap:g}, hinge",
            markdown(["set", "alpha / lambda_max", *HINGE], rows),
        )
    rows = [
        [name, *(table.time((name, "softmax", solver, MIDDLE), 1e-2) for solver in SOFTMAX)]
        for name in SETS
    ]
    fill(PAGE, "seconds to 0.01, softmax", markdown(["set", *SOFTMAX], rows))
    searched = "mirror-prox, radius search"
    rows = [
        [name, *(table.time((name, "hinge", solver, FRACTIONS[-1]), gap)
                 for gap in GAPS[:3] for solver in ("mirror-prox", searched))]
        for name in SETS
    ]  # fmt: skip
    head = [f"{gap:g}{', search' if search else ''}" for gap in GAPS[:3] for search in (0, 1)]
    fill(PAGE, "radius search", markdown(["set", *head], rows))


def reached_table(table: Table) -> None:
    """In how many cases each solver reached each gap within the limit, and was the first to."""
    rows = []
    for solver in HINGE:
        cells = [solver]
        for gap in GAPS:
            reached = first = measured = 0
            for name in SETS:
                for f in FRACTIONS:
                    times = {
                        s: float(table.rows[key][f"to {gap:g}"] or np.inf)
                        for s in HINGE
                        if (key := (name, "hinge", s, f)) in table.rows
                    }
                    mine = times.get(solver, np.inf)
                    measured += solver in times
                    reached += np.isfinite(mine)
                    first += np.isfinite(mine) and mine <= min(times.values())
            cells.append(f"{reached} ({first})")
        rows.append([*cells, f"{measured}"])
    head = ["solver", *(f"{gap:g}" for gap in GAPS), "cases"]
    for page in (PAGE, "which-solver.md"):
        fill(page, "reached", markdown(head, rows))


def ahead_table(table: Table) -> None:
    """When the sublinear solver's objective was lower than another's, by 2% or more."""
    rows = []
    for name in SETS:
        for f in FRACTIONS:
            cells = [name, f"{f:g}"]
            for rival in ("primal-dual", "mirror-prox"):
                keys = [(name, "hinge", solver, f) for solver in ("sublinear", rival)]
                cells.append(_ahead(*(table.curves.get(key) for key in keys)))
            rows.append(cells)
    head = ["set", "alpha / lambda_max", "ahead of primal-dual", "ahead of mirror-prox"]
    fill(PAGE, "sublinear ahead", markdown(head, rows))


def _ahead(mine: list | None, other: list | None) -> str:
    if not mine or not other:
        return ""

    def objective(curve: list, t: float) -> float:
        return [primal for seconds, primal, _ in curve if seconds <= t][-1]

    end = min(mine[-1][0], other[-1][0])
    times = sorted(s for s, _, _ in mine + other if s <= end)
    won = [t for t in times if objective(mine, t) < 0.98 * objective(other, t)]
    if not won:
        return "never"
    last = f"{objective(mine, won[-1]):.2f} against {objective(other, won[-1]):.2f}"
    return f"{short(won[0])} to {short(won[-1])} s (at the end {last})"


def loss_table(table: Table) -> None:
    rows = []
    for name in SETS:
        for f in FRACTIONS:
            cells = [name, f"{f:g}"]
            for loss in LOSSES:
                r = table.rows.get((name, loss, "primal-dual", f))
                time = table.time((name, loss, "primal-dual", f), 1e-4)
                cells += [r["non-zeros"], r["test accuracy"], time] if r else ["", "", ""]
            rows.append(cells)
    head = [f"{loss} {what}" for loss in LOSSES for what in ("non-zeros", "accuracy", "s to 1e-4")]
    fill(PAGE, "losses", markdown(["set", "alpha / lambda_max", *head], rows))


def memory_table(table: Table) -> None:
    rows = []
    for name in [*SETS, *LARGE]:
        found = [table.rows.get((name, "hinge", solver, MIDDLE)) for solver in HINGE]
        if any(found):
            size = next(r for r in found if r)
            shape = f"{size['n']} x {size['d']} x {size['k']}"
            rows.append([name, shape, *(_memory(r) for r in found)])
    fill(PAGE, "memory", markdown(["set", "n x d x k", *HINGE], rows))


def _memory(row: dict | None) -> str:
    if row is None:
        return ""
    value = row["memory MB"]
    return value if value.startswith("more") else f"{float(value):.0f}"


def large_table(table: Table) -> None:
    rows = []
    for name in LARGE:
        for solver in HINGE:
            r = table.rows.get((name, "hinge", solver, MIDDLE))
            if r is None:
                continue
            if not r["gap"]:
                rows.append([name, solver, "", "", "", "", "", _memory(r)])
                continue
            rows.append([name, solver, short(float(r["seconds"])), r["iterations"],
                         f"{float(r['primal']):.4f}", f"{float(r['dual']):.4f}",
                         f"{float(r['test accuracy']):.3f}", _memory(r)])  # fmt: skip
    head = ["problem", "solver", "CPU s", "iterations", "objective", "dual", "accuracy", "MB"]
    fill(PAGE, "large problems", markdown(head, rows))


def draw_curves(table: Table, loss: str, solvers: tuple[str, ...], path: Path) -> None:
    """Certified gap against time, one panel a set."""
    with styled():
        figure, axes = panels(len(SETS))
        for panel, name in zip(axes, SETS, strict=False):
            for solver in solvers:
                curve = table.curves.get((name, loss, solver, MIDDLE))
                if not curve:
                    continue
                start = curve[0][1]
                seconds, gaps = zip(*[(s, (p - d) / start) for s, p, d in curve[1:]], strict=True)
                panel.plot(seconds, gaps, color=COLOURS[solver], marker=MARKERS[solver],
                           markersize=2.5, linewidth=1.2, label=solver)  # fmt: skip
            panel.set(xscale="log", yscale="log", ylim=(7e-5, 1.3), title=name)
        finish(figure, axes, "CPU seconds", "certified relative gap", len(solvers))
    save_figure(figure, path)


def draw_losses(table: Table, path: Path) -> None:
    """Test accuracy against non-zeros, one line a loss."""
    with styled():
        figure, axes = panels(len(SETS))
        for panel, name in zip(axes, SETS, strict=False):
            for loss, colour in LOSSES.items():
                found = [table.rows.get((name, loss, "primal-dual", f)) for f in FRACTIONS]
                found = [r for r in found if r]
                panel.plot([int(r["non-zeros"]) for r in found],
                           [float(r["test accuracy"]) for r in found],
                           color=colour, marker="o", label=loss)  # fmt: skip
            panel.set(xscale="log", title=name)
            panel.minorticks_off()
            low, high = panel.get_xlim()
            ticks = [m * 10**e for e in range(1, 5) for m in (1, 2, 5) if low < m * 10**e < high]
            panel.set_xticks(ticks, labels=[str(tick) for tick in ticks])
        finish(figure, axes, "non-zero coefficients", "test accuracy", len(LOSSES))
    save_figure(figure, path)


def draw_times(table: Table, path: Path) -> None:
    """Seconds to each gap, all sets and penalties; what was not reached is at the right edge."""
    with styled():
        figure, axes = new_figure(len(GAPS), width=2.5, height=6.2)
        places = [(name, f) for name in SETS[::-1] for f in FRACTIONS[::-1]]
        never = 80.0
        for panel, gap in zip(axes, GAPS, strict=True):
            for solver in HINGE:
                points = []
                for height, (name, f) in enumerate(places):
                    r = table.rows.get((name, "hinge", solver, f))
                    if r:
                        points.append((float(r[f"to {gap:g}"] or never), height))
                if points:
                    panel.plot(*zip(*points, strict=True), linestyle="", alpha=0.75, label=solver,
                               color=COLOURS[solver], marker=MARKERS[solver])  # fmt: skip
            panel.axvline(30.0, color="grey", linewidth=0.8)
            panel.set(xscale="log", xlim=(0.01, 160), title=f"to {gap:g}", yticks=[],
                      xticks=[0.01, 0.1, 1, 10, never],
                      xticklabels=["0.01", "0.1", "1", "10", "never"])  # fmt: skip
            for border in range(0, len(places) + 1, len(FRACTIONS)):
                panel.axhline(border - 0.5, color="grey", linewidth=0.4)
        axes[0].set(yticks=range(len(places)), yticklabels=[f"{s}  {f:g}" for s, f in places])
        figure.supxlabel("CPU seconds until the certificate", fontsize=9)
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=len(HINGE))
    save_figure(figure, path)


def draw_large(table: Table, path: Path) -> None:
    """Objective and dual bound against time where a pass is dear."""
    names = [n for n in LARGE if any(key[0] == n for key in table.curves)]
    if not names:
        return
    with styled():
        figure, axes = new_figure(len(names), width=3.4, height=3.2)
        for panel, name in zip(axes, names, strict=True):
            for solver in HINGE:
                curve = table.curves.get((name, "hinge", solver, MIDDLE))
                if curve:
                    seconds, primal, dual = np.array(curve).T
                    style = {"color": COLOURS[solver], "marker": MARKERS[solver]}
                    panel.plot(seconds, primal, label=solver, **style)
                    panel.plot(seconds, dual, linestyle=":", **style)
            panel.set(title=name, ylim=(-0.03, 1.05))
        finish(figure, axes, "CPU seconds", "objective (solid), dual bound (dotted)", len(HINGE))
    save_figure(figure, path)


def panels(count: int):
    """A figure with panels in rows of three."""
    figure, (first, *_) = new_figure(1, width=8.2, height=2.25 * -(-count // 3) + 0.5)
    first.remove()
    return figure, list(figure.subplots(-(-count // 3), 3).flat)


def finish(figure, axes, xlabel: str, ylabel: str, columns: int) -> None:
    figure.supxlabel(xlabel, fontsize=9)
    figure.supylabel(ylabel, fontsize=9)
    handles: dict[str, object] = {}
    for panel in axes:
        handles |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def show() -> None:
    table = Table()
    reached_table(table)
    ahead_table(table)
    time_tables(table)
    loss_table(table)
    memory_table(table)
    large_table(table)
    draw_curves(table, "hinge", HINGE, RESULTS / "real_data_hinge.png")
    draw_curves(table, "softmax", SOFTMAX, RESULTS / "real_data_softmax.png")
    draw_times(table, RESULTS / "real_data_times.png")
    draw_losses(table, RESULTS / "real_data_losses.png")
    draw_large(table, RESULTS / "real_data_large.png")
