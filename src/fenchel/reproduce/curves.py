"""Running a method of Figure 1 within a budget, and what its points are worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import Certificate, certify
from fenchel.reproduce.configurations import Setting
from fenchel.reproduce.methods import Method
from fenchel.solvers.base import Point, Solver
from fenchel.threads import one_thread

#: The default solver stops at this certified gap.
ACCURATE = 1e-4


@dataclass(frozen=True)
class Row:
    """A point of a curve. Seconds are CPU seconds of one thread, without certificates."""

    iterations: int
    repetition: int
    seconds: float
    primal: float
    dual: float
    gap: float
    certifies: str
    nonzeros: int


class Spent:
    """CPU seconds against a budget; None is no budget."""

    def __init__(self, budget: float | None) -> None:
        self.budget = np.inf if budget is None else budget
        self.began = time.process_time()

    @property
    def left(self) -> float:
        return self.budget - (time.process_time() - self.began)


class Timed:
    """A run in progress: it can go on to more iterations and be certified on the way."""

    def __init__(self, method: Method, setting: Setting, horizon: int, repetition: int) -> None:
        self.method, self.setting, self.repetition = method, setting, repetition
        self.solver: Solver = method.solver(setting, horizon)
        self.problem = setting.penalised if method.penalised else setting.ball
        rng = np.random.default_rng([2020, repetition])  # not the seed of the data
        began = time.process_time()
        self.state: Any = self.solver.init(self.problem, None, rng, horizon)
        self.seconds = time.process_time() - began
        self.iterations = 0

    def go_to(self, iterations: int) -> Row:
        """Make the iterations that are missing, and certify the point."""
        self.advance(iterations - self.iterations)
        return self.read()

    def go_to_check(self) -> Row:
        """Go on until the solver lets itself be checked: it may change its mind on the way."""
        target = np.inf
        while self.iterations < target:
            ahead = self.solver.iterations_to_check(self.problem, self.state)
            target = min(target, self.iterations + ahead)
            self.advance(1)
        return self.read()

    def advance(self, steps: int) -> None:
        """Make some iterations, on the clock."""
        began = time.process_time()
        with np.errstate(over="ignore", invalid="ignore"):
            self.solver.advance(self.state, steps)
        self.seconds += time.process_time() - began
        self.iterations += steps

    def read(self) -> Row:
        """Certify the point of the moment, off the clock."""
        found = self._certify(self.solver.points(self.state)[0])
        nonzeros = found.U.nnz if sp.issparse(found.U) else np.count_nonzero(found.U)
        return Row(
            self.iterations, self.repetition, self.seconds, found.primal, found.dual, found.gap,
            found.problem, int(nonzeros),
        )  # fmt: skip

    def _certify(self, point: Point) -> Certificate:
        if not self.method.last:  # also where the solver knows no ball: U is scaled into it
            return certify(self.setting.ball, point.U, point.V)
        # the last iterate of SSM may be far outside the ball, and is worth what it is worth there
        return certify(self.setting.penalised, self.state.U, point.V)


def run_method(
    method: Method,
    setting: Setting,
    repetitions: int,
    budget: float | None,
    report: Callable[[str], None],
) -> list[Row]:
    """All points of a curve that fit into a budget of CPU seconds, certificates included.

    The iterations grow until the next point would not fit for all repetitions. Where every point
    is a run of its own, as many repetitions of that last point are made as fit. BLAS has one
    thread.
    """
    repetitions = repetitions if method.random else 1
    rows: list[Row] = []
    with one_thread():
        spent = Spent(budget)
        curve = _one_run_a_point if method.by_horizon else _one_run_for_all
        if method.own_checks:
            curve = _own_checks
        for row in curve(method, setting, repetitions, spent):
            rows.append(row)
            report(
                f"{method.name}: T = {row.iterations}, repetition {row.repetition + 1}, "
                f"{row.seconds:.2f} s: primal {row.primal:.4f}, dual {row.dual:.4f}"
            )
    return rows


def _one_run_a_point(
    method: Method, setting: Setting, repetitions: int, spent: Spent
) -> Iterator[Row]:
    """Every number of iterations from the start, because the step depends on it."""
    expected = 0.0  # CPU seconds of the next run with its certificate
    grid = method.iterations
    for T, following in zip(grid, [*grid[1:], grid[-1]], strict=True):
        affordable = int(min(repetitions, spent.left / expected)) if expected else repetitions
        began = time.process_time()
        for repetition in range(affordable):
            row = Timed(method, setting, T, repetition).go_to(T)
            yield row
        if affordable < repetitions:
            return
        a_run = (time.process_time() - began) / repetitions
        expected = a_run + row.seconds * (following / T - 1.0)


def _one_run_for_all(
    method: Method, setting: Setting, repetitions: int, spent: Spent
) -> Iterator[Row]:
    """One run a repetition, read at all points; all go as far as the budget lets the first go."""
    last = method.iterations[-1]
    for repetition in range(repetitions):
        began = time.process_time()
        run = Timed(method, setting, last, repetition)
        for T in [T for T in method.iterations if last >= T]:
            if repetition == 0 and run.iterations:
                cost = time.process_time() - began
                expected = cost + run.seconds * (T / run.iterations - 1.0)
                if expected * repetitions > spent.left + cost:
                    break
            yield run.go_to(T)
        last = run.iterations


def _own_checks(method: Method, setting: Setting, repetitions: int, spent: Spent) -> Iterator[Row]:
    """One run, read where the solver has itself checked, until it is accurate."""
    last = method.iterations[-1]
    run = Timed(method, setting, last, 0)
    while spent.left > 0.0 and run.iterations < last:
        row = run.go_to_check()
        yield row
        if row.gap <= ACCURATE:
            return
