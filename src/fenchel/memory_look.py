"""A look at the beginning of a fit: how large its Hessians will be, if it forms any."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fenchel.common_part import MANY_CLASSES
from fenchel.fit_size import DOUBLE, LOOK_FREQUENT, OF_POSITION, POSITION, SUPPORT, Apart, Seen
from fenchel.late_hessian import Met, forms_later, gathered_later
from fenchel.losses import Loss, Sparsemax
from fenchel.path import largest_penalty
from fenchel.problem import Matrix, Problem
from fenchel.solvers.alike import Alike
from fenchel.solvers.class_newton import NEW_BY_CLASS
from fenchel.solvers.diagonal_blocks import block_bytes
from fenchel.solvers.gathered import are_frequent, features_of
from fenchel.solvers.hybrid_gradient import HybridGradient
from fenchel.solvers.kept_hessian import Room
from fenchel.solvers.l1_model import BLAS_SIZE
from fenchel.solvers.newton_state import ETA_GROWTH, State
from fenchel.solvers.primal_dual import PrimalDual, handed_over, solution_size
from fenchel.solvers.proximal_newton import GROWTH_SMOOTHED
from fenchel.solvers.working_set import (
    MANY,
    Columns,
    Entries,
    first_entries,
    many,
    most_new,
    violators,
    worst,
)
from fenchel.solving import solve_problem
from fenchel.traced_memory import Peak, TracedRoom

#: Rows of X that are distinct samples, and the sums of their weights.
Samples: TypeAlias = tuple[np.ndarray, np.ndarray]

#: A fit that is traced as a whole has so many CPU seconds; after that it is only looked at.
WHOLE_SECONDS = 1.0

#: The support is about so many times the penalty in parts of the largest gradient of a class.
BY_PENALTY = 2.0

#: The largest Hessian of a Newton step on dense data has about so many times the rows of the first
#: one. With a loss that is not smooth more entries come and go: about this part of the most that a
#: working set may take in.
LATER, COMING = 1.05, 0.6

#: Where none has been seen, and the loss has a dual point of the Newton model: that has the entries
#: which are close to their bounds as well, about so many times those used in all.
NEARBY = 1.4

#: Newton steps without a Hessian read X itself as long as V is dense. With a loss that is not
#: smooth it will not stay so: about this part of what is gathered of X then, at its densest.
GATHERED = 0.75

#: No more of a Hessian is solved than about so many times the equations of the vertex that V tells.
EQUATIONS = 1.1

#: A look that is cut in hybrid gradient steps has seen the gap halve within so many iterations.
#: Later that takes up to about so many times as long: Newton steps come if that is too long.
LONGER_WAITS = 4

#: By more rows more coefficients are used, with about this power of their number.
LOOK_GROWTH = 0.1

#: The look ends at the first of these gaps, in units of P(0), or after so many rounds of Newton
#: steps without a Hessian; the fit at the last gap.
LOOK_TOL, LOOK_ROUNDS, FIT_TOL = 3e-2, 2, 1e-3

#: Or after so many hybrid gradient steps, whose dual point tells how many coefficients are used.
LOOK_HYBRID = 600


class EnoughSeenError(Exception):
    """A Hessian of so many rows would be formed now; of none, if none is after several steps.

    With the number of samples that it is made of, where that is in one product.
    """


class OnlyTheStart(PrimalDual):
    """The solver up to its first step."""

    def init(self, *arguments: Any) -> Any:
        raise EnoughSeenError(0)


class NoRoom(Room):
    """Tells how large a Hessian would be that the solver wants to form."""

    def square(self, size: int) -> np.ndarray:
        raise EnoughSeenError(size)

    def factor(self, size: int, n_rows: int) -> np.ndarray:
        raise EnoughSeenError(size, n_rows)


class UntilHessian(PrimalDual):
    """The solver up to the first Hessian that it would form, if it does soon.

    With a peak to measure it forms all of them, and goes on like that only when its time is over.
    """

    def __init__(self, peak: Peak | None = None) -> None:
        super().__init__()
        self.state: Any = None
        self.without = 0  # rounds of Newton steps
        self.waited = 0  # hybrid gradient steps in which the gap did not halve, at most
        self.patience = 0  # how many of them there may be, as of the last check
        self.equations = 0  # of the vertex that was told when hybrid gradient was left
        self.left = 0.0  # the gap by then, in parts of P(0)
        self.traced = peak is not None
        self.peak, self.deadline = peak, time.thread_time() + WHOLE_SECONDS

    def init(self, *arguments: Any) -> Any:
        self.state = super().init(*arguments)
        return self.state

    def advance(self, state: Any, n_steps: int) -> None:
        for _ in range(n_steps):
            if self._traces(state):
                self.without += makes_newton_steps(state)
                super().advance(state, 1)
                continue
            self._forbid_hessian(state)
            if isinstance(state.method, HybridGradient) and state.inner.iteration >= LOOK_HYBRID:
                raise EnoughSeenError(0)
            newton = makes_newton_steps(state)
            super().advance(state, 1)
            self._count(newton)

    def _hybrid_is_slow(self, state: Any) -> bool:
        slow, inner = super()._hybrid_is_slow(state), state.inner
        self.waited = max(self.waited, inner.iteration - state.since)
        self.patience = self._patience(state.problem, inner.iteration, inner.now.V)
        return slow

    @property
    def will_hand_over(self) -> bool:
        """Whether Newton steps are to be expected after hybrid gradient steps that were cut."""
        return LONGER_WAITS * self.waited >= self.patience

    def _hand_over(self, state: Any) -> None:
        self.equations = solution_size(state.inner.now.V)
        self.left = state.inner.gap / state.problem.at_zero
        super()._hand_over(state)  # a Newton iteration comes next
        if not self._traces(state):
            self._forbid_hessian(state)

    @staticmethod
    def _forbid_hessian(state: Any) -> None:
        if isinstance(state.inner, State) and not isinstance(state.inner.room, NoRoom):
            room = state.inner.room
            state.inner.room = NoRoom(room.most, room.instead, room.blocks)

    def _traces(self, state: Any) -> bool:
        """Whether the whole fit is made."""
        if self.peak is None:
            return False
        if time.thread_time() <= self.deadline:
            if isinstance(state.inner, State) and not isinstance(state.inner.room, TracedRoom):
                state.inner.room = TracedRoom.of(state.inner.room, self.peak)
            return True
        self.peak.end()
        formed, self.peak = self.peak.formed, None
        if formed[0] or self.without >= LOOK_ROUNDS:
            raise EnoughSeenError(*formed)
        return False

    def sharpened(self, state: Any) -> np.ndarray | None:
        V = super().sharpened(state)
        if self.peak is None:
            self._count(V is not None)
        return V

    def _count(self, newton: bool) -> None:
        self.without += newton
        if self.without >= LOOK_ROUNDS:
            raise EnoughSeenError(0)


def makes_newton_steps(state: Any) -> bool:
    """Whether the next iteration is beyond hybrid gradient steps and steps on single classes."""
    inner = state.inner
    newton = isinstance(inner, State) and (inner.by_class is None or inner.by_class.slow)
    return newton or state.slow


def look(
    X: Matrix,
    codes: np.ndarray,
    loss: Loss,
    alpha: float,
    scale: str,
    n_rows: int,
    begins: bool = True,
    samples: Samples | None = None,
    intercept: bool = True,
) -> Seen | None:
    """The Hessian of a fit, about, by the beginning of one with some of its rows.

    Without ``begins`` only what its start tells, unless frequent features become an array. None
    where the rows have no signal: nothing is known then, and the fit says so if need be.
    """
    X = sp.csr_array(X) if sp.issparse(X) else X
    k = codes.max() + 1  # some classes may have no sample among the rows
    rows, weights = samples or (np.arange(X.shape[0]), np.ones(X.shape[0]))
    # drawn, because labels often come in turns; by the same seed, so that the answer is the same
    drawn = np.sort(np.random.default_rng(0).choice(rows.size, n_rows, replace=False))
    n, rows, weights = rows.size, rows[drawn], weights[drawn]
    problem = begun(X, codes[rows], k, loss, alpha, scale, rows, weights, intercept)
    if problem is None:
        return None
    if not begins:
        if ends_at_start(problem):
            return Seen(at_start=True, even=is_even(problem))
        wanted, frequent = apart(problem), frequent_entries(problem)
        # a Hessian on them is as of dense data, unless the working set is too large for one
        may_form = frequent > 0 and most_new(problem, 0, NEW_BY_CLASS) <= BLAS_SIZE
        if not may_form or frequent + problem.n * problem.k > LOOK_FREQUENT:
            part = support(problem) if isinstance(loss, Sparsemax) else SUPPORT
            return Seen(support=part, only_start=True, frequent=frequent, apart=wanted)
    # hybrid gradient steps are cheap, and may be all that there is
    whole = problem.design.is_sparse or UntilHessian._begins_rough(problem)
    return seen_of(problem, UntilHessian(), n, n_rows, FIT_TOL if whole else LOOK_TOL)


def seen_of(problem: Problem, solver: UntilHessian, n: int, n_rows: int, tol: float) -> Seen:
    """What a solver tells of a fit to n rows by one to so many of them."""
    first = samples = 0
    cut, loss = False, problem.loss
    try:
        result = solve_problem(problem, solver=solver, tol=tol, rng=0)
        if solver.state is None:  # next to nothing is used
            return Seen(at_start=result.gap <= FIT_TOL * problem.at_zero)
    except EnoughSeenError as seen:
        first, samples = (*seen.args, 0)[:2]
        cut = isinstance(solver.state.method, HybridGradient)
    state, possible = solver.state.inner, problem.d * problem.k
    if problem.design.is_sparse:  # with small Hessians, and none in many fits
        settled = 1.0
        if solver.traced and isinstance(state, State):  # what V had before is in the trace
            settled = np.count_nonzero(state.V) / state.V.size
        frequent = frequent_entries(problem)
        return Seen(
            LATER * first, samples=samples, frequent=frequent, settled=settled, apart=apart(problem)
        )
    times, instead, blocks = n / n_rows, 0.0, 0.0
    more = times**LOOK_GROWTH
    if cut and solver.will_hand_over:
        V, size = state.now.V, solution_size(state.now.V)
        entries = Entries.of(handed_over(solver.state, solver.points(solver.state)[0], size))
        few = entries.u.size
        used = min(size, few) if few < problem.n else size  # as many as may be: more will come
        met = Met.of(problem, V, entries, used)
    elif isinstance(state, State):
        V, instead = state.V, times * state.room.instead
        blocks = more**2 * state.room.blocks
        entries = state.entries.only(state.entries.u != 0.0)
        used = entries.u.size
        met = Met.of(state.problem, V, entries, used)
    else:  # hybrid gradient steps were enough, or class means
        return Seen()
    dense, without = many(V), cut or solver.without > 0
    if not first and without and not loss.smooth and not instead:
        values = GATHERED * MANY * problem.n * used if dense else met.values
        instead = times * (DOUBLE + POSITION) * values
        instead += 0.0 if dense else times * OF_POSITION * met.positions
        instead += block_bytes(np.full(problem.k, used / problem.k))
    if first and not samples and dense and not loss.smooth:
        instead = max(instead, gathered_later(problem, first, n, state.damping))
    # with a loss that is not smooth as many samples have curvature as coefficients are used
    samples_grow = times if loss.smooth else more * met.at_the_end
    most_solved = np.inf if first else met.most_solved(samples_grow)
    used, last = int(min(used, most_solved)), met.used
    if loss.smooth and not (first or dense):  # more are used than stay: a Hessian comes late
        last = min(last, int(EQUATIONS * solution_size(V)))
    # all that are used, where Newton steps are still to come
    largest, face = LATER * max(first, used), float(min(used, last))
    if loss.twice_differentiable and not first:
        largest = NEARBY * used
    if not loss.smooth:
        if not (first and solver._begins_rough(problem)):  # else the first one is the largest
            coming = COMING * most_new(problem, used, growth=GROWTH_SMOOTHED)
            largest = max(largest, used + coming)
        face = min((used + largest) / 2.0, most_solved)
        if not dense:
            face = min(face, max(used, EQUATIONS * solution_size(V)))
        if first and solver.equations and not (samples or dense):
            # it is made of all that was handed over; of less later, if one centre is not enough
            pairs = [(float(first), float(used))]
            if solver.left > ETA_GROWTH * FIT_TOL:
                end = min(EQUATIONS * solver.equations, float(possible))
                coming = COMING * most_new(problem, int(end), growth=GROWTH_SMOOTHED)
                pairs.append((end + coming, end))
            largest, face = max(pairs, key=lambda pair: np.hypot(*pair))
    most = min(possible, BLAS_SIZE)
    formed = not without or forms_later(problem, replace(met, used=last), more * face, samples_grow)
    if not first and (last > BLAS_SIZE or not formed):
        return Seen(without=True, instead=instead, blocks=blocks, dense=dense)
    sizes = min(more * largest, most), min(more * face, most)
    return Seen(*sizes, samples=more * samples, instead=instead, blocks=blocks, dense=dense)


def begun(
    X: Matrix,
    codes: np.ndarray,
    k: int,
    loss: Loss,
    alpha: float,
    scale: str,
    rows: np.ndarray,
    weights: np.ndarray | None = None,
    intercept: bool = True,
) -> Problem | None:
    """The problem of a fit to some rows of X: None where these have no signal."""
    problem = Problem.from_data(
        X, codes, loss=loss, lam=0.0, sample_weight=weights, classes=np.arange(k),
        fit_intercept=intercept, rows=rows,
    )  # fmt: skip
    try:
        unit = 1.0 if scale == "absolute" else largest_penalty(problem)
    except ValueError:
        return None
    return problem.with_penalty(alpha * unit)


def frequent_entries(problem: Problem) -> int:
    """Entries of the array of frequent features that the first steps are made with, if one is."""
    if not (problem.design.is_sparse and problem.loss.smooth):
        return 0
    limit = most_new(problem, 0, NEW_BY_CLASS)
    feature, klass, _, _ = violators(problem, problem.dual_at_zero(), limit)
    entries = Entries.empty().with_new(feature, klass)
    if not are_frequent(problem, Columns.of(problem.design), entries):
        return 0
    return problem.n * features_of(problem, entries).size


def apart(problem: Problem) -> Apart | None:
    """What wants to leave zero, where classes without coefficients have nothing of their own.

    By the columns that all classes share then: no array of scores is made.
    """
    loss, (n, d, k) = problem.loss, (problem.n, problem.d, problem.k)
    if not problem.design.is_sparse or problem.has_free or not (loss.alike or loss.smooth):
        return None
    first_row = [1.0 / k] * 2 if loss.smooth else [0.0, 1.0 / (k - 1)]
    V = np.tile(first_row, (n, 1))  # of the true class, and of each of the others
    known = Alike(problem, np.empty(0, np.int64))
    feature, klass, excess, _ = known.violators(V, d * k)
    length = np.diff(Columns.of(problem.design).data[0])
    met = np.minimum(np.bincount(klass, length[feature], k), n).sum() / (n * k)
    first, _, _ = worst(feature, klass, excess, first_entries(d, k, NEW_BY_CLASS))
    return Apart(np.unique(klass).size, float(met), float(length[first].sum()) / n)


def is_even(problem: Problem) -> bool:
    """Whether the first dual point is the same in all classes but the true one.

    Its rows are, at zero; beside an intercept it gets the masses of the classes. Of residuals only
    what differs is made then, if classes are not few.
    """
    masses = np.bincount(problem.y, weights=problem.weights, minlength=problem.k)
    same = not problem.intercept or np.allclose(masses, masses[0], rtol=1e-12, atol=0.0)
    return bool(same and problem.k >= MANY_CLASSES)


def ends_at_start(problem: Problem) -> bool:
    """Whether the model of zeros is certified before any step."""
    try:
        solve_problem(problem, solver=OnlyTheStart(), tol=FIT_TOL, rng=0)
    except EnoughSeenError:
        return False
    return True


def support(problem: Problem) -> float:
    """The part of the scores that sparsemax will have in its support, by the penalty.

    With a penalty that hardly lets a class leave zero its scores stay close to the others, and
    most samples have all of these classes in their support.
    """
    feature, klass, excess, _ = violators(problem, problem.dual_at_zero(), problem.d * problem.k)
    penalised = problem.penalty_factor[feature] > 0.0
    largest = np.zeros(problem.k)
    np.maximum.at(largest, klass[penalised], excess[penalised])
    parts = problem.lam / np.maximum(problem.lam + largest, 1e-300)
    return min(BY_PENALTY * float(parts.mean()), SUPPORT)
