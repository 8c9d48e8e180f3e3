"""Every bound of the paper beside what is measured, on three kinds of data.

    python experiments/theory.py [--quick]

Prints a table, writes results/theory.csv and results/theory.png (not with --quick), and ends with
an error where a measurement exceeds its bound. The bounds are the package's own: what is tested
here is that they hold. "Gaussian" is N(0,1), "bounded" uniform on [-1,1], and "heavy" Student's t
with 2.2 degrees of freedom.

Everything is in the scale of ``fenchel.problem``: means instead of sums over the samples, so that
Omega_V is log k and the Lipschitz constant the largest root mean square of a feature.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from common import RESULTS, facts, new_figure, save_figure, styled, write_csv
from fenchel.certificate import certify
from fenchel.geometry.norms import MixedNorm
from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem
from fenchel.sampling import SAMPLERS, Sampler
from fenchel.solvers.mirror_descent import MirrorDescent, joint_scale
from fenchel.solvers.stochastic import PlainIterates
from fenchel.steps.theory import stochastic_bound, stochastic_step
from page import fill, markdown

KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "bounded": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
    "heavy": lambda rng, shape: rng.standard_t(2.2, shape),
}
GEOMETRIES = [("1x1", "2x1"), ("1x1", "2x2"), ("1x2", "2x1"), ("1x2", "2x2")]
N, D, K, RADIUS, LAM = 40, 30, 5, 3.0, 0.01

#: A measurement may exceed its bound by rounding.
ROUNDING = 1e-9


def make_problem(kind: str, loss: str = "hinge", penalty: str = "l1", k: int = K) -> Problem:
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng, (N, D))
    y = (X[:, :k] + 0.3 * rng.standard_normal((N, k))).argmax(axis=1)
    return Problem.from_data(
        X, y, loss=loss, lam=LAM, radius=RADIUS, classes=range(k), penalty=penalty
    )


def points(problem: Problem, primal, count: int = 20) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points of U's geometry and of V: corners, and random points from sparse to dense."""
    rng = np.random.default_rng(1)
    shape = primal.center().shape
    n, k = problem.n, problem.k
    largest = int(problem.design.column_norms(problem.weights).argmax())
    corner = np.zeros(shape)
    corner[largest, 0] = problem.radius
    yield corner, np.eye(k)[(problem.y + 1) % k]  # all mass on one wrong class
    for density in np.linspace(0.05, 1.0, count):
        u = rng.standard_exponential(shape) * (rng.random(shape) < density)
        u[0, 0] += 1e-3
        if primal.name != "1x1":
            u *= rng.choice([-1.0, 1.0], shape)
        concentration = np.full(k, 10.0 ** rng.uniform(-2, 1))
        V = np.maximum(rng.dirichlet(concentration, size=n), 1e-12)
        yield u * (problem.radius / primal.norm(u)), V / V.sum(axis=1, keepdims=True)


def omegas(kind: str) -> Iterator[dict]:
    """The potential differences of the appendix's table, and that the potentials fit the norms."""
    for primal_name, dual_name in GEOMETRIES:
        problem = make_problem(kind, penalty="group" if primal_name == "1x2" else "l1")
        primal, dual = make_geometries(problem, RADIUS, primal_name, dual_name)
        both = list(points(problem, primal))
        # the table's Omegas; 1x1 is doubled, hence 2dk, and 1x2 holds up to the constant e
        table = {
            "1x1": RADIUS**2 * np.log(2 * D * K),
            "1x2": np.e * RADIUS**2 * np.log(D),
            "2x1": np.log(K),
            "2x2": 1.0,
        }
        for side, geometry in enumerate((primal, dual)):
            if side == 1 and primal_name == "1x2":
                continue  # V has the same two geometries again
            if side == 0 and dual_name == "2x2":
                continue
            label = f"Omega, {geometry.name}"
            potentials = [geometry.potential(pair[side]) for pair in both]
            centre = geometry.potential(geometry.center())
            yield row(label, kind, "max potential - potential at the centre",
                      max(potentials) - centre, geometry.omega)  # fmt: skip
            yield row(label, kind, "the package's Omega, against the table's", geometry.omega,
                      table[geometry.name])  # fmt: skip
            yield row(label, kind, "potential at the centre - min potential",
                      max(0.0, centre - min(potentials)), 0.0)  # fmt: skip
            # 1-strongly convex, ||x - x0||^2 / 2 <= D(x, x0), with x0 inside as the iterates are
            inside = [0.99 * pair[side] + 0.01 * geometry.center() for pair in both]
            ratios = [
                0.5 * geometry.norm(pair[side] - x0) ** 2 / geometry.bregman(pair[side], x0)
                for pair in both[:6]
                for x0 in inside
            ]
            yield row(label, kind, "||x - x0||^2 / 2 D(x, x0)", max(ratios), 1.0)


def lipschitz(kind: str) -> Iterator[dict]:
    """th:lip and th:lip-general: ||X U|| / ||U||, and the same number from the paper's formula."""
    for primal_name, dual_name in GEOMETRIES:
        problem = make_problem(kind, penalty="group" if primal_name == "1x2" else "l1")
        primal, dual = make_geometries(problem, RADIUS, primal_name, dual_name)
        L = primal.lipschitz(problem)
        sizes = [
            dual.dual_norm(problem.design.matmul(primal.coef(u))) / primal.norm(u)
            for u, _ in points(problem, primal)
        ]
        label = f"th:lip, {primal_name} and {dual_name}"
        yield row(label, kind, "max ||XU|| / ||U||", max(sizes), L, equal=True)
        printed = MixedNorm(np.inf, 2)(problem.design.X.T) / np.sqrt(N)
        yield row(label, kind, "||X^T||_{inf x 2} / sqrt n", printed, L, equal=True)


def moments(sampler: Sampler, u: np.ndarray, V: np.ndarray, laws=None) -> tuple[float, ...]:
    """E||xi||^2, E||eta||^2 and the same of xi - XU, eta - G: exact, over all outcomes."""
    problem, primal, dual = sampler.problem, sampler.primal, sampler.dual
    p, q = laws or (sampler.primal_law(u), sampler.dual_law(V))
    XU, G = problem.design.matmul(primal.coef(u)), problem.gradient(V)
    norm_V, norm_U = dual.dual_norm, primal.norm_type.dual
    totals = np.zeros(4)
    for law, outcome, at, exact, norm, first in (
        (p, sampler.primal_outcome, u, XU, norm_V, 0),
        (q, sampler.dual_outcome, V, G, norm_U, 1),
    ):
        for i in np.flatnonzero(law):
            estimate = outcome(at, i, law.flat[i]).matrix()
            totals[first] += law.flat[i] * norm(estimate) ** 2
            totals[first + 2] += law.flat[i] * norm(estimate - exact) ** 2
    return tuple(totals)


def variances(kind: str, scheme: str, count: int) -> Iterator[dict]:
    """th:variance-partial and th:variance-full: the proxies, and that the laws are the best."""
    label = f"th:variance-{scheme}"
    problem = make_problem(kind)
    primal, dual = make_geometries(problem, RADIUS)
    sampler = SAMPLERS[scheme](problem, primal, dual)
    measured = [moments(sampler, u, V) for u, V in points(problem, primal, count)]
    sigma_U, sigma_V = sampler.variance_bounds()
    yield row(label, kind, "sigma_U^2", max(m[2] for m in measured), sigma_U)
    yield row(label, kind, "sigma_V^2", max(m[3] for m in measured), sigma_V)
    rng = np.random.default_rng(2)
    u, V = list(points(problem, primal, 3))[-1]
    best = moments(sampler, u, V)
    p, q = sampler.primal_law(u), sampler.dual_law(V)
    others = [
        moments(sampler, u, V, [law / law.sum() for law in pair])
        for pair in (
            ((p > 0) * 1.0, (q > 0) * 1.0),
            (p**0.9, q**0.9),
            *((p * rng.uniform(0.9, 1.1, p.shape), q * rng.uniform(0.9, 1.1, q.shape))
              for _ in range(3)),
        )
    ]  # fmt: skip
    for side, name in enumerate(("xi", "eta")):
        yield row(label, kind, f"E||{name}||^2 by the optimal law, against the best of others",
                  best[side], min(m[side] for m in others))  # fmt: skip


def deterministic(kind: str, horizons: tuple[int, ...]) -> Iterator[dict]:
    """th:md-deterministic: the gap of the average of T iterates with the theory step."""
    for loss in ("hinge", "softmax", "sparsemax"):
        problem = make_problem(kind, loss)
        geometries = make_geometries(problem, RADIUS)
        for T in horizons:
            solver = MirrorDescent(step="theory")
            state = solver.init(problem, None, np.random.default_rng(0), T)
            solver.advance(state, T)
            point = solver.points(state)[0]
            bound = 2 * np.sqrt(5 / T) * joint_scale(problem, *geometries)
            bound += problem.loss.remainder(K) / T
            gap = certify(problem, point.U, point.V).gap
            yield row("th:md-deterministic", kind, f"gap, {loss}, T = {T}", gap, bound)


class Simultaneous(PlainIterates):
    """(SMD) as the theorem has it: both estimates at the same (U, V).

    alg:main, and the solvers of the package, draw xi at the new U; no theorem speaks of that.
    """

    def step(self, rate_U: float, rate_V: float, weight: float) -> None:
        primal, dual = self.sampler.primal, self.sampler.dual
        self.U_sum += weight * primal.coef(self.u)
        self.V_sum += weight * self.V
        eta = self.sampler.draw_dual(self.V, self.rng, self.batch)
        xi = self.sampler.draw_primal(self.u, self.rng, self.batch)
        self.u = primal.step(self.u, eta.matrix(), rate_U)
        self.V = dual.step(self.problem.loss, self.V, xi.matrix(), rate_V, self.problem.y)


def stochastic(
    kind: str, scheme: str, horizons: tuple[int, ...], repetitions: int
) -> Iterator[dict]:
    """th:md-partial and th:md-full: the mean gap over repetitions, with the theory step."""
    label = f"th:md-{scheme}"
    problem = make_problem(kind)
    primal, dual = make_geometries(problem, RADIUS)
    sampler = SAMPLERS[scheme](problem, primal, dual)
    constants = (sampler.lipschitz, primal, dual, sampler.variance_bounds())
    for T in horizons:
        gamma = stochastic_step(*constants, T)
        rates = 2 * gamma * primal.omega_bound, 2 * gamma * dual.omega_bound
        first = stochastic_bound(*constants, T, remainder=problem.loss.remainder(K))
        tau = float(problem.weights @ sampler.rows)
        second = (16.2 * sampler.lipschitz + 8 * tau) * np.log(2 * D * K) * RADIUS / np.sqrt(T)
        # the package's own order besides, where it does not take too long
        variants = [(Simultaneous, "gap"), (PlainIterates, "gap with xi at the new U")]
        for iterates_type, name in variants[: 2 if T <= 1000 else 1]:
            gaps = []
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                run = iterates_type(problem, sampler, primal.center(), dual.center(), rng, 1, False)
                for _ in range(T):
                    run.step(*rates, 1.0)
                gaps.append(certify(problem, run.U_sum / T, run.V_sum / T).gap)
            # the mean, and what it may be off by: the theorem is about the expectation
            high = np.mean(gaps) + 3 * np.std(gaps, ddof=1) / np.sqrt(repetitions)
            yield row(label, kind, f"mean {name} (+ 3 standard errors), T = {T}", high, first)
        yield row(label, kind, f"the first bound against the second, T = {T}", first, second)


def two_classes(kind: str) -> Iterator[dict]:
    """eq:omegas-vs-radii-lower fails for k = 2, so the package takes the larger number."""
    _, dual = make_geometries(make_problem(kind, k=2), RADIUS)
    yield row("Omega, 2x1, k = 2", kind, "squared radius 1 (log 2 < 1)", 1.0, dual.omega_bound)


def row(theorem: str, kind: str, quantity: str, measured: float, bound: float, equal=False) -> dict:
    slack = ROUNDING * (1.0 + abs(bound))
    holds = measured <= bound + slack and (not equal or measured >= bound - slack)
    return {"theorem": theorem, "data": kind, "quantity": quantity, "measured": float(measured),
            "bound": float(bound), "equality": equal, "holds": bool(holds)}  # fmt: skip


def collect(quick: bool = False) -> list[dict]:
    """All rows; about a minute of CPU time, and a few seconds where ``quick``."""
    horizons = (30,) if quick else (30, 300, 3000)
    sampled, repetitions = ((30,), 3) if quick else ((100, 1000, 10_000), 3)
    rows = []
    for kind in KINDS:
        for part in (
            omegas(kind),
            two_classes(kind),
            lipschitz(kind),
            variances(kind, "partial", 2 if quick else 10),
            variances(kind, "full", 2 if quick else 10),
            deterministic(kind, horizons),
            stochastic(kind, "partial", sampled, repetitions),
            stochastic(kind, "full", sampled, repetitions),
        ):
            rows.extend(part)
    return rows


def summary(rows: list[dict]) -> str:
    """The smallest and the largest measured / bound for every theorem and kind of data."""
    rows = [r for r in rows if r["bound"] > 0 and "against" not in r["quantity"]]
    table = []
    for theorem in dict.fromkeys(r["theorem"] for r in rows):
        cells = [theorem]
        for kind in KINDS:
            ratios = [r["measured"] / r["bound"] for r in rows
                      if (r["theorem"], r["data"]) == (theorem, kind)]  # fmt: skip
            low, high = (f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
            cells.append(high if low == high else f"{low} to {high}")
        table.append(cells)
    return markdown(["", *KINDS], table)


def draw(rows: list[dict]):
    """Measurement / bound, but for the rows that compare two formulas or two laws."""
    rows = [r for r in rows if r["bound"] > 0 and "against" not in r["quantity"]]
    with styled():
        figure, (axes,) = new_figure(1, width=7.0, height=4.2)
        names = list(dict.fromkeys(r["theorem"] for r in rows))[::-1]
        for offset, kind, marker in zip((0.22, 0.0, -0.22), KINDS, "osD", strict=True):
            chosen = [r for r in rows if r["data"] == kind]
            axes.plot(
                [r["measured"] / r["bound"] for r in chosen],
                [names.index(r["theorem"]) + offset for r in chosen],
                marker,
                alpha=0.7,
                label=kind,
            )
        axes.axvline(1.0, color="black", linewidth=1.0)
        axes.set(
            xscale="log",
            xlabel="measured / bound: no point may lie right of the line",
            yticks=range(len(names)),
            yticklabels=names,
        )
        figure.legend(loc="outside upper right", ncols=3)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds, writes no files")
    quick = parser.parse_args().quick
    rows = collect(quick)
    print(f"{'theorem':<24}{'data':<10}{'quantity':<62}{'measured':>10}{'bound':>10}{'ratio':>8}")
    for r in rows:
        ratio = f"{r['measured'] / r['bound']:.3f}" if r["bound"] > 0 else "-"
        print(f"{r['theorem']:<24}{r['data']:<10}{r['quantity']:<62}{r['measured']:>10.4g}"
              f"{r['bound']:>10.4g}{ratio:>8}{'' if r['holds'] else '  FAILS'}")  # fmt: skip
    if not quick:
        write_csv(RESULTS / "theory.csv", rows, facts(seed=0))
        save_figure(draw(rows), RESULTS / "theory.png")
        fill("theory.md", "measured / bound", summary(rows))
    failed = [r for r in rows if not r["holds"]]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(rows)} measurements exceed their bound.")
    print(f"all {len(rows)} measurements are within their bounds.")


if __name__ == "__main__":
    main()
