"""The memory that a fit takes, known before any of it is taken."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design import is_hardly_sparse
from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.free_memory import available_memory
from fenchel.losses import Loss, Sparsemax, get_loss
from fenchel.path import check_scale, largest_penalty
from fenchel.problem import BLOCK_ENTRIES, Matrix, Problem
from fenchel.samples import canonical, distinct
from fenchel.solvers.hybrid_gradient import HybridGradient
from fenchel.solvers.kept_hessian import Room
from fenchel.solvers.l1_model import BLAS_SIZE, DENSE_SIZE, DENSE_WORK, forms_hessian
from fenchel.solvers.newton_state import ROW_WORK, State
from fenchel.solvers.packed_quadratic import block_bytes
from fenchel.solvers.primal_dual import DENSE_ENTRIES, PrimalDual, handed_over, solution_size
from fenchel.solvers.proximal_newton import GROWTH_SMOOTHED
from fenchel.solvers.working_rows import LARGE
from fenchel.solvers.working_set import (
    COPIED_ENTRIES,
    HESSIAN_ENTRIES,
    MANY,
    WORTH_A_COPY,
    many,
    most_new,
    violators,
)
from fenchel.solving import solve_problem
from fenchel.traced_memory import Peak, TracedRoom, kernels_and_modules
from fenchel.validation import check_design, check_number, refuse_lazy

#: A fit of at most so many entries of X and scores is made as a whole and traced, if it ends within
#: so many CPU seconds; again where kernels were loaded on the way, so many times at most.
WHOLE_ENTRIES, WHOLE_SECONDS, TRACED_FITS = 1 << 20, 1.0, 3

#: What the allocator keeps between traced arrays, as a part of them, up to so many bytes. The
#: blocks of a dense X in single precision that are widened and freed again leave one as large.
GAPS, MOST_GAPS = 0.12, 1_500_000

#: What any fit takes: objects and buffers; and what the allocator keeps between the arrays, as a
#: part of them, up to so many bytes.
FLOOR, BETWEEN, MOST_BETWEEN = 200_000, 0.08, 5_000_000

#: The same with sparse data, of which the arrays come in many sizes: an array of the size of U, or
#: less.
MOST_BETWEEN_SPARSE = 9_000_000

#: Arrays of the size of the scores (n x k) at the peak, in a Newton step: X U, V, the best V; rows,
#: weights and shares of the curvature, the change of X U and a spare one of it. A loss that is not
#: smooth has a centre as well, which a dense X has room for: less is gathered than is allowed for.
#: Counted from what was measured, as are the others here. Rows, weights and shares are two arrays
#: and a half, and only of where a V has curvature: with sparsemax on its support, which is anything
#: from all of the scores (a large penalty) to next to nothing. Of that no more than this part is
#: counted: where it is larger, values of X are no longer gathered.
SCORE_ARRAYS, CENTRE, CURVATURE, SUPPORT = 8, 0.3, 2.5, 0.6

#: The support is about so many times the penalty in parts of the largest gradient of a class.
BY_PENALTY = 2.0

#: Two more of them where they are large and the loss is not smooth. Measured, in the first sweeps
#: of Newton steps; which arrays they are was not traced.
LARGE_CENTRE = 2.0

#: Arrays of scores on dense data with a smooth loss; with another, of which some are held by class
#: too; and where a fit ends at its start.
SMOOTH_SCORES, CLASS_SCORES, START_SCORES = 6.6, 8.6, 2

#: Blocks of the gradient (d x k) at the same time; of sparse data only what is beyond its bound is
#: kept.
GRADIENT_BLOCKS = 3

#: Arrays of the size of the scores and of U that the hybrid gradient steps hold together with a
#: check: three points with their products, sums, the last restart and the best point. U is sparse.
HYBRID_SCORES, HYBRID_GRADIENTS = 14, 7

#: X is held by rows and by columns, and what was freed beside them is not all used again. At the
#: start two doubles for a non-zero are there as well, of which the norms of the columns are made,
#: but only so many arrays of scores.
SPARSE_COPIES, DOUBLE, POSITION, NORM_DOUBLES, FIRST_SCORES = 2.2, 8, 4, 2, 3

#: The rows of a sparse X in the features of the working set are copied where scores are many: about
#: this part of X.
WORKING_PART = 0.3

#: Products with a dense X in single precision widen a block of it, and turn that by columns.
WIDENED = 1.6

#: The largest Hessian of a Newton step on dense data has about so many times the rows of the first
#: one. With a loss that is not smooth more entries come and go: about this part of the most that a
#: working set may take in.
LATER, COMING = 1.05, 0.6


#: Where none has been seen, and the loss has a dual point of the Newton model: that has the entries
#: which are close to their bounds as well, about so many times those used in all.
NEARBY = 1.4

#: Where no Hessian is formed of dense data, the positions that Newton steps read take about this
#: part of X.
POSITIONS = 0.9

#: Newton steps without a Hessian read X itself as long as V is dense. With a loss that is not
#: smooth it will not stay so: about this part of what is gathered of X then, at its densest.
GATHERED = 0.75

#: The look is at rows with so many entries of X and scores, but not at fewer than the second where
#: there are more; by more rows more coefficients are used, with about this power of their number.
LOOK_ENTRIES, LEAST_ROWS, LOOK_GROWTH = 1 << 22, 500, 0.1

#: At sparse data, which have small Hessians only, it is up to so many entries of X and scores.
LOOK_SPARSE = 1 << 20

#: It ends at the first of these gaps, in units of P(0), or after so many rounds of Newton steps
#: without a Hessian; the fit at the last gap.
LOOK_TOL, LOOK_ROUNDS, FIT_TOL = 3e-2, 2, 1e-3

#: Or after so many hybrid gradient steps, whose dual point tells how many coefficients are used.
LOOK_HYBRID = 600

#: There is no look where the Hessian is at most this part of the rest in any case.
SMALL_PART = 0.1


def estimate_memory(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    *,
    alpha: float = 1e-3,
    alpha_scale: str = "absolute",
) -> int:
    """Bytes that fitting a model adds to those of X and y at the peak, about.

    It is for ``solver="auto"`` and the default ``tol``. Of small data, up to a million entries of X
    and scores, a whole fit is made and its arrays are traced, if it ends within a second
    (``tracemalloc``; not where the caller uses that himself). Else counted are X by rows and by
    columns, arrays of the size of the scores and of the gradient, and the Hessian of a Newton step,
    which depends on the penalty: where it matters, a fit is begun, of all rows up to 4 million
    entries of X and scores, and ends at the first Hessian that it would form, or after 600 hybrid
    gradient steps: with the hinge loss on wide dense data that can be most of the fit. Of sparse
    data with more than a million it is only seen whether zero is the solution, and with sparsemax
    what the penalty tells of its support. docs/memory.md has ratios to the measured peak, what the
    look costs, and what is off by more than 20%.
    Where a fit takes about a megabyte or less, the estimate is no more than an order of magnitude:
    what the interpreter has free makes as large a difference as the fit.
    What is compiled on the first use of all is not counted.

    Parameters
    ----------
    X : (n, d) array or scipy sparse.
    y : (n,) labels, or the number of classes: the answer is for a small penalty then.
    loss, alpha, alpha_scale : as in :class:`~fenchel.SparseLinearClassifier`.
    """
    refuse_lazy("X", X)
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions (samples, features), found shape {X.shape}: give the data "
            "that are to be fitted."
        )
    if isinstance(y, int | np.integer):
        k, codes = int(y), None
    else:
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        k = classes.size
        if codes.size != X.shape[0]:
            raise ValueError(
                f"y has {codes.size} labels and X {X.shape[0]} rows: give one label a row."
            )
    if k < 2:
        raise ValueError(f"y must hold, or be, at least two classes, found {k}: give all labels.")
    size = Size.of(X, k, loss)
    if codes is None:
        return size.fit_bytes()
    alpha = check_number("alpha", alpha, remedy="give the l1 penalty as a number >= 0")
    check_scale(alpha_scale)
    found = traced(size, X, codes, alpha, alpha_scale) if size.is_small else None
    if found is None:
        return size.fit_bytes(looked_at(size, X, codes, alpha, alpha_scale))
    taken, seen, ended = found
    return taken if ended else max(taken, size.fit_bytes(seen))


def traced(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str
) -> tuple[int, Seen | None, bool] | None:
    """What a fit takes by the trace of one, what was seen of it, and whether it ended in time.

    None where it cannot be traced: the caller traces for himself, little memory is free, there is
    no signal, or every fit loads something.
    """
    free = available_memory()
    if tracemalloc.is_tracing() or (free is not None and size.fit_bytes() > free):
        return None
    for _ in range(TRACED_FITS):
        known = kernels_and_modules()
        found = traced_once(size, X, codes, alpha, scale)
        if found is None or known == kernels_and_modules():
            return found  # else what was loaded on the way was traced as well
    return None


def traced_once(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str
) -> tuple[int, Seen | None, bool] | None:
    """The same for one fit, as the estimators make it; None where there is no signal."""
    peak = Peak()
    tracemalloc.start()
    try:
        X = canonical(check_design(X))  # in the user's order, by which errors name rows
        rows, weights = distinct(X, codes, None)
        problem = begun(X, codes[rows], codes.max() + 1, size.loss, alpha, scale, rows, weights)
        if problem is None:
            return None
        seen = seen_of(problem, UntilHessian(peak), problem.n, problem.n, FIT_TOL)
        ended = tracemalloc.is_tracing()
        taken: float = peak.taken()
    finally:
        tracemalloc.stop()
    taken += min(GAPS * taken, MOST_GAPS)
    if size.is_widened:
        taken += DOUBLE * min(size.n * size.d, DESIGN_ENTRIES)
    told = size.nonzeros is None or size.begins
    return int(taken), seen if told else None, ended


@dataclass(frozen=True)
class Seen:
    """What a look tells of a fit."""

    hessian: float = 0.0  # rows of the largest that is formed
    face: float = 0.0  # rows of what is solved of it
    samples: float = 0.0  # of which it is made in one product, if it is
    at_start: bool = False  # whether zero is the solution
    without: bool = False  # whether Newton steps are made without one
    instead: float = 0.0  # bytes that these gather of X
    dense: bool = False  # whether the dual point has few zeros
    support: float = SUPPORT  # part of the scores with curvature, of sparsemax and sparse data
    only_start: bool = False  # whether nothing but the start was looked at


def looked_at(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str, most: float = np.inf
) -> Seen | None:
    """What a look at no more rows than so many tells: None where it would not matter."""
    if size.nonzeros is not None:  # a part of sparse data may have signal where all have none
        whole = most >= size.n
        return look(X, codes, size.loss, alpha, scale, size.n, size.begins) if whole else None
    if size.fit_bytes() <= (1.0 + SMALL_PART) * size.fit_bytes(Seen()):
        return None
    rows = int(min(size.n, max(LEAST_ROWS, LOOK_ENTRIES // (size.d + size.k)), most))
    enough = rows >= min(size.n, LEAST_ROWS)
    return look(X, codes, size.loss, alpha, scale, rows) if enough else None


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
        self.peak, self.deadline = peak, time.thread_time() + WHOLE_SECONDS

    def init(self, *arguments: Any) -> Any:
        self.state = super().init(*arguments)
        return self.state

    def advance(self, state: Any, n_steps: int) -> None:
        for _ in range(n_steps):
            if self._traces(state):
                self.without += makes_newton_steps(state.inner)
                super().advance(state, 1)
                continue
            if isinstance(state.inner, State) and not isinstance(state.inner.room, NoRoom):
                state.inner.room = NoRoom(state.inner.room.most, state.inner.room.instead)
            if isinstance(state.method, HybridGradient) and state.inner.iteration >= LOOK_HYBRID:
                raise EnoughSeenError(0)
            newton = makes_newton_steps(state.inner)
            super().advance(state, 1)
            self._count(newton)

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
    """Whether the solver is beyond hybrid gradient steps and steps on single classes."""
    return isinstance(state, State) and (state.by_class is None or state.by_class.slow)


def look(
    X: Matrix,
    codes: np.ndarray,
    loss: Loss,
    alpha: float,
    scale: str,
    n_rows: int,
    begins: bool = True,
) -> Seen | None:
    """The Hessian of a fit, about, by the beginning of one with some of its rows.

    Without ``begins`` only what its start tells. None where the rows have no signal: nothing is
    known then, and the fit says so if need be.
    """
    X = sp.csr_array(X) if sp.issparse(X) else X
    n, k = X.shape[0], codes.max() + 1  # some classes may have no sample among the rows
    # drawn, because labels often come in turns; by the same seed, so that the answer is the same
    rows = np.sort(np.random.default_rng(0).choice(n, n_rows, replace=False))
    problem = begun(X, codes[rows], k, loss, alpha, scale, rows)
    if problem is None:
        return None
    if not begins:
        if ends_at_start(problem):
            return Seen(at_start=True)
        known = isinstance(loss, Sparsemax)
        return Seen(support=support(problem) if known else SUPPORT, only_start=True)
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
        return Seen(LATER * first, samples=samples)
    if cut:  # Newton steps may follow
        instead, V, size = 0.0, state.now.V, solution_size(state.now.V)
        point = solver.points(solver.state)[0]
        few = handed_over(solver.state, point, size).nnz
        used = min(size, few) if few < problem.n else size  # as many as may be: more will come
    elif isinstance(state, State):
        used, instead = int(np.count_nonzero(state.entries.u)), state.room.instead * n / n_rows
        V = state.V
    else:  # hybrid gradient steps were enough, or class means
        return Seen()
    without = cut or solver.without > 0
    if not first and without and not loss.smooth and not instead:
        instead = GATHERED * (DOUBLE + POSITION) * MANY * n * used
        instead += block_bytes(np.full(problem.k, used / problem.k))
    if not first and (used > BLAS_SIZE or (without and not forms_later(problem, used))):
        return Seen(without=True, instead=instead)
    more = (n / n_rows) ** LOOK_GROWTH
    # all that are used, where Newton steps are still to come
    largest, face = LATER * max(first, used), float(used)
    if loss.twice_differentiable and not first:
        largest = NEARBY * used
    if not loss.smooth:
        if not (first and solver._begins_rough(problem)):  # else the first one is the largest
            coming = COMING * most_new(problem, used, growth=GROWTH_SMOOTHED)
            largest = max(largest, used + coming)
        face = (used + largest) / 2.0
    most = min(possible, BLAS_SIZE)
    sizes = min(more * largest, most), min(more * face, most)
    return Seen(*sizes, samples=more * samples, instead=instead, dense=many(V))


def begun(
    X: Matrix,
    codes: np.ndarray,
    k: int,
    loss: Loss,
    alpha: float,
    scale: str,
    rows: np.ndarray,
    weights: np.ndarray | None = None,
) -> Problem | None:
    """The problem of a fit to some rows of X: None where these have no signal."""
    problem = Problem.from_data(
        X, codes, loss=loss, lam=0.0, sample_weight=weights, classes=np.arange(k),
        fit_intercept=True, rows=rows,
    )  # fmt: skip
    try:
        unit = 1.0 if scale == "absolute" else largest_penalty(problem)
    except ValueError:
        return None
    return problem.with_penalty(alpha * unit)


def forms_later(problem: Problem, used: int) -> bool:
    """Whether a Hessian is formed at last, where the first Newton steps are made without one.

    With a smooth loss where one of so many coefficients is ever formed: less and less damping makes
    it worth its price. With another fewer and fewer samples have curvature, at the end about as
    many as coefficients are used, in two classes each.
    """
    if problem.loss.smooth:
        return forms_hessian(used, problem.n, blas=True)
    return used * (2.0 * used / problem.k) ** 2 <= ROW_WORK


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


@dataclass(frozen=True)
class Size:
    """What the memory of a fit depends on."""

    n: int
    d: int
    k: int
    stored: int  # bytes of X beside a column of ones
    nonzeros: int | None  # of X beside a column of ones, where its design is sparse
    loss: Loss

    @classmethod
    def of(cls, X: Matrix, k: int, loss: str | Loss) -> Size:
        (n, d), loss = X.shape, get_loss(loss)
        if not sp.issparse(X) or is_hardly_sparse(n, d + 1, X.nnz + n):
            item = X.dtype.itemsize if X.dtype.kind == "f" else DOUBLE
            return cls(n, d, k, n * (d + 1) * item, None, loss)
        position = X.indices.itemsize if X.format in ("csr", "csc") else POSITION
        return cls(n, d, k, (X.nnz + n) * (DOUBLE + position), X.nnz + n, loss)

    def with_rows(self, n: int) -> Size:
        """The same with so many of the rows."""
        nonzeros = None if self.nonzeros is None else self.nonzeros * n // self.n
        return replace(self, n=n, stored=self.stored * n // self.n, nonzeros=nonzeros)

    def most_rows(self, free: int, seen: Seen | None) -> int:
        """How many of the rows fit into so many bytes."""
        rows, beyond = 0, self.n + 1
        while beyond - rows > 1:
            middle = (rows + beyond) // 2
            fits = self.with_rows(middle).fit_bytes(seen) <= free
            rows, beyond = (middle, beyond) if fits else (rows, middle)
        return rows

    def fit_bytes(self, seen: Seen | None = None) -> int:
        """What a fit takes, by what was seen: by default, with as large a Hessian as may be."""
        n, d, k, loss = self.n, self.d, self.k, self.loss
        scores, gradient = 8 * n * k, 8 * d * k
        if self.nonzeros is not None:
            work: float = SCORE_ARRAYS * scores
            if not loss.smooth:
                work += (CENTRE + LARGE_CENTRE * (n * k > LARGE)) * scores
            elif isinstance(loss, Sparsemax):
                part = SUPPORT if seen is None else seen.support
                work -= (1.0 - part) * CURVATURE * scores
            copies = SPARSE_COPIES + (WORKING_PART if n * k > LARGE else 0.0)
            start = NORM_DOUBLES * DOUBLE * self.nonzeros + FIRST_SCORES * scores
            if seen is None or seen.only_start:  # some Hessian may be formed
                return FLOOR + int(MOST_BETWEEN_SPARSE + copies * self.stored + max(work, start))
            beside: float = FLOOR + min(gradient, MOST_BETWEEN_SPARSE)
            if seen.at_start:  # by rows and by columns, and nothing after it
                return int(beside + 2 * self.stored + start)
            beside += factor_bytes(seen.hessian, min(n, seen.samples))
            return int(beside + copies * self.stored + max(work, start))
        if seen is None:
            most = min(d * k, BLAS_SIZE)
            seen = Seen(most, min(n, most))  # no more coefficients are used than there are samples
        blocks = GRADIENT_BLOCKS * min(gradient, 8 * BLOCK_ENTRIES)
        if seen.at_start:
            return with_rest(self.stored + START_SCORES * scores + blocks)
        work = (SMOOTH_SCORES if loss.smooth else CLASS_SCORES) * scores + blocks
        hessian = 8 * (seen.hessian**2 + seen.face**2)
        if seen.samples:
            hessian = max(hessian, factor_bytes(seen.hessian, min(n, seen.samples)))
        if loss.smooth or seen.dense:  # by products of some samples at a time
            hessian += 8 * min(seen.hessian * n, HESSIAN_ENTRIES)
        if seen.dense and not loss.twice_differentiable:  # of those with curvature, copied
            hessian += 8 * min(WORTH_A_COPY * n * d, COPIED_ENTRIES)
        work += max(hessian, seen.instead, POSITIONS * seen.without * self.stored)
        if self.is_widened:
            work += WIDENED * DOUBLE * min(n * d, DESIGN_ENTRIES)
        if self._begins_rough:
            work = max(work, HYBRID_SCORES * scores + HYBRID_GRADIENTS * gradient)
        return with_rest(2 * self.stored + work)

    @property
    def is_small(self) -> bool:
        """Whether a whole fit is worth a try."""
        stored = self.n * self.d if self.nonzeros is None else self.nonzeros
        return stored + self.n * self.k <= WHOLE_ENTRIES

    @property
    def is_widened(self) -> bool:
        """Whether X is dense and of single precision."""
        return self.nonzeros is None and self.stored < DOUBLE * self.n * (self.d + 1)

    @property
    def begins(self) -> bool:
        """Whether a fit of sparse data is begun: where the largest Hessian would matter."""
        assert self.nonzeros is not None
        size = min(DENSE_SIZE, np.sqrt(DENSE_WORK / self.n), self.d * self.k)
        small = self.nonzeros + self.n * self.k <= LOOK_SPARSE
        return bool(small and factor_bytes(size, self.n) > SMALL_PART * self.fit_bytes(Seen()))

    @property
    def _begins_rough(self) -> bool:
        """Whether hybrid gradient steps come first (:class:`.PrimalDual`), for dense data."""
        fits = (self.n + self.d) * self.k <= DENSE_ENTRIES
        return not self.loss.smooth and (self.d + 1) * self.k > self.n and fits


def with_rest(arrays: float) -> int:
    """What arrays take, and what is between and beside them."""
    return FLOOR + int(arrays + min(BETWEEN * arrays, MOST_BETWEEN))


def factor_bytes(size: float, n_rows: float) -> float:
    """What a Hessian in one product takes: its factor, the product of that, and its negative."""
    return 8.0 * size * (n_rows + 2.0 * size)


def check(X: Matrix, codes: np.ndarray, k: int, loss: str | Loss, alpha: float, scale: str) -> None:
    """Raise MemoryError where a fit cannot fit into the memory that is free."""
    size, free = Size.of(X, k, loss), available_memory()
    if free is None or size.fit_bytes() <= free:  # with any penalty: no need to look
        return
    # the look itself has to fit: it forms no Hessian
    seen = looked_at(size, X, codes, alpha, scale, size.most_rows(free, Seen()))
    needed = size.fit_bytes(seen)
    if needed <= free:
        return
    rows = size.most_rows(free, seen)
    raise MemoryError(
        f"{size.n} samples and {k} classes need about {needed / 2**30:.3g} GiB, of which "
        f"{8 * SCORE_ARRAYS * size.n * k / 2**30:.3g} GiB are for scores and dual variables, but "
        f"{free / 2**30:.3g} GiB are free: fit at most {rows} of these rows, "
        "or merge rare classes."
    )
