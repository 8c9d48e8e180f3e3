"""The certified solver: hybrid gradient steps first, then Newton steps, a vertex at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.common_part import dear
from fenchel.equal_columns import every_column
from fenchel.problem import SPARSE, Problem
from fenchel.solvers.ball import BallMultiplier
from fenchel.solvers.base import Point, Solver, Start
from fenchel.solvers.class_newton import few_coefficients
from fenchel.solvers.hybrid_gradient import LOOK, HybridGradient
from fenchel.solvers.l1_model import BLAS_SIZE
from fenchel.solvers.linear_program import LinearProgram
from fenchel.solvers.of_class_means import OfClassMeans
from fenchel.solvers.penalised import PenalisedSolver
from fenchel.solvers.proximal_newton import ProximalNewton
from fenchel.solvers.working_set import violators

#: Hybrid gradient keeps dense arrays of U and V: no more than so many entries of both.
DENSE_ENTRIES = 1 << 25

#: Sparse data begin with Newton steps, which read a few short columns. Where these have taken in as
#: many coefficients as this part of the samples, and there will be more, hybrid gradient is the
#: better begin there too: on data of at most so many entries of U and V.
MANY_COEFFICIENTS, SMALL_ENTRIES = 0.5, 1 << 20

#: Where a product is dear and at most this part of the classes has coefficients that want to leave
#: zero, Newton steps come first: they touch these classes alone, and so their products are cheap.
FEW_CLASSES = 0.25

#: Hybrid gradient goes on as long as the gap halves within so many of its iterations as take so
#: many multiplications, within bounds, and so many times the cube of the size of the solution: what
#: a Newton iteration costs. Where V is sparse they cost less, and may be a third of all: the last
#: digits take longer.
PATIENCE, PATIENCE_WORK, PATIENCE_CUBES, PATIENCE_SPARSE = (10, 60), 15 << 26, 5, 120

#: What an entry of V and of U cost in an iteration of hybrid gradient besides the products, in
#: multiplications of these.
ENTRY_OF_V, ENTRY_OF_U = 1000, 170

#: A rough point, of a larger gap than this in parts of P(0), has many coefficients that are zero in
#: the solution, and Newton steps cost the more the larger their working set. What is smaller than
#: this part of the largest of its class is not handed over, nor more of them than this or n.
ROUGH, SMALL, MOST = 0.05, 0.1, 1000

#: A point that is no longer rough can still have tens of thousands. With more than this the first
#: Newton steps would take longer than the rest, and so only as many as the solution has go along.
FAR_TOO_MANY = 10_000

#: Steps are left for a linear program below this gap, in parts of P(0); and where that was too
#: large, below this part of the gap at which it was. Newton steps, which are faster than it as long
#: as they gain, are left below the third gap, or when it did not halve in so many iterations.
FINISH, AGAIN, FINISH_NEWTON, PATIENCE_NEWTON = 1e-4, 0.1, 1e-10, 20


@dataclass
class State:
    problem: Problem
    method: Solver
    inner: Any
    reference: float = np.inf  # the gap that has to halve, and since when
    since: int = 0
    iteration: int = 0  # of the Newton steps
    finish: float = 0.0  # a gap at which a linear program is tried
    before: Any = None  # the method that was left for it, and its state
    may_turn: bool = False  # from Newton steps to hybrid gradient, once
    check: int = LOOK  # the next check: only there is a hand-over, so that none is overrun
    slow: bool = False  # hybrid gradient, as seen at the last check: Newton steps come next
    note: str = ""

    def tell(self, what: str) -> None:
        """Add to the note: a check may be left out."""
        self.note = "; ".join(filter(None, [self.note, what]))


class PrimalDual(PenalisedSolver):
    """The certified solver for the problem with an l1 penalty, any loss, to any accuracy.

    A loss that is not smooth is begun with :class:`HybridGradient`, whose rough solution takes few
    cheap iterations. When its gap no longer halves for about what a Newton iteration costs, the
    point is handed over to :class:`ProximalNewton`, which starts close to the solution and so with
    small working sets.
    Close to the end the solution with the hinge loss is a vertex: where the linear program of what
    is active is small, :class:`LinearProgram` solves it exactly.
    A smooth loss, sparse data, no more coefficients than samples, or a start that is given: these
    go to the Newton steps at once, and so do data so large that one product is dear if few classes
    have coefficients that want to leave zero. Where a product is dear and there are far fewer
    classes than samples, all this is done for the means of the classes first.
    With a radius, all this is done for a series of penalties (:class:`BallMultiplier`).

    One iteration is one of the method at work.
    """

    name: ClassVar[str] = "primal-dual"
    default_max_iter: ClassVar[int] = 100_000
    check_growth: ClassVar[float] = 1.0

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        self.check_problem(problem)
        if problem.radius is not None:
            ball = BallMultiplier(PrimalDual())
            return State(problem, ball, ball.init(problem, start, rng, horizon))
        method: Solver = ProximalNewton()
        note = ""
        if start is None and not problem.loss.smooth and problem.class_means is not None:
            method = OfClassMeans()
            note = (
                f"begun with the means of {problem.class_means.problem.n} classes, because a "
                "product with all samples is dear"
            )
        elif start is None and self._begins_rough(problem):
            note = self._few_classes(problem)
            method = method if note else HybridGradient()
        inner = method.init(problem, start, rng, horizon)
        newton = isinstance(method, ProximalNewton)
        may_turn = start is None and newton and self._may_turn(problem)
        return State(
            problem, method, inner, finish=self._finish(problem), may_turn=may_turn, note=note
        )

    def follow(
        self,
        state: State,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        horizon: int,
    ) -> State:
        at_vertex = isinstance(state.method, LinearProgram)
        method, inner = state.before if at_vertex else (state.method, state.inner)
        if not isinstance(method, ProximalNewton):
            return self.init(problem, start, rng, horizon)
        inner = method.follow(inner, problem, start, rng, horizon)
        return State(problem, method, inner, finish=self._finish(problem))

    @staticmethod
    def refuses(problem: Problem) -> str:
        return PenalisedSolver.refuses(problem.with_radius(None))

    @staticmethod
    def _finish(problem: Problem) -> float:
        """The gap at which the first linear program is tried."""
        return -np.inf if LinearProgram.refuses(problem) else FINISH * problem.at_zero

    @classmethod
    def _begins_rough(cls, problem: Problem) -> bool:
        """Whether hybrid gradient is worth its first iterations, which will tell the rest."""
        return not cls.why_newton(problem)

    @staticmethod
    def why_newton(problem: Problem) -> str:
        """Why Newton steps come first, in a few words; nothing where hybrid gradient does."""
        X = problem.design.X
        if problem.loss.smooth:
            return "the loss is smooth"
        if sp.issparse(X) and X.nnz <= SPARSE * problem.n * problem.d:
            return "X is sparse"  # they read a few short columns, hybrid gradient reads all of X
        if few_coefficients(problem):  # they are cheap from the beginning
            return "there are no more coefficients than samples"
        if (problem.n + problem.d) * problem.k > DENSE_ENTRIES:
            return "dense arrays of U and V would be large"
        return ""

    @classmethod
    def plan(cls, problem: Problem) -> str:
        """How it begins, and why, in a line; a start that is given may change that."""
        if problem.radius is not None:
            return "for a series of penalties that ends at the one of the ball"
        if why := cls.why_newton(problem):
            return f"beginning with Newton steps, because {why}"
        return (
            "beginning with hybrid gradient steps, because X is dense and there are more "
            "coefficients than samples"
        )

    @staticmethod
    def _few_classes(problem: Problem) -> str:
        """Why Newton steps are the better begin after all, where they are: in one line."""
        if not dear(problem.design, problem.k):
            return ""
        moving = moving_classes(problem)
        if moving > FEW_CLASSES * problem.k:
            return ""
        return (
            f"Newton steps from the beginning, because a product with X is dear, and cheap as long "
            f"as few classes have coefficients: {moving} of {problem.k} want one"
        )

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            if state.slow:
                self._hand_over(state)
            if isinstance(state.method, OfClassMeans) and state.method.done(state.inner):
                self._leave_means(state)
            if isinstance(state.method, LinearProgram) and state.inner.solved:
                self._leave_vertex(state, "the solution of the linear program is not exact enough")
            if isinstance(state.method, ProximalNewton):
                if self._newton_is_at_its_end(state):
                    self._try_vertex(state)
                state.iteration += 1
            state.method.advance(state.inner, 1)
            if state.may_turn and isinstance(state.method, ProximalNewton):
                self._turn_in_time(state)
            elif isinstance(state.method, HybridGradient) and state.inner.iteration == state.check:
                state.check += state.method.iterations_to_check(state.problem, state.inner)
                state.slow = self._hybrid_is_slow(state)
                if not state.slow:
                    self._try_vertex(state)
            elif isinstance(state.method, LinearProgram) and state.inner.failed:
                self._leave_vertex(state, "the linear program is too large")

    @staticmethod
    def _may_turn(problem: Problem) -> bool:
        """Whether hybrid gradient may be the better begin of sparse data."""
        small = (problem.n + problem.d) * problem.k <= SMALL_ENTRIES
        return problem.design.is_sparse and small and not problem.loss.smooth

    @staticmethod
    def _turn_in_time(state: State) -> None:
        """Go on with hybrid gradient where the coefficients get many."""
        used = int(np.count_nonzero(state.inner.entries.u))
        if used < MANY_COEFFICIENTS * state.problem.n:
            return
        point, method = state.method.points(state.inner)[0], HybridGradient()
        state.tell(
            f"hybrid gradient from iteration {state.iteration} on, because {used} coefficients "
            f"for {state.problem.n} samples are many, and will be more"
        )
        state.may_turn, state.method, state.inner = False, method, None
        rng = np.random.default_rng(0)  # neither method draws anything
        state.inner = method.init(state.problem, Start(point.U, point.V), rng, 1)

    def _leave_means(self, state: State) -> None:
        """Go on with all samples from the point of the class means."""
        problem, point = state.problem, state.method.points(state.inner)[0]
        used = np.unique(sp.csc_array(point.U).nonzero()[1]).size
        rough = self._begins_rough(problem) and used > FEW_CLASSES * problem.k
        method: Solver = HybridGradient() if rough else ProximalNewton()
        state.tell(f"all samples after {state.inner.iteration} iterations with the class means")
        state.inner = None  # its memory goes before more is asked for
        rng = np.random.default_rng(0)  # neither method draws anything
        state.method, state.inner = method, method.init(problem, Start(point.U, point.V), rng, 1)

    def _hybrid_is_slow(self, state: State) -> bool:
        """Whether hybrid gradient no longer pays. What it has is looked at before it is left."""
        inner = state.inner
        self._watch(state, inner.iteration)
        waited = inner.iteration - state.since
        return bool(waited >= self._patience(state.problem, inner.iteration, inner.now.V))

    def _hand_over(self, state: State) -> None:
        """Go on with Newton steps from the point of hybrid gradient, and with its dual step."""
        inner, method = state.inner, ProximalNewton()
        point, size = state.method.points(inner)[0], solution_size(inner.now.V)
        start = Start(handed_over(state, point, size), point.V, step=inner.dual_step)
        state.tell(
            f"{inner.iteration} hybrid gradient iterations, then Newton steps, because the gap did "
            f"not halve in the last {inner.iteration - state.since}, and Newton steps for about "
            f"{size} coefficients cost no more"
        )
        state.method, state.reference, state.since, state.slow = method, np.inf, 0, False
        state.inner = inner = None  # its copy of X goes before another is made
        rng = np.random.default_rng(0)  # neither method draws anything
        state.inner = method.init(state.problem, start, rng, 1)

    @staticmethod
    def _patience(problem: Problem, iteration: int, V: np.ndarray) -> int:
        """The iterations in which hybrid gradient has to halve the gap."""
        n, d, k, X = problem.n, problem.d, problem.k, problem.design.X
        work = (
            (2 * X.nnz if sp.issparse(X) else n * d) * k + ENTRY_OF_V * n * k + ENTRY_OF_U * d * k
        )
        least, most = PATIENCE
        patience = min(max(PATIENCE_WORK // work, least), most)
        patience += PATIENCE_CUBES * min(solution_size(V), BLAS_SIZE) ** 3 // work
        if np.count_nonzero(V) < SPARSE * V.size:
            patience = max(patience, PATIENCE_SPARSE, iteration // 3)
        return patience

    @staticmethod
    def _watch(state: State, iteration: int) -> None:
        """Remember when the gap halved last."""
        if state.inner.gap <= 0.5 * state.reference:
            state.reference, state.since = state.inner.gap, iteration

    def _newton_is_at_its_end(self, state: State) -> bool:
        """Whether Newton steps have reached what they are for, or gain no more."""
        self._watch(state, state.iteration)
        slow = state.iteration - state.since >= PATIENCE_NEWTON
        return slow or bool(state.inner.gap <= FINISH_NEWTON * state.problem.at_zero)

    @staticmethod
    def _try_vertex(state: State) -> None:
        """Close enough, go on with the linear program of what is active, if it is small."""
        gap = state.inner.gap
        if gap > state.finish:
            return
        state.finish = AGAIN * gap
        method, point = LinearProgram(), state.method.points(state.inner)[0]
        start = Start(point.U, every_column(point.V))
        inner = method.init(state.problem, start, np.random.default_rng(0), 1)
        if not inner.failed:
            state.tell(f"a linear program of what is active at gap {gap:.1e}")
            state.before = state.method, state.inner
            state.method, state.inner = method, inner

    @staticmethod
    def _leave_vertex(state: State, why: str) -> None:
        """Go back to the steps that a linear program was tried in place of."""
        state.method, state.inner = state.before
        state.tell(f"{why}: {state.method.name} again")

    def points(self, state: State) -> list[Point]:
        return state.method.points(state.inner)

    def sharpened(self, state: State) -> np.ndarray | None:
        return state.method.sharpened(state.inner)

    def is_far(self, state: State, goal: float, sharp: float) -> bool:
        return state.method.is_far(state.inner, goal, sharp)

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_to_check(self, problem: Problem, state: State) -> int:
        if state.slow:  # a Newton iteration comes next
            return 1
        return state.method.iterations_to_check(problem, state.inner)

    def note(self, state: State) -> str:
        note = "; ".join(filter(None, [state.note, state.method.note(state.inner)]))
        state.note = ""
        return note


def moving_classes(problem: Problem) -> int:
    """The number of classes in which some coefficient with a penalty wants to leave zero."""
    V = problem.dual_at_zero()
    feature, klass, _, _ = violators(problem, V, problem.d * problem.k)
    penalised = problem.lam * problem.penalty_factor[feature] > 0.0
    return int(np.unique(klass[penalised]).size)


def handed_over(state: State, point: Point, size: int) -> sp.csc_array:
    """What Newton steps begin with of a point of hybrid gradient and a solution of that size."""
    U = sp.csc_array(point.U)
    if state.inner.gap > ROUGH * state.problem.at_zero:
        return _pruned(U, max(MOST, state.problem.n))
    return _pruned(U, max(size, 1)) if U.nnz > FAR_TOO_MANY else U


def solution_size(V: np.ndarray) -> int:
    """About how many coefficients the solution has, told by a dual point that is still rough.

    At a vertex there are as many as equations between scores, and a sample makes one less of them
    than its row of V has non-zeros. U itself tells nothing yet: it has several times as many.
    """
    return max(int(np.count_nonzero(V)) - V.shape[0], 0)


def _pruned(U: sp.csc_array, most: int) -> sp.csc_array:
    """U without the entries that are small for their class, and at most so many of the largest."""
    U = U.copy()
    size = np.abs(U.data)
    klass = np.repeat(np.arange(U.shape[1]), np.diff(U.indptr))
    largest = np.zeros(U.shape[1])
    np.maximum.at(largest, klass, size)
    size[size < SMALL * largest[klass]] = 0.0
    if np.count_nonzero(size) > most:
        size[size < np.partition(size, size.size - most)[size.size - most]] = 0.0
    U.data[size == 0.0] = 0.0
    U.eliminate_zeros()
    return U
