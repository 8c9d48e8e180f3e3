"""Step rules, and what was tried besides, on the problem of Figure 1.

    python benchmarks/figure1_steps.py [--problem figure1] [--iterations 1000000]
                                       [--rules theory authors online ...]

Figure 1 has n = d = k = 1000, lam = 1e-3, R = n/2, as in the authors' program; "digits" and "heavy"
(Student's t with 2.2 degrees of freedom) are two other problems. The sublinear solver runs with the
theory step, with the constants of the authors' program, and with the default; each row is certified
for the ball. The rules "multiples", "suffix", "decreasing" and "restarts" are what was tried and
not kept. Seconds are the solver's own.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.problem import Problem
from fenchel.solvers.base import Start
from fenchel.solvers.sublinear import Sublinear, theory_step
from fenchel.steps import OnlineStep


class Fixed(OnlineStep):
    """Rates (exponents per unit of eta and xi) given by hand, or as functions of t."""

    def __init__(self, rate_U, rate_V, radius):
        super().__init__(1.0, 1.0)
        self.given, self.radius, self.scales = (rate_U, rate_V), radius, (1.0, 1.0)

    def measure(self, moments):
        self.epoch_end = max(1024, int(1.25 * self.epoch_end))

    @property
    def rates(self):
        t = max(1, self.epoch_end)
        rate_U, rate_V = (g(t) if callable(g) else g for g in self.given)
        return rate_U * self.radius, rate_V


def make_problem(name):
    if name == "figure1":
        data = make_paper(1000, rng=0)
        return Problem.from_data(
            data.X, data.y, lam=data.lam, radius=data.radius, classes=data.classes
        )
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return Problem.from_data(X / 16, y, lam=1e-3, radius=60.0)
    rng = np.random.default_rng(0)
    X = rng.standard_t(2.2, size=(400, 300))
    y = (X[:, :20] + rng.standard_normal((400, 20)) / 3).argmax(axis=1)
    return Problem.from_data(X, y, lam=1e-2, radius=20.0, classes=range(20))


def sums(solver, run):
    """Sums of the iterates so far."""
    point = solver.points(run)[0]
    return point.U * run.total, point.V * run.total, run.total


def row(problem, name, iterations, seconds, U, V):
    certificate = certify(problem, U, V)
    whole = certify(problem.with_radius(None), U, V)
    print(
        f"{name:<34} {iterations:>9} {seconds:>8.2f} {certificate.primal:>8.4f} "
        f"{certificate.dual:>8.4f} {certificate.gap:>8.4f} {whole.gap:>10.4f}",
        flush=True,
    )


def curve(problem, name, checks, make_rule=None, step=None, suffix=False, start=None, seed=0):
    """Run the sublinear solver and certify the average at the given iterations."""
    solver = Sublinear(step=step)
    run = solver.init(problem, start, np.random.default_rng(seed), checks[-1])
    if make_rule is not None:
        run.step = make_rule
    solver.advance(run, 0)
    done, seconds, marks = 0, 0.0, []
    for check in checks:
        begin = time.perf_counter()
        solver.advance(run, check - done)
        seconds += time.perf_counter() - begin
        done = check
        point = solver.points(run)[0]
        if not suffix or check == checks[-1]:
            row(problem, name, check, seconds, point.U, point.V)
        if suffix:
            marks.append(sums(solver, run))
    if suffix:
        U, V, total = marks[-1]
        for check, (U_0, V_0, before) in zip(checks[:-1], marks[:-1], strict=True):
            later = total - before
            V_later = np.maximum(V - V_0, 0.0) / later
            row(problem, f"  the same, averaged from {check}", done, seconds, (U - U_0) / later,
                V_later)  # fmt: skip
    return point


def restarts(problem, name, iterations, rates, seed=0):
    """Three runs, each from the average of the one before, with a quarter of the rates."""
    start = None
    for stage in range(3):
        shrink = 0.25**stage
        rule = Fixed(rates[0] * shrink, rates[1] * shrink, problem.radius)
        point = curve(problem, f"{name}, stage {stage + 1}", [iterations // 3], rule, start=start,
                      seed=seed + stage)  # fmt: skip
        start = Start(point.U, point.V)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problem", choices=["figure1", "digits", "heavy"], default="figure1")
    parser.add_argument("--iterations", type=int, default=10**6)
    parser.add_argument("--rules", nargs="+", default=["theory", "authors", "online"])
    arguments = parser.parse_args()
    T, problem = arguments.iterations, make_problem(arguments.problem)
    R, n = problem.radius, problem.n
    begin = Sublinear(step=1.0).init(problem, None, np.random.default_rng(0), 1)
    theory = theory_step(begin.lazy, problem.weights, R, T)
    L, log_k = np.log(2 * problem.d * problem.k), np.log(problem.k)
    # their program: 2 / (sqrt T (Lip + sqrt Theta)), no logarithms in Lip and Theta, and the sum of
    # the tau_j where eq:variance-bounds-partial has its square divided by n
    sigma, tau = float(begin.lazy.sigma.max()), float(problem.weights @ begin.lazy.tau)
    theta = 2 * R**2 * (6 * sigma**2 / n + 2 * tau)
    authors = 2.0 / (np.sqrt(T) * (R * sigma + np.sqrt(theta)))
    checks = [int(c) for c in np.unique(np.geomspace(T / 1000, T, 7).astype(int))]
    curve(problem, "(compiling)", [10])
    print(f"{'rule':<34} {'T':>9} {'seconds':>8} {'primal':>8} {'dual':>8} {'gap':>8} "
          f"{'penalised':>10}")  # fmt: skip
    if "theory" in arguments.rules:
        curve(problem, "theory", checks, step="theory")
    if "authors" in arguments.rules:
        curve(problem, "authors' constants", checks, step=authors)
    if "online" in arguments.rules:
        curve(problem, "online (default)", checks)
    rate_U, rate_V = 2 * theory * L * R, 2 * theory * log_k
    if "multiples" in arguments.rules:
        for multiple in (20, 80, 160, 320):
            for balance in (1.0, 0.5, 0.25):
                rule = Fixed(multiple * balance * rate_U, multiple / balance * rate_V, R)
                curve(problem, f"theory x {multiple}, U:V x {balance}^2", [T], rule)
    good = 240 * 0.5 * rate_U, 240 / 0.5 * rate_V
    if "suffix" in arguments.rules:
        quarters = [T // 10, T // 4, T // 2, T]
        name = "theory x 240, U:V x 0.5^2"
        curve(problem, name, quarters, Fixed(*good, R), suffix=True)
    if "decreasing" in arguments.rules:
        # as long as 4 times the constant step at first, equal to it at T
        falling = [lambda t, r=rate: r * min(4.0, (T / t) ** 0.5) for rate in good]
        curve(problem, "the same / sqrt(t / T), plain mean", [T], Fixed(*falling, R))
    if "restarts" in arguments.rules:
        restarts(problem, "the same, restarted", T, good)


if __name__ == "__main__":
    main()
