"""What was tried to make the sublinear solver faster in practice, on the problem of Figure 1.

    python benchmarks/figure1_tricks.py [--draws 1000000] [--size 1000] [--only batch ...]

Each row is one run with the same number of draws (of an entry of U and one of V - Y), from the same
seed. Shown are the CPU seconds of the solver at the first check whose average has a ball gap of at
most 2, 1, 0.5 and 0.3, then the seconds and the gap at the end. Constant rates are those with which
the default rule begins. Variance reduction forms full gradients and makes dense steps: it gets as
many seconds as the default run took, whatever its number of draws.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time

import numpy as np
from numba import njit

from fenchel.certificate import certify
from fenchel.datasets import make_paper
from fenchel.kernels.borrowed import borrowed
from fenchel.kernels.exp import exp_bounded
from fenchel.kernels.sublinear import (
    TOTAL,
    TRUE,
    at,
    cut,
    decay,
    dual_slot,
    look_at_rows,
    options,
    primal_slot,
    scale_primal,
    upkeep,
)
from fenchel.kernels.sublinear_design import multiply_dual, multiply_primal
from fenchel.kernels.sublinear_draws import draw_class_of_row, draw_entry, draw_row, uniform
from fenchel.problem import Problem
from fenchel.sampling.base import draw
from fenchel.solvers.base import Start
from fenchel.solvers.sublinear import Sublinear
from figure1_steps import Fixed

GAPS = (2.0, 1.0, 0.5, 0.3)
plain = {name: value for name, value in options.items() if name != "cache"}


@njit(**plain)
def step_primal(data, s, lam, radius, rate, j, l, eta):
    slot = primal_slot(s, l)
    multiply_primal(data, s, slot, j, cut(rate * eta, s.tau[j]))
    scale_primal(s, l, slot, decay(rate * lam), radius)


@njit(**plain)
def step_dual(data, s, rate, i, l, xi):
    slot = dual_slot(s, l)
    c = cut(rate * xi, s.column_max[i])
    multiply_dual(data, s, slot, l, i, c, decay(rate))
    look_at_rows(s, abs(c) * s.column_max[i] + rate)
    s.scalar[TOTAL] += 1.0
    upkeep(s)


@njit(**plain)
def iterate_batches(data, s, lam, radius, rate_U, rate_V, size, batches):
    """All draws of a batch are made at the same point; the average includes the points between."""
    data, s = borrowed(data), borrowed(s)
    rows, classes, values = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for _ in range(batches):
        for m in range(size):
            rows[m], tau_rho = draw_row(s)
            classes[m], sign = draw_class_of_row(s, rows[m])
            values[m] = sign * tau_rho / s.tau[rows[m]]
        for m in range(size):
            step_primal(data, s, lam, radius, rate_U / size, rows[m], classes[m], values[m])
        for m in range(size):
            rows[m], classes[m], sign, sigma_pi = draw_entry(s)
            values[m] = sign * sigma_pi / s.sigma[rows[m]]
        for m in range(size):
            step_dual(data, s, rate_V / size, rows[m], classes[m], values[m])


@njit(**plain)
def iterate_two_columns(data, s, lam, radius, rate_U, rate_V, cumulative, draws):
    """The authors' law: j ~ tau, then l ~ V(j,:), and e_l - e_y for V(j,:) - Y(j,:)."""
    data, s = borrowed(data), borrowed(s)
    for _ in range(draws):
        j = np.searchsorted(cumulative, uniform(s.rng) * cumulative[-1], side="right")
        eta = cumulative[-1] / s.tau[j]
        if uniform(s.rng) >= s.rows[at(TRUE, j)]:
            l = s.y[j]
            while l == s.y[j]:
                l, _ = draw_class_of_row(s, j)
            step_primal(data, s, 0.5 * lam, radius, rate_U, j, l, eta)
            step_primal(data, s, 0.5 * lam, radius, rate_U, j, s.y[j], -eta)
        else:  # the two columns are one, and the estimate is 0
            step_primal(data, s, 0.5 * lam, radius, rate_U, j, s.y[j], 0.0)
            step_primal(data, s, 0.5 * lam, radius, rate_U, j, s.y[j], 0.0)
        i, l, sign, sigma_pi = draw_entry(s)
        step_dual(data, s, rate_V, i, l, sign * sigma_pi / s.sigma[i])


class Row:
    """Prints a line of the table from the gaps that it is shown."""

    def __init__(self, problem, name):
        self.problem, self.name = problem, name
        self.seconds, self.reached = 0.0, {}

    def timed(self, call, *arguments):
        begin = time.thread_time()
        call(*arguments)
        self.seconds += time.thread_time() - begin

    def show(self, U, V):
        self.gap = certify(self.problem, U, V).gap
        for gap in GAPS:
            if self.gap <= gap:
                self.reached.setdefault(gap, self.seconds)

    def end(self):
        cells = "".join(f"{self.reached.get(gap, np.nan):>8.2f}" for gap in GAPS)
        print(f"{self.name:<44}{cells}{self.seconds:>8.2f}{self.gap:>8.3f}", flush=True)
        return self.seconds


def checks_of(draws):
    return np.unique(np.geomspace(draws / 100, draws, 10).astype(int) // 64 * 64)


def sampled(problem, name, draws, rule=None, start=None, iterate=None, suffix=False):
    """A run of the sublinear solver, or of ``iterate`` on its state."""
    solver, row = Sublinear(), Row(problem, name)
    run = solver.init(problem, start, np.random.default_rng(0), draws)
    if rule is not None:
        run.step = rule
    done, marks = 0, []
    for check in checks_of(draws):
        row.timed(iterate or solver.advance, run, check - done)
        done = check
        point = solver.points(run)[0]
        U, V = point.U, point.V
        if suffix:  # from the check nearest to the middle
            marks.append((U * run.total, V * run.total, run.total, check))
            U_0, V_0, before, _ = marks[np.argmin([abs(m[3] - check / 2) for m in marks])]
            if before < run.total:
                U, V = U * run.total - U_0, np.maximum(V * run.total - V_0, 0.0)
                U, V = U / (run.total - before), V / V.sum(axis=1, keepdims=True)
        row.show(U, V)
    return row, point


@njit(**plain)
def dense_step(E, V, alpha, U_sum, V_sum, G, x, g, c, H, z, h, e, rate_U, rate_V, shrink, R, y):
    """A mirror step along G + c x g^T for U and along H + e z h^T for V, with the sums."""
    d, k = E.shape
    mass = 0.0
    for i in range(d):
        for l in range(k):
            a = E[i, l]
            U_sum[i, l] += alpha * (a - 1.0 / a)
            a *= exp_bounded(-min(max(rate_U * (G[i, l] + c * x[i] * g[l]), -30.0), 30.0))
            E[i, l] = a
            mass += a + 1.0 / a
    for j in range(V.shape[0]):
        total = 0.0
        for l in range(k):
            V_sum[j, l] += V[j, l]
            step = H[j, l] + e * z[j] * h[l] - (1.0 if l == y[j] else 0.0)
            a = V[j, l] * exp_bounded(min(max(rate_V * step, -30.0), 30.0))
            V[j, l] = max(a, 1e-290)
            total += V[j, l]
        for l in range(k):
            V[j, l] /= total
    return min(alpha * shrink, R / mass)


def variance_reduced(problem, seconds, multiple, length):
    """Full gradients at an anchor, sampled rows of the differences to it (as in Carmon et al.)."""
    row = Row(problem, f"variance reduction, step x {multiple:g}, epoch {length}")
    rng, (n, d), k, R = np.random.default_rng(0), problem.design.shape, problem.k, problem.radius
    X, y, w = problem.design.X, problem.y, problem.weights
    sigma, tau = problem.design.column_norms(w), problem.design.row_max_abs()
    log_dk, log_k = np.log(2 * d * k), np.log(k)
    gamma = multiple / (2 * sigma.max() * R * np.sqrt(log_dk * log_k))
    rate_U, rate_V = gamma * R * log_dk, gamma * log_k
    E, V, alpha = np.ones((d, k)), np.full((n, k), 1.0 / k), R / (2 * d * k)
    U_sum, V_sum, steps, shrink = (
        np.zeros((d, k)),
        np.zeros((n, k)),
        0,
        np.exp(-rate_U * problem.lam),
    )

    def epoch():
        nonlocal alpha, steps
        U_0, V_0 = alpha * (E - 1 / E), V.copy()
        residual = V_0.copy()
        residual[np.arange(n), y] -= 1.0
        G, H = X.T @ (w[:, None] * residual), X @ U_0
        for _ in range(length):
            q = w * tau * np.abs(V - V_0).max(axis=1)
            U = alpha * (E - 1 / E)
            p = sigma * np.abs(U - U_0).max(axis=1)
            j, i = draw(q, rng, 1), draw(p, rng, 1)
            x, g, c = (X[j[0]], (V - V_0)[j[0]], w[j[0]] * q.sum() / q[j[0]]) if j.size else (
                np.zeros(d), np.zeros(k), 0.0)  # fmt: skip
            z, h, e = (X[:, i[0]].copy(), (U - U_0)[i[0]], p.sum() / p[i[0]]) if i.size else (
                np.zeros(n), np.zeros(k), 0.0)  # fmt: skip
            alpha = dense_step(E, V, alpha, U_sum, V_sum, G, x, g, c, H, z, h, e, rate_U, rate_V,
                               shrink, R, y)  # fmt: skip
            steps += 1

    while row.seconds < seconds:
        row.timed(epoch)
        row.show(U_sum / steps, V_sum / steps)
    row.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=None)
    arguments = parser.parse_args()
    draws, data = arguments.draws, make_paper(arguments.size, rng=0)
    problem = Problem.from_data(
        data.X, data.y, lam=data.lam, radius=data.radius, classes=data.classes
    )
    R, lam = problem.radius, problem.lam
    begin = Sublinear().init(problem, None, np.random.default_rng(0), 10)
    Sublinear().advance(begin, 10)
    rate_U, rate_V = begin.step.rates[0] / R, begin.step.rates[1]
    cumulative = np.cumsum(problem.weights * begin.lazy.tau)

    def wanted(name):
        return arguments.only is None or name in arguments.only

    def batches(size, factor):
        def iterate(run, steps):
            rates = factor * rate_U, factor * rate_V
            iterate_batches(run.data, run.lazy, lam, R, *rates, size, steps // size)

        iterate(Sublinear().init(problem, None, np.random.default_rng(0), size), size)  # compile
        return iterate

    def two_columns(factor):
        def iterate(run, steps):
            rates = factor * rate_U, factor * rate_V
            iterate_two_columns(run.data, run.lazy, lam, R, *rates, cumulative, steps)

        iterate(Sublinear().init(problem, None, np.random.default_rng(0), 1), 1)
        return iterate

    def constant(factor):
        return Fixed(factor * rate_U, factor * rate_V, R)

    heads = "".join(f"{f'to {gap:g}':>8}" for gap in GAPS)
    print(f"{f'{draws} draws, n = d = k = {arguments.size}':<44}{heads}{'seconds':>8}{'gap':>8}")
    seconds = sampled(problem, "online, the default", draws)[0].end()
    if wanted("steps"):
        for factor in (0.25, 0.5, 1.0, 1.5, 2.0):
            name = f"constant step, x {factor:g}"
            sampled(problem, name, draws, constant(factor))[0].end()
    if wanted("suffix"):
        name = "default, average of the last half"
        sampled(problem, name, draws, suffix=True)[0].end()
    if wanted("restarts"):
        start, spent = None, 0.0
        for stage in range(3):
            name = f"restarts, stage {stage + 1} of 3, step x {0.5**stage:g}"
            row, point = sampled(problem, name, draws // 3, constant(0.5**stage), start)
            start, spent = Start(point.U, point.V), spent + row.end()
    if wanted("batch"):
        for size in (4, 16, 64):
            for power in (0.5, 1.0):
                name = f"batches of {size}, step x {size**power:g}"
                sampled(problem, name, draws, iterate=batches(size, size**power))[0].end()
    if wanted("columns"):
        for factor in (0.5, 1.0):
            name = f"the authors' two-column law, step x {factor:g}"
            sampled(problem, name, draws, iterate=two_columns(factor))[0].end()
    if wanted("variance"):
        for multiple in (1.0, 10.0, 40.0):
            variance_reduced(problem, seconds, multiple, 50)


if __name__ == "__main__":
    main()
