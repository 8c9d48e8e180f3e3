"""What sampling costs when the data have heavy tails, and what helps.

    python experiments/heavy_tails.py [--quick | --draw | --kinds t2.2 ...]

The paper's third open question. Mirror descent with exact products, partial sampling and full
sampling make the same number of iterations, each with the best of some multiples of its theory
step, on data with lighter and heavier tails; then with the remedies one by one. Writes
results/heavy_tails.csv and results/heavy_tails.png (not with --quick); --draw makes the picture and
the tables of docs/heavy-tails.md from the file alone.

The problem is the l1 hinge problem at a tenth of lambda_max inside the ball that just holds its
solution, so that the ball changes nothing. A row's gap is certified for that ball, relative to the
objective at zero. ``lipschitz`` and ``tau`` are the two constants of th:md-partial, the largest
root mean square of a feature and the mean over the samples of the largest entry; ``constant`` is
(16.2 L + 8 tau) R log(2dk), what its bound divides by sqrt T.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.stats import ortho_group

import fenchel
from common import RESULTS, facts, new_figure, read_csv, save_figure, styled, write_csv
from fenchel.certificate import certify
from fenchel.geometry.registry import make_geometries
from fenchel.losses import Hinge
from fenchel.losses.base import true_class
from fenchel.problem import Problem
from fenchel.sampling import PartialSampler
from fenchel.solvers.mirror_descent import joint_scale
from fenchel.steps.theory import stochastic_step
from heavy_tails_kernel import smd_iterations
from page import fill, markdown

N, D, K = 100, 80, 5
FRACTION = 0.1
PAGE = "heavy-tails.md"
MULTIPLES = (1, 4, 16, 64, 256)
METHODS = ("exact", "partial", "full")


def make_data(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of one kind; labels from the ranks of some of them, so that tails do not decide."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    if kind.startswith("t"):
        X = rng.standard_t(float(kind[1:]), (N, D))
    ranks = X[:, :K].argsort(axis=0).argsort(axis=0) / N
    y = (ranks + 0.1 * rng.standard_normal((N, K))).argmax(axis=1)
    if kind == "heavy rows":
        X = X * (rng.pareto(1.5, N) + 0.1)[:, None]
    elif kind == "heavy columns":
        X = X * (rng.pareto(1.5, D) + 0.1)
    elif kind == "sparse":  # like text: rare features, of ordinary size where they occur
        X = X * (rng.random((N, D)) < 0.03)
    return X, y


KINDS = {
    "Gaussian": "Gaussian",
    "t4": "Student's t, 4 d.f.",
    "t3": "Student's t, 3 d.f.",
    "t2.2": "Student's t, 2.2 d.f.",
    "t1.5": "Student's t, 1.5 d.f.",
    "heavy rows": "Gaussian, Pareto scale of a row",
    "heavy columns": "Gaussian, Pareto scale of a column",
    "sparse": "Gaussian, 3% of the entries",
}


#: Where the remedies are tried.
REMEDIED = ("t2.2", "heavy rows", "heavy columns", "sparse")


class MarginHinge(Hinge):
    """The hinge loss with a margin b_i for each sample: ``max_l b_i [l != y] + z_l - z_y``.

    r_i times the loss with margin 1 / r_i at z / r_i is the hinge loss at z: rows may be scaled if
    weights and margins go with them. Its methods take all samples at once.
    """

    def __init__(self, sizes: np.ndarray) -> None:
        super().__init__()
        self.sizes = sizes

    def margins(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = Z + self.sizes[:, None]
        out[np.arange(y.size), y] = true_class(Z, y)
        return out

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.sizes * (true_class(V, y) - 1.0)


@dataclass(frozen=True)
class Case:
    """A problem, perhaps in other units, and what is done to the optimal laws.

    A law p becomes ``(1 - mix) p + mix uniform``, and then no outcome is drawn more often than
    ``cap`` times the mean; estimates stay unbiased, since they are divided by what was drawn from.
    """

    problem: Problem
    mix: float = 0.0
    cap: float = np.inf


def solved(problem: Problem) -> tuple[np.ndarray, float]:
    """The solution of the penalised problem and its value."""
    result = fenchel.solve(
        problem.design.X, problem.y, lam=problem.lam, tol=1e-6, classes=np.arange(K),
        penalty_factor=problem.penalty_factor,
    )  # fmt: skip
    return result.U, result.primal


def base_problem(kind: str) -> tuple[Problem, np.ndarray]:
    X, y = make_data(kind)
    lam = FRACTION * fenchel.lambda_max(X, y, classes=np.arange(K))
    problem = Problem.from_data(X, y, lam=lam, classes=np.arange(K))
    U, _ = solved(problem)
    return problem.with_radius(float(np.abs(U).sum())), U


def scaled_columns(problem: Problem, U: np.ndarray, scale: np.ndarray) -> Problem:
    """X_j / s_j, U_j s_j and the factor 1 / s_j on the penalty: the same problem."""
    scale = np.where(scale > 0, scale, 1.0)
    return Problem.from_data(
        problem.design.X / scale, problem.y, lam=problem.lam, classes=np.arange(K),
        penalty_factor=1 / scale, radius=float(np.abs(U * scale[:, None]).sum()),
    )  # fmt: skip


def scaled_rows(problem: Problem, scale: np.ndarray) -> Problem:
    """x_i / r_i with weight r_i and margin 1 / r_i: the same problem, other weights for V."""
    scale = np.where(scale > 0, scale, scale.mean())  # a row of zeros may have any
    scale = scale / (problem.weights @ scale)
    return Problem.from_data(
        problem.design.X / scale[:, None], problem.y, loss=MarginHinge(1 / scale),
        lam=problem.lam, sample_weight=problem.weights * scale, classes=np.arange(K),
        penalty_factor=problem.penalty_factor, radius=problem.radius,
    )  # fmt: skip


def remedies(problem: Problem, U: np.ndarray) -> dict[str, Case]:
    """Equivalent problems, and other laws for the same problem."""
    X = problem.design.X
    rms, largest = np.sqrt(problem.weights @ X**2), np.abs(X).max(axis=0)
    columns = scaled_columns(problem, U, rms)
    both = scaled_rows(columns, np.abs(columns.design.X).max(axis=1))
    cases = {
        "columns to root mean square 1": Case(columns),
        "columns to largest entry 1": Case(scaled_columns(problem, U, largest)),
        "rows to largest entry 1": Case(scaled_rows(problem, np.abs(X).max(axis=1))),
        "columns, then rows": Case(both),
        "laws mixed with uniform": Case(problem, mix=0.5),
        "laws clipped": Case(problem, cap=5.0),
    }
    for case in cases.values():  # the same objective, at the solution and at zero
        scale = np.where(case.problem.penalty_factor > 0, 1 / case.problem.penalty_factor, 1.0)
        assert np.isclose(case.problem.primal(U * scale[:, None]), problem.primal(U))
        assert np.isclose(case.problem.at_zero, problem.at_zero)
    return cases


def rotated(problem: Problem) -> Problem:
    """Random rotation of the features: another problem, since l1 is not invariant."""
    Q = ortho_group.rvs(D, random_state=0)
    other = Problem.from_data(problem.design.X @ Q, problem.y, lam=problem.lam,
                              classes=np.arange(K))  # fmt: skip
    U, _ = solved(other)
    return other.with_radius(float(np.abs(U).sum()))


def winsorised(problem: Problem) -> Problem:
    """Entries beyond the 99th percentile of their column cut off: another problem too."""
    X = problem.design.X
    limit = np.quantile(np.abs(X), 0.99, axis=0)
    other = Problem.from_data(np.clip(X, -limit, limit), problem.y, lam=problem.lam,
                              classes=np.arange(K))  # fmt: skip
    U, _ = solved(other)
    return other.with_radius(float(np.abs(U).sum()))


def gap(case: Case, method: str, multiple: float, T: int, seed: int) -> float:
    """The relative gap of the average of T iterates with a multiple of the theory step."""
    problem = case.problem
    primal, dual = make_geometries(problem, problem.radius)
    sampler = PartialSampler(problem, primal, dual)
    if method == "exact":
        gamma = 1.0 / (np.sqrt(5.0 * T) * joint_scale(problem, primal, dual))
    else:  # both schemes have the same bounds on their variances
        bounds = sampler.variance_bounds()
        gamma = stochastic_step(sampler.lipschitz, primal, dual, bounds, T)
    rates = (2 * multiple * gamma * omega for omega in (primal.omega_bound, dual.omega_bound))
    U, V = smd_iterations(
        problem.design.X, problem.y, K, problem.weights,
        getattr(problem.loss, "sizes", np.ones(N)), problem.lam * problem.penalty_factor,
        problem.radius, sampler.columns, sampler.rows, *rates, T, METHODS.index(method),
        case.mix, case.cap, np.random.default_rng(seed),
    )  # fmt: skip
    return certify(problem, U, V).gap / problem.at_zero


def row(kind: str, remedy: str, case: Case, T: int, seeds: int) -> dict:
    problem = case.problem
    primal, dual = make_geometries(problem, problem.radius)
    sampler = PartialSampler(problem, primal, dual)
    L, tau, R = sampler.lipschitz, float(problem.weights @ sampler.rows), problem.radius
    found = {
        "data": KINDS[kind], "remedy": remedy, "radius": R, "lipschitz": L, "tau": tau,
        "constant": (16.2 * L + 8 * tau) * R * np.log(2 * D * K), "iterations": T,
    }  # fmt: skip
    for method in METHODS:
        repeats = 1 if method == "exact" else seeds
        gaps = {
            m: np.mean([gap(case, method, m, T, seed) for seed in range(repeats)])
            for m in MULTIPLES
        }
        best = min(gaps, key=gaps.get)
        found |= {f"gap {method}": float(gaps[best]), f"multiple {method}": best}
    print(f"{found['data']:<36}{remedy:<36}{L:>8.2f}{tau:>9.2f}{found['constant']:>9.0f}",
          *(f"{found[f'gap {m}']:>9.3f} (x{found[f'multiple {m}']})" for m in METHODS),
          flush=True)  # fmt: skip
    return found


def collect(kinds: list[str], quick: bool = False) -> list[dict]:
    T, seeds = (50, 1) if quick else (4000, 10)
    print(f"{'data':<36}{'remedy':<36}{'L':>8}{'tau':>9}{'constant':>9}"
          f"{'exact':>14}{'partial':>14}{'full':>14}")  # fmt: skip
    rows = []
    for kind in kinds:
        problem, U = base_problem(kind)
        rows.append(row(kind, "none", Case(problem), T, seeds))
        if kind in REMEDIED:
            for name, case in remedies(problem, U).items():
                rows.append(row(kind, name, case, T, seeds))
            others = {"features rotated": rotated(problem), "entries clipped": winsorised(problem)}
            for name, other in others.items():
                rows.append(row(kind, f"{name} (another problem)", Case(other), T, seeds))
    return rows


def draw(rows: list[dict]):
    """The gap of the three methods on all data, and with the remedies on some."""
    remedied = [data for data in KINDS.values() if sum(r["data"] == data for r in rows) > 1]
    plain = [r for r in rows if r["remedy"] == "none"]
    parts = [("no remedy", "data", plain)]
    parts += [(data, "remedy", [r for r in rows if r["data"] == data]) for data in remedied]
    with styled():
        figure, axes = new_figure(2, width=5.2, height=8.0)
        figure.clear()
        axes = list(figure.subplots(3, 2).flat)
        axes[-1].set_axis_off()
        for panel, (title, what, part) in zip(axes, parts, strict=False):
            for method, colour, marker in zip(METHODS, ("black", "tab:orange", "tab:red"), "os^",
                                              strict=True):  # fmt: skip
                panel.plot([r[f"gap {method}"] for r in part], range(len(part))[::-1], marker,
                           color=colour, label=method)  # fmt: skip
            panel.set(xscale="log", xlim=(0.01, 12.0), title=title, yticks=range(len(part)),
                      yticklabels=[r[what] for r in part][::-1])  # fmt: skip
        figure.supxlabel("certified relative gap after the same number of iterations", fontsize=9)
        handles = panel.get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3)
    return figure


def tables(rows: list[dict]) -> None:
    """Both tables of docs/heavy-tails.md."""
    head = ["L", "tau", "tau / L", "constant", *METHODS, "partial / exact", "full / exact"]

    def cells(r: dict) -> list[str]:
        exact = r["gap exact"]
        return [f"{r['lipschitz']:.2f}", f"{r['tau']:.2f}", f"{r['tau'] / r['lipschitz']:.1f}",
                f"{r['constant']:.0f}", *(f"{r[f'gap {m}']:.3f}" for m in METHODS),
                f"{r['gap partial'] / exact:.1f}", f"{r['gap full'] / exact:.1f}"]  # fmt: skip

    plain = [r for r in rows if r["remedy"] == "none"]
    fill(PAGE, "tails", markdown(["data", *head], [[r["data"], *cells(r)] for r in plain]))
    for data in dict.fromkeys(r["data"] for r in rows):
        part = [r for r in rows if r["data"] == data]
        if len(part) > 1:
            fill(PAGE, data, markdown(["remedy", *head], [[r["remedy"], *cells(r)] for r in part]))


def rotation_table() -> None:
    """What a rotation of the features does to the problem that is solved."""
    rows = []
    for kind in REMEDIED:
        cells = [KINDS[kind]]
        problem, _ = base_problem(kind)
        for one in (problem, rotated(problem)):
            U, optimum = solved(one)
            cells += [f"{optimum:.3f}", f"{np.count_nonzero(U)}"]
        rows.append(cells)
    head = ["optimum", "non-zeros", "optimum, rotated", "non-zeros, rotated"]
    fill(PAGE, "rotation", markdown(["data", *head], rows))


def load() -> list[dict]:
    """The rows of an earlier run."""
    words = ("data", "remedy")
    _, rows = read_csv(RESULTS / "heavy_tails.csv")
    return [{key: r[key] if key in words else float(r[key]) for key in r} for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few iterations, writes no files")
    parser.add_argument("--draw", action="store_true", help="table and picture of the last run")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="measure only these again")
    arguments = parser.parse_args()
    if arguments.quick:
        collect(["t2.2"], quick=True)
        return
    rows = load() if arguments.draw or arguments.kinds else []
    if not arguments.draw:
        rows += collect(arguments.kinds or list(KINDS))
        rows = list({(r["data"], r["remedy"]): r for r in rows}.values())  # the later ones count
        write_csv(RESULTS / "heavy_tails.csv", rows, facts(seed=0, command="heavy_tails.py"))
    save_figure(draw(rows), RESULTS / "heavy_tails.png")
    tables(rows)
    rotation_table()


if __name__ == "__main__":
    main()
