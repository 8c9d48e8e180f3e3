"""The one loop: it lets a solver advance, certifies, records, and decides when to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import Certificate, certify, with_dual_point, with_primal_point
from fenchel.equal_columns import EqualColumns, every_column
from fenchel.free_features import MAX_FREE, too_many
from fenchel.interrupts import plain_interrupts
from fenchel.problem import Matrix, Problem
from fenchel.sharpening import gap_limit, may_be_sharper, sharp_from
from fenchel.solvers.base import Point, Solver, Start
from fenchel.termination import Budget, Record, Status, decide
from fenchel.threads import threads_for
from fenchel.time_limit import TimeLimitError, until

logger = logging.getLogger("fenchel")

#: A slice of uninterrupted work aims at this many seconds, so that limits and Ctrl-C are prompt.
SLICE_SECONDS = 0.2

#: Iterations where no gap can tell the end; Newton steps are at the optimum long before.
WITHOUT_BOUND = 100

#: Points with more entries than this are kept sparse where the driver makes them.
DENSE_ENTRIES = 1 << 25

#: A dual point for U = 0 with more entries than this is not made: it tells next to nothing, unless
#: U = 0 is the solution, which the first iteration finds as well.
START_ENTRIES = 1 << 23

#: One iteration in so many is certified even where the solver says that its gap is far too large.
MOST_UNSEEN = 4

#: The first pass of a solver with a fallback is cut off after this part of ``max_time``.
PATIENCE = 0.5

Callback = Callable[[Record], object]


class Observer:
    """A callback that may ask for the best point so far, which is made for those who ask."""

    best: Callable[[], Certificate]

    def __call__(self, record: Record) -> object:
        """Be told about a check; True stops the run."""


@dataclass(frozen=True)
class Outcome:
    """What a run returns: the best certified point, how it ended, the way there and who went it."""

    certificate: Certificate
    status: Status
    history: list[Record]
    solver: str


class _Best:
    """The lowest primal and the highest dual value seen; any pair of them is a certificate."""

    def __init__(self, certificate: Certificate) -> None:
        self.upper = self.lower = certificate

    def update(self, certificate: Certificate) -> None:
        if certificate.primal < self.upper.primal:
            self.upper = certificate
        if certificate.dual > self.lower.dual:
            self.lower = certificate
        if self.upper is not self.lower:  # hold on to one U and one V only: they can be large
            self.upper = replace(self.upper, V=self.lower.V)
            self.lower = replace(self.lower, U=self.upper.U)

    @property
    def gap(self) -> float:
        return self.upper.primal - self.lower.dual

    def certificate(self) -> Certificate:
        point = self.upper.point
        if self.lower.point != point:
            point = f"{point} (dual: {self.lower.point})"
        return Certificate(
            self.upper.U,
            self.lower.V,
            self.upper.primal,
            self.lower.dual,
            self.upper.problem,
            point,
        )


@plain_interrupts()
def run(
    problem: Problem,
    solver: Solver,
    budget: Budget,
    *,
    start: Start | None = None,
    rng: np.random.Generator | None = None,
    callback: Callback | None = None,
) -> Outcome:
    """Run a solver within a budget.

    The callback gets a read-only :class:`Record` at every check and stops the run by returning
    True (Python's or numpy's; nothing else stops it). Ctrl-C ends it too; either way the best
    certified point is returned, and who called decides what an interrupted run is good for.

    A solver with a fallback whose first pass over the data takes more than PATIENCE of ``max_time``
    is cut off, and the fallback has the rest.
    """
    rng = np.random.default_rng() if rng is None else rng
    if budget.unlimited():
        budget = replace(budget, max_iter=_default_max_iter(problem, solver))
    with threads_for(problem.n * problem.d * problem.k):
        return _run(problem, solver, budget, start, rng, callback)


def _run(
    problem: Problem,
    solver: Solver,
    budget: Budget,
    start: Start | None,
    rng: np.random.Generator,
    callback: Callback | None,
) -> Outcome:
    """The run itself, with as many threads as :func:`run` has allowed."""
    began = time.perf_counter()
    best = _certify_start(problem, start)
    if isinstance(callback, Observer):
        callback.best = best.certificate
    history = [_record(0, 0.0, 0.0, best.certificate(), best, began, solver.reason)]
    fallback = solver.fallback if start is None and budget.only_time() else None
    progress = _Progress(problem, budget, callback, best, history, began, fallback is None)
    try:
        with plain_interrupts():
            status = _verdict(history[-1], budget, problem, callback)
            status = status or _iterate(progress, solver, start, rng)
            if status is None:
                assert fallback is not None
                solver = _told_why(fallback, solver, progress)
                status = _iterate(progress, solver, None, rng)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    assert status is not None
    final = best.certificate()
    if start is not None and start.certificate is not None and "start" in final.point:
        final = certify(problem, final.U, final.V, final.point)  # what is returned is made afresh
    final = replace(final, U=_like_user(final.U, problem), V=every_column(final.V))
    logger.info(
        "%s: %s after %d iterations, primal %.6g, certified gap %.3g",
        solver.name,
        status,
        history[-1].iteration,
        final.primal,
        final.gap,
    )
    return Outcome(final, status, history, solver.name)


@dataclass
class _Progress:
    """A run so far. ``patient``: the first pass of a solver has all of the time."""

    problem: Problem
    budget: Budget
    callback: Callback | None
    best: _Best
    history: list[Record]
    began: float
    patient: bool
    iteration: int = 0
    passes: float = 0.0
    seconds: float = 0.0

    @property
    def deadline(self) -> float:
        return np.inf if self.budget.max_time is None else self.began + self.budget.max_time

    @property
    def of_pass(self) -> float:
        """When a pass is cut off: the first one sooner where another solver waits."""
        if self.patient or self.iteration > 0 or self.budget.max_time is None:
            return self.deadline
        return self.began + PATIENCE * self.budget.max_time

    @property
    def late(self) -> bool:
        return time.perf_counter() >= self.deadline

    @property
    def early(self) -> bool:
        """Whether the time is not half over: later a pass may be cut off, and its points lost."""
        spent, limit = time.perf_counter() - self.began, self.budget.max_time
        return limit is None or spent < 0.5 * limit

    @property
    def ends(self) -> bool:
        """Whether a limit other than the gap has been reached."""
        limit = self.budget
        over = limit.max_iter is not None and self.iteration >= limit.max_iter
        return over or (limit.max_passes is not None and self.passes >= limit.max_passes)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """The solver's own time, within its limit."""
        clock = time.perf_counter()
        try:
            with _quietly(), until(self.deadline, self.of_pass):
                yield
        finally:
            self.seconds += time.perf_counter() - clock

    def check(self, followed: Certificate, note: str) -> Status | None:
        """Write down a check, and decide."""
        self.history.append(
            _record(
                self.iteration, self.passes, self.seconds, followed, self.best, self.began, note
            )
        )
        return _verdict(self.history[-1], self.budget, self.problem, self.callback)


def _told_why(fallback: Solver, solver: Solver, progress: _Progress) -> Solver:
    """The fallback with its reason, and all of the time that is left."""
    progress.patient = True
    spent = time.perf_counter() - progress.began
    fallback.reason = (
        f"{fallback.name} for the rest of the time, because the first pass of {solver.name} did "
        f"not end in {spent:.2g} of {progress.budget.max_time:g} seconds"
    )
    logger.info(fallback.reason)
    return fallback


def _iterate(
    progress: _Progress, solver: Solver, start: Start | None, rng: np.random.Generator
) -> Status | None:
    """Let the solver advance until a limit is reached; None where its first pass is too dear."""
    try:
        return _advance(progress, solver, start, rng)
    except TimeLimitError:
        over = Status.MAX_TIME if progress.late else None
        return (
            progress.check(progress.best.certificate(), "a pass over the data was cut off") or over
        )


def _advance(
    progress: _Progress, solver: Solver, start: Start | None, rng: np.random.Generator
) -> Status:
    problem, budget, best = progress.problem, progress.budget, progress.best
    reason = solver.reason if len(progress.history) > 1 else ""  # the first one's is there
    with progress.timed():
        state = solver.init(problem, start, rng, _horizon(problem, solver, budget))
    pace, passes = solver.passes(problem), progress.passes
    iteration = unseen = 0
    while True:
        spacing = solver.iterations_to_check(problem, state)
        target = _next_check(iteration, spacing, solver.check_growth, pace, budget)
        slice_steps = 1
        while iteration < target:
            steps = min(slice_steps, target - iteration)
            clock = time.perf_counter()
            with progress.timed():
                solver.advance(state, steps)
            spent = time.perf_counter() - clock
            iteration += steps
            progress.iteration += steps
            progress.passes = passes + iteration * pace
            # twice as many steps while a slice is short, fewer when it was long
            slice_steps = max(1, int(steps * min(2.0, SLICE_SECONDS / max(spent, 1e-9))))
            if progress.late or solver.exhausted(state):
                break
        unseen += 1
        ends = progress.late or progress.ends or solver.exhausted(state)
        if unseen < MOST_UNSEEN and not ends and progress.early:
            limit, unit = gap_limit(budget, problem.at_zero), problem.at_zero
            if solver.is_far(state, limit * unit, sharp_from(problem, limit) * unit):
                continue
        unseen = 0
        with _quietly():
            followed = _certify_points(problem, solver.points(state), best)
        sharp = may_be_sharper(problem, best.gap, budget, solver.sharp_enough)
        if sharp and not progress.late:
            with progress.timed():
                V = solver.sharpened(state)
            with _quietly():
                followed = _with_better_dual(problem, followed, V, best)
        status = progress.check(followed, "; ".join(filter(None, [reason, solver.note(state)])))
        reason = ""
        del followed  # its V is as large as the scores
        if status is not None:
            return status
        if solver.exhausted(state):
            return Status.MAX_TIME


def _default_max_iter(problem: Problem, solver: Solver) -> int:
    if not too_many(problem):
        return solver.default_max_iter
    logger.warning(
        "more than %d features have no penalty: no bound but 0 is known, and the gap is the whole "
        "objective. The run ends after %d iterations unless max_iter or max_time is given; a small "
        "penalty is certified.",
        MAX_FREE,
        most := min(solver.default_max_iter, WITHOUT_BOUND),
    )
    return most


def _certify_start(problem: Problem, start: Start | None) -> _Best:
    """Certify the start, or U = 0, which is where every run can fall back to, if that is better."""
    if start is not None and start.certificate is not None:
        return _Best(start.certificate)
    if start is not None and start.V is not None:
        given = certify(problem, start.U, start.V, "start")
        if given.primal <= problem.at_zero:
            return _Best(given)
    zero = sp.csr_array((problem.d, problem.k))
    most = START_ENTRIES if problem.design.is_sparse else DENSE_ENTRIES
    if problem.n * problem.k <= most:
        V = problem.dual_at_zero()
    else:  # the labels themselves: a dual point of value 0 that costs no memory
        V = sp.csr_array((np.ones(problem.n), (np.arange(problem.n), problem.y)),
                         shape=(problem.n, problem.k))  # fmt: skip
    kind = "penalised" if problem.radius is None else "ball"
    known = Certificate(zero, V, problem.at_zero, -np.inf, kind, "zero")
    best = _Best(with_dual_point(problem, known, V, "zero"))
    if start is not None:
        best.update(certify(problem, start.U, V if start.V is None else start.V, "start"))
    return best


def _like_user(U: Matrix, problem: Problem) -> Matrix:
    """Zero coefficients as an array, unless only a sparse matrix is reasonable.

    At the end alone: an array of zeros would be held through the whole run.
    """
    zero = sp.issparse(U) and U.nnz == 0 and problem.d * problem.k <= DENSE_ENTRIES
    return U.toarray() if zero else U


def _certify_points(problem: Problem, points: list[Point], best: _Best) -> Certificate:
    """Certify the candidates; a point that is not finite is reported as an infinite gap."""
    certificates = []
    for point in points:
        if point.V is None and _finite(point.U):
            certificate = with_primal_point(problem, best.lower, point.U, point.which)
        elif point.V is not None and _finite(point.U) and _finite(point.V):
            certificate = certify(problem, point.U, point.V, point.which)
        else:
            certificate = Certificate(
                point.U, point.V, np.inf, -np.inf, best.upper.problem, point.which
            )
        certificates.append(certificate)
        best.update(certificate)
    return certificates[0]


def _with_better_dual(
    problem: Problem, followed: Certificate, V: Matrix | None, best: _Best
) -> Certificate:
    """The certificate with a dual point in place of its own, if there is one and it is better."""
    if V is None:
        return followed
    sharper = with_dual_point(problem, followed, V, "linearised")
    best.update(sharper)
    if sharper.dual <= followed.dual:
        return followed
    return replace(sharper, point=f"{followed.point} (dual: linearised)")


def _quietly() -> np.errstate:
    """Numbers that overflow end the run as diverged: a warning of numpy's adds nothing."""
    return np.errstate(over="ignore", invalid="ignore")


def _finite(A: Matrix) -> bool:
    A = A.columns if isinstance(A, EqualColumns) else A
    values = A.data if sp.issparse(A) else A
    return bool(np.isfinite(values.sum()) or np.isfinite(values).all())  # the sum may overflow


def _record(
    iteration: int,
    passes: float,
    seconds: float,
    followed: Certificate,
    best: _Best,
    began: float,
    note: str = "",
) -> Record:
    nnz = followed.U.nnz if sp.issparse(followed.U) else np.count_nonzero(followed.U)
    return Record(
        iteration=iteration,
        passes=passes,
        seconds=seconds,
        primal=followed.primal,
        dual=followed.dual,
        gap=followed.gap,
        nnz=int(nnz),
        point=followed.point,
        best_gap=best.gap,
        wall=time.perf_counter() - began,
        note=note,
    )


def _verdict(
    record: Record, budget: Budget, problem: Problem, callback: Callback | None
) -> Status | None:
    logger.debug("%s", record)
    status = decide(record, budget, problem.at_zero)
    if callback is not None and stops(callback(record)) and status is None:
        status = Status.INTERRUPTED
    return status


def stops(answer: object) -> bool:
    """Whether a callback's answer is True: a count, or some text, stops no run by accident."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _horizon(problem: Problem, solver: Solver, budget: Budget) -> int:
    """The most iterations that the budget allows, for steps that must know it in advance."""
    limits = [solver.default_max_iter] if budget.max_iter is None else [budget.max_iter]
    if budget.max_passes is not None:
        limits.append(int(np.ceil(budget.max_passes / solver.passes(problem))))
    return max(1, min(limits))


def _next_check(iteration: int, spacing: int, growth: float, pace: float, budget: Budget) -> int:
    """Geometrically spaced, never closer than ``spacing``, and at the limits exactly.

    The spacing follows from costs in passes, not from the clock: the same seed gives the same run.
    """
    target = max(iteration + spacing, int(np.ceil(iteration * growth)))
    if budget.max_iter is not None:
        target = min(target, budget.max_iter)
    if budget.max_passes is not None:
        target = min(target, int(np.ceil(budget.max_passes / pace)))
    return max(target, iteration + 1)
