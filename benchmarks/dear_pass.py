"""Where one pass over the data is dear: which solver has the better point after a few seconds.

    python benchmarks/dear_pass.py [--cases equal imbalanced ...] [--seconds 5 15]

Hinge loss on dense data with entries in [-1, 1]: noise, but for a few features of every class,
which its samples have large. ``zipf`` is the exponent of the shares of the classes (0: all are
equal, 2: a few hold nearly all samples), ``lam`` is a part of the largest entry of G_U at U = 0,
above which the solution is zero. A pass is one product X @ U; its seconds are taken from a slice.
How many iterations the sublinear solver needs is decided by the l1 norm of the solution: with few
large classes it is small, however large the data are.

The sublinear solver is shown in the ball of radius P(0) / lam, which is what it has without further
knowledge, and in that of the norm of the best point found here, with the dual value of that ball.
Objective and dual value are those of the point of the moment. Its certificate is off the clock, and
takes the seconds of ``check``; seconds are CPU, of the first reading after the time asked for: an
iteration that began before is finished. The lines "with max_time" are ``fenchel.solve`` itself,
certificates and all, the last of them in the ball of that norm. With ``--plain`` no product makes
use of what most classes share (fenchel.common_part), and the primal-dual solver alone is shown.

    python benchmarks/dear_pass.py --within [--cases ...] [--seconds 2 5 15]

prints what is there when a time limit is over: the primal-dual solver without the means of the
classes (fenchel.class_means), the same with them, and "auto", which goes on with the sublinear
solver where the first pass of that one takes half of the time. The limits count CPU seconds, so
that other work on the machine does not matter.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass

import numpy as np

import fenchel
from fenchel import class_means, common_part, driver, time_limit
from fenchel.certificate import certify
from fenchel.problem import Problem
from fenchel.solvers.registry import SOLVERS
from fenchel.solving import solve_problem

#: Samples of the slice from which the seconds of a pass follow.
SLICE = 500

#: Iterations of the sublinear solver between two looks at the clock.
STEPS = 1000


@dataclass(frozen=True)
class Case:
    n: int
    d: int
    k: int
    zipf: float
    part: float = 0.3  # of the largest penalty
    own: int = 20  # features of a class
    strength: float = 1.0  # 1: they are 1 in its samples, 0: they are noise as the others


CASES = {
    "imbalanced": Case(10_000, 10_000, 1000, zipf=1.0),
    "equal": Case(10_000, 10_000, 1000, zipf=0.0),
    "few-large": Case(10_000, 10_000, 1000, zipf=2.0),
    "weak-signal": Case(10_000, 10_000, 1000, zipf=2.0, strength=0.3),
    "small-penalty": Case(10_000, 10_000, 1000, zipf=1.0, part=0.05),
    "wide": Case(2000, 50_000, 1000, zipf=1.0),
    "tall": Case(50_000, 2000, 1000, zipf=1.0),
    "many-classes": Case(4000, 4000, 10_000, zipf=1.0),
    "largest": Case(20_000, 20_000, 1000, zipf=1.0),
    "cube": Case(4000, 4000, 4000, zipf=2.0),
    "unused-classes": Case(4000, 20_000, 20_000, zipf=2.0),
    "weak-unused": Case(20_000, 2000, 5000, zipf=2.0, strength=0.3),
}


def make(case: Case) -> Problem:
    """The problem of a case."""
    rng = np.random.default_rng(0)
    share = np.arange(1, case.k + 1.0) ** -case.zipf
    y = rng.choice(case.k, case.n, p=share / share.sum())
    own = rng.integers(0, case.d, (case.k, case.own))
    X = np.empty((case.n, case.d))
    for i in range(case.n):
        X[i] = 2.0 * rng.random(case.d) - 1.0
        X[i, own[y[i]]] += case.strength * (1.0 - X[i, own[y[i]]])
    problem = Problem.from_data(X, y, lam=1.0, classes=np.arange(case.k))
    return problem.with_penalty(case.part * largest_penalty(problem))


def largest_penalty(problem: Problem) -> float:
    """The largest entry of G_U at zero, where the wrong classes share the mass."""
    V = np.full((problem.n, problem.k), 1.0 / (problem.k - 1))
    V[np.arange(problem.n), problem.y] = 0.0
    return float(problem.gradient_row_norms(V).max())


def pass_seconds(problem: Problem) -> float:
    U = np.ones((problem.d, problem.k))
    begin = time.process_time()
    problem.design.rows(0, SLICE).matmul(U)
    return (time.process_time() - begin) * problem.n / SLICE


def compile_all() -> None:
    """Let no run pay for compiling."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 40)), np.arange(60) % 5
    for name in ("primal-dual", "proximal-newton", "sublinear"):  # the first may need no Newton
        fenchel.solve(X, y, lam=0.02, solver=name, max_iter=30, rng=0)
    limit, common_part.DEAR = common_part.DEAR, 0
    for zipf in (0.0, 1.0, 2.0):
        small = make(Case(600, 300, 60, zipf=zipf))
        for name in ("auto", "proximal-newton"):
            solve_problem(small, solver=name, max_iter=12)
    common_part.DEAR = limit


def follow(problem: Problem, name: str, seconds: list[float], radius: float | None = None) -> float:
    """Print the points of a solver after so many seconds; the norm of the best of them."""
    solver = SOLVERS[name]()
    label = name if radius is None else f"{name}, R = {radius:.3g}"
    lowest, highest, norm, iteration = np.inf, -np.inf, 0.0, 0
    begin = time.process_time()
    state = solver.init(problem.with_radius(radius), None, np.random.default_rng(0), 1_000_000)
    spent = time.process_time() - begin
    for limit in seconds:
        while spent < limit:
            begin = time.process_time()
            steps = STEPS if name == "sublinear" else 1
            solver.advance(state, steps)
            spent += time.process_time() - begin
            iteration += steps
        point = solver.points(state)[0]
        clock = time.process_time()
        found = certify(problem.with_radius(radius), point.U, point.V)
        check = time.process_time() - clock
        if found.primal < lowest:
            lowest, norm = found.primal, float(abs(found.U).sum())
        highest = max(highest, found.dual)
        gap = min(lowest, problem.at_zero) - highest
        print(f"  {label:<24} {spent:>7.1f} {iteration:>9} {found.primal:>9.4f} {found.dual:>8.4f} "
              f"{gap:>8.4f} {check:>6.1f}", flush=True)  # fmt: skip
    return norm


def whole_runs(problem: Problem, seconds: list[float], where: str = "") -> None:
    """Print what a user has who gives a time limit, and what the limit was overrun by."""
    for name in ("auto", "sublinear"):
        for limit in seconds:
            begin = time.process_time()
            result = solve_problem(problem, solver=name, max_time=limit, tol=1e-3, rng=0)
            spent = time.process_time() - begin
            note = "; ".join(record.note for record in result.history if record.note)
            gaps = ", ".join(f"{r.best_gap:.2g} at {r.wall:.1f}" for r in result.history)
            print(f"  {name}{where} with max_time={limit:g}: {spent:.1f} s, "
                  f"objective {result.primal:.4f}, gap {result.gap:.4f}. "
                  f"Gaps at seconds of the wall: {gaps}. {note}", flush=True)  # fmt: skip


class CpuClock:
    """What ``time`` is to the library where a limit is to count CPU seconds."""

    perf_counter = staticmethod(time.process_time)


def within(name: str, problem: Problem, seconds: list[float]) -> None:
    """Print what is there when a limit is over, as rows of a table."""
    driver.time = time_limit.time = CpuClock
    fewer = class_means.FEWER
    for limit in seconds:
        cells = [name, f"{limit:g}"]
        for solver, means in (("primal-dual", np.inf), ("primal-dual", fewer), ("auto", fewer)):
            class_means.FEWER = means
            fresh = problem.with_radius(None)  # knows nothing of an earlier run
            begin = time.process_time()
            result = solve_problem(fresh, solver=solver, max_time=limit, tol=1e-3, rng=0)
            spent = time.process_time() - begin
            who = " (sublinear)" if result.solver == "sublinear" else ""
            cells.append(f"{result.primal:.4f}, {result.gap:.4f}, {spent:.1f}{who}")
            del result
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seconds", nargs="+", type=float, default=[5.0, 15.0])
    parser.add_argument("--within", action="store_true", help="what is there at a time limit")
    parser.add_argument("--plain", action="store_true", help="only what products as a whole cost")
    arguments = parser.parse_args()
    if arguments.plain:
        common_part.DEAR = np.inf
    compile_all()
    if arguments.within:
        print("objective, certified gap, CPU seconds of the call")
        print("| case | `max_time` | `primal-dual` without the means | `primal-dual` | `auto` |")
        print("|---|---|---|---|---|")
        for name in arguments.cases:
            within(name, make(CASES[name]), arguments.seconds)
        return
    for name in arguments.cases:
        case, problem = CASES[name], make(CASES[name])
        begin = time.process_time()
        start = solve_problem(problem, max_iter=1, tol=1e9)
        first = time.process_time() - begin
        print(f"{name}: n={case.n} d={case.d} k={case.k} zipf={case.zipf:g} lam={problem.lam:.3g} "
              f"P(0)/lam={1 / problem.lam:.3g}")  # fmt: skip
        print(f"  one pass {pass_seconds(problem):.1f} s, first certificate {first:.1f} s with gap "
              f"{start.gap:.2f}")  # fmt: skip
        print(f"  {'solver':<24} {'seconds':>7} {'iteration':>9} {'objective':>9} {'dual':>8} "
              f"{'best gap':>8} {'check':>6}", flush=True)  # fmt: skip
        norm = follow(problem, "primal-dual", arguments.seconds)
        if arguments.plain:
            continue
        follow(problem, "sublinear", arguments.seconds)
        follow(problem, "sublinear", arguments.seconds, radius=norm or None)
        whole_runs(problem, arguments.seconds)
        if norm:
            ball = f" in the ball of {norm:.3g}"
            whole_runs(problem.with_radius(norm), arguments.seconds[:1], ball)
        del problem


if __name__ == "__main__":
    main()
