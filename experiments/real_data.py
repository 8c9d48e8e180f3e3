"""Time to a certified gap on real data, for every solver of the package.

    python experiments/real_data.py run [--sets news20 ...] [--solvers ...] [--limit 10] [--again]
    python experiments/real_data.py show

``run`` adds the rows that ``results/real_data.csv`` does not hold yet, or with --again measures the
chosen ones anew; ``show`` prints the tables and draws the pictures of docs/real-data.md from the
file. The data are the ``NAME.npz`` files of the folder that FENCHEL_DATA names.

Seconds are CPU seconds of one thread spent in the solver; compiling, loading and certifying are not
counted. A row ends at the relative gap 1e-4 or at the limit. Every row is measured in a process of
its own, whose largest resident memory minus what it held before is the memory of the row.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import csv
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import fenchel
from common import RESULTS, facts
from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.radius import RadiusSearch
from fenchel.solvers import l1_model
from fenchel.solvers.registry import SOLVERS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

ROWS, CURVES = RESULTS / "real_data.csv", RESULTS / "real_data_curves.csv"

SETS = ("dna", "letter", "usps", "isolet1560", "nci60", "banking77", "clinc150", "news20",
        "debian_section")  # fmt: skip
#: One pass over the data is dear: the hinge loss at one fraction only, of softmax's lambda_max,
#: which has a closed form. The synthetic ones are the problem of the paper's experiments.
SYNTHETIC = {
    "n=d=k=1600": (1600, 1600, 1600),
    "n=200 d=20000 k=2000": (200, 20_000, 2_000),
    "n=d=k=6400": (6400, 6400, 6400),
}
LARGE = ("wordnet_hyper", *SYNTHETIC)
FRACTIONS = (0.3, 0.1, 0.03)
MIDDLE = 0.1
GAPS = (1e-1, 1e-2, 1e-3, 1e-4)
FIRST_ORDER = ("mirror-prox", "mirror-descent", "partial-sampling", "full-sampling", "subgradient")

#: The CPU second of the first certificate, and the factor from one to the next.
CHECKS, LARGE_CHECKS = (0.02, 1.25), (2.5, 2.0)

#: A run may add this much memory at the most.
MEMORY_LIMIT = 8 << 30


def plan(name: str) -> list[tuple[str, str, float]]:
    """(loss, solver, fraction of lambda_max) of every row of a set.

    For the hinge loss "sublinear" stands for full sampling: it makes the same iterations.
    """
    hinge = [solver.replace("full-sampling", "sublinear") for solver in FIRST_ORDER]
    if name in LARGE:
        return [("hinge", solver, MIDDLE) for solver in [*hinge, "primal-dual"]]
    rows = [("hinge", solver, f) for f in FRACTIONS for solver in hinge]
    rows += [("softmax", solver, MIDDLE) for solver in FIRST_ORDER]
    rows += [("hinge", "mirror-prox, radius search", FRACTIONS[-1])]
    losses = ("hinge", "softmax", "sparsemax")
    return rows + [(loss, "primal-dual", f) for loss in losses for f in FRACTIONS]


def get_data(name: str) -> tuple:
    """X, y, X_test, y_test and k; without a test part, a fifth of the rows with a fixed seed."""
    if name in SYNTHETIC:
        n, d, k = SYNTHETIC[name]
        data = make_paper(n + 500, d, k, rng=0)
        return data.X[:n], data.y[:n], data.X[n:], data.y[n:], k
    found = load(name)
    X, y, k = found["X"], found["y"], len(found["classes"])
    if "X_test" in found:
        return X, y, found["X_test"], found["y_test"], k
    rng = np.random.default_rng(0)
    test = np.zeros(y.size, dtype=bool)
    for label in range(k):  # the same share of every class
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: rows.size // 5]] = True
    return X[~test], y[~test], X[test], y[test], k


def make_solver(name: str):
    base, _, search = name.partition(", ")
    solver = SOLVERS[base]()
    return RadiusSearch(solver) if search else solver


def measure(
    problem: Problem, solver_name: str, limit: float, checks: tuple, X_test, y_test
) -> tuple[dict, list]:
    """Run a solver until the relative gap 1e-4 or the limit; the row and its curve.

    Certificates are not on the clock. primal-dual is read where the driver would read it: its
    iterations are long, and of any length.
    """
    before = resident()
    solver, own_checks = make_solver(solver_name), solver_name == "primal-dual"
    clock = time.process_time
    began = clock()
    state = solver.init(problem, None, np.random.default_rng(0), solver.default_max_iter)
    seconds = clock() - began
    upper, lower, U = problem.at_zero, 0.0, sp.csr_array((problem.d, problem.k))
    curve, iteration, steps, check = [(0.0, 0, upper, lower)], 0, 1, checks[0]
    while True:
        due = iteration + solver.iterations_to_check(problem, state) if own_checks else 0
        while iteration < due if own_checks else seconds < check or iteration == curve[-1][1]:
            began = clock()
            solver.advance(state, steps)
            spent = clock() - began
            seconds += spent
            iteration += steps
            if not own_checks:
                pace = max(spent, 1e-6) / steps
                steps = max(1, min(2 * steps, int((check - seconds) / pace)))
        point = solver.points(state)[0]
        certificate = certify(problem, point.U, point.V)
        if certificate.primal < upper:
            upper, U = certificate.primal, certificate.U
        lower = max(lower, certificate.dual)
        curve.append((seconds, iteration, upper, lower))
        gap = (upper - lower) / problem.at_zero
        if gap <= GAPS[-1] or seconds >= limit or not np.isfinite(certificate.primal):
            break
        check = min(max(check, seconds) * checks[1], limit)
        if not own_checks:
            steps = max(1, min(steps, int((check - seconds) / (seconds / iteration))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    values = abs(U).tocoo().data if sp.issparse(U) else np.abs(U[U != 0])
    row = {
        "seconds": f"{seconds:.3f}",
        "iterations": iteration,
        "passes": f"{iteration * solver.passes(problem):.4g}",
        "primal": f"{upper:.8g}",
        "dual": f"{lower:.8g}",
        "gap": f"{gap:.3e}",
    }
    for target in GAPS:
        reached = [s for s, _, p, q in curve if (p - q) / problem.at_zero <= target]
        row[f"to {target:g}"] = f"{reached[0]:.3f}" if reached else ""
    scores = X_test @ U
    scores = scores.toarray() if sp.issparse(scores) else scores
    row |= {
        "non-zeros": values.size,
        "above 1e-3 of the largest": int((values > 1e-3 * values.max(initial=0.0)).sum()),
        "test accuracy": f"{np.mean(scores.argmax(axis=1) == y_test):.4f}",
        "memory MB": f"{max(0, peak - before) / 1e6:.1f}",
    }
    return row, curve


def resident() -> int:
    """Bytes of resident memory, after the high-water mark was set back to them."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def in_a_fork(problem: Problem, *arguments) -> tuple[dict, list]:
    """``measure`` in a process of its own, with a limit on its memory."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def work():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_LIMIT, used + MEMORY_LIMIT))
        try:
            send.send(measure(problem, *arguments))
        except MemoryError:
            send.send(({"memory MB": f"more than {MEMORY_LIMIT / 1e6:.0f}"}, []))

    process = context.Process(target=work)
    process.start()
    send.close()
    answer = receive.recv()
    process.join()
    return answer


def compile_kernels(sparse: bool) -> None:
    """Every solver once on a small problem, so that no row pays for compiling."""
    data = make_paper(30, 12, 4, rng=0)
    X = sp.csr_array(data.X) if sparse else data.X
    for loss in ("hinge", "softmax", "sparsemax"):
        for solver in (*FIRST_ORDER, "sublinear", "primal-dual", "proximal-newton"):
            if solver != "sublinear" or loss == "hinge":
                steps = 500 if solver == "primal-dual" else 20  # as far as its last part
                options = {"lam": 0.02, "max_iter": steps, "tol": 1e-6, "rng": 0}
                fenchel.solve(X, data.y, loss=loss, solver=solver, **options)
                if solver == "proximal-newton":  # and as where the Hessian is too large to form
                    with patch.multiple(l1_model, DENSE_SIZE=0, BLAS_SIZE=0):
                        fenchel.solve(X, data.y, loss=loss, solver=solver, **options)


def run_set(name: str, solvers: list[str] | None, fractions: list[float], limit: float) -> None:
    rows = read(ROWS)
    done = {(r["loss"], r["solver"], float(r["fraction"])) for r in rows if r["set"] == name}
    wanted = [
        r
        for r in plan(name)
        if r not in done and r[2] in fractions and (not solvers or r[1] in solvers)
    ]
    if not wanted:
        return
    X, y, X_test, y_test, k = get_data(name)
    compile_kernels(sp.issparse(X))
    largest = {r["loss"]: float(r["lambda_max"]) for r in rows if r["set"] == name}
    for loss, solver, fraction in wanted:
        if loss not in largest:
            known = "softmax" if name in LARGE else loss
            largest[loss] = fenchel.lambda_max(X, y, loss=known, classes=np.arange(k))
        lam = fraction * largest[loss]
        problem = Problem.from_data(X, y, loss=loss, lam=lam, classes=np.arange(k))
        problem.at_zero  # noqa: B018  (cached before the fork)
        row, curve = in_a_fork(
            problem, solver, limit, LARGE_CHECKS if name in LARGE else CHECKS, X_test, y_test
        )
        key = {"set": name, "loss": loss, "solver": solver, "fraction": fraction}
        size = {"n": problem.n, "d": problem.d, "k": k, "lambda_max": f"{largest[loss]:.8g}"}
        append(ROWS, key | size | {"limit": limit} | row)
        for seconds, iteration, primal, dual in curve:
            append(CURVES, key | {"seconds": f"{seconds:.4g}", "iteration": iteration,
                                  "primal": f"{primal:.8g}", "dual": f"{dual:.8g}"})  # fmt: skip
        print(*key.values(), *row.values(), sep="  ", flush=True)


FIELDS = {
    ROWS: ["set", "loss", "solver", "fraction", "n", "d", "k", "lambda_max", "limit", "seconds",
           "iterations", "passes", "primal", "dual", "gap", *(f"to {g:g}" for g in GAPS),
           "non-zeros", "above 1e-3 of the largest", "test accuracy", "memory MB"],
    CURVES: ["set", "loss", "solver", "fraction", "seconds", "iteration", "primal", "dual"],
}  # fmt: skip


def read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def append(path: Path, row: dict) -> None:
    """One line in one write, so that several sets may be measured at the same time."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS[path], lineterminator="\n")
        if new:
            for key, value in facts(seed=0, command="real_data.py run").items():
                file.write(f"# {key}: {value}\n")
            writer.writeheader()
        writer.writerow(row)


def forget(sets: list[str], solvers: list[str] | None, fractions: list[float]) -> None:
    """Remove rows and their curves, to be measured again."""
    for path in (ROWS, CURVES):
        rows = read(path)
        path.unlink(missing_ok=True)
        for row in rows:
            chosen = row["set"] in sets and float(row["fraction"]) in fractions
            if not (chosen and (not solvers or row["solver"] in solvers)):
                append(path, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("--sets", nargs="+", default=[*SETS, *LARGE])
    parser.add_argument("--solvers", nargs="+", help="only these, by their names in the package")
    parser.add_argument("--again", action="store_true", help="measure rows anew that are there")
    parser.add_argument("--fractions", nargs="+", type=float, default=FRACTIONS)
    parser.add_argument("--limit", type=float, default=10.0, help="CPU seconds of a row")
    arguments = parser.parse_args()
    if arguments.command == "show":
        from real_data_pictures import show

        show()
        return
    if arguments.again:
        forget(arguments.sets, arguments.solvers, arguments.fractions)
    for name in arguments.sets:
        run_set(name, arguments.solvers, arguments.fractions, arguments.limit)


if __name__ == "__main__":
    main()
