"""Proximal steps on the dual, Newton steps on a working set of the primal."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.kernels.curvature import curvature_columns, residual_columns
from fenchel.losses.base import true_class
from fenchel.problem import Problem
from fenchel.solvers.base import DENSE_POINT, Point, Start
from fenchel.solvers.class_newton import (
    DAMPING,
    DAMPING_SMOOTHED,
    DAMPING_SMOOTHED_SPARSE,
    NEW_BY_CLASS,
    SCALES,
    SHORTER,
    STEPS,
    UNSETTLED,
    Blocks,
    Progress,
    costs,
    few_coefficients,
)
from fenchel.solvers.class_scores import ClassScores
from fenchel.solvers.joined import joined, joins
from fenchel.solvers.l1_model import BLAS_SIZE, BLAS_WORK, Effort, minimise_dense, minimise_model
from fenchel.solvers.linearised import (
    CLOSE,
    EFFORT,
    LEAST_DAMPING,
    LEFT,
    MOST_CG,
    ROUNDS,
    linearised,
    linearises,
    near_bounds,
)
from fenchel.solvers.penalised import PenalisedSolver
from fenchel.solvers.working_set import (
    Columns,
    Entries,
    Hessian,
    full_gradient,
    many,
    most_new,
    violators,
)
from fenchel.threads import one_thread

#: Products with fewer multiplications than this are made by one thread.
SMALL_WORK = 1 << 27

#: Newton steps between two looks at all features.
NEWTON_STEPS = 30

#: The centre moves when the inner error is this part of what smoothing costs.
INNER = 1.0

#: Conjugate gradient iterations on a face: fewer than the first number ask for less damping, more
#: than the second for more, the last is the limit. With a sparse X and V they are cheap beside the
#: passes over all of V that a Newton step makes.
CG, CG_SPARSE = (15, 40, 50), (45, 120, 150)

#: On dense data the Hessian is formed where that takes at most so many multiplications (more with
#: few zeros in the curvature, where conjugate gradients are as dear), and no more than so many
#: conjugate gradient iterations, which make more and worse steps, but fewer where the damping is
#: above the last number. The solves on the faces of a step take so many times the cube of the
#: non-zeros.
ROW_WORK, PRODUCTS, FACE, DAMPED = 1 << 28, 6000, 0.4, 1e-4

#: An iteration makes no further step after so many multiplications (a few seconds), or so many for
#: each entry of V, as many as the look at all features and the certificate take. The solver knows
#: no clock, and the driver looks at its own between iterations only.
LONG, LONG_FOR_EACH = 1 << 30, 100

#: Where a product has fewer multiplications than this, an iteration takes milliseconds, and a
#: certificate a good part of it. None is made where the gap before the iteration was so many times
#: its limit, more than an iteration gains; or is now, with a smooth loss, where it is about known.
CHEAP, MOST_GAINED, ROUGHLY = 1 << 24, 30.0, 2.0

#: No subgradient is asked to be smaller.
SMALLEST_ERROR = 1e-15

#: A line search that comes down to this has nothing left to gain.
SHORTEST = 1e-6

#: The proximal step on V grows by this factor from one centre to the next; on a path along dense
#: data, where the first centre is close already, by the second from the second point on.
ETA_GROWTH, ETA_GROWTH_PATH = 3.0, 2.0

#: Along a path a dual point shrinks with the penalty in the samples with no more loss than this.
SETTLED = 0.15

#: A Hessian with at least this damping is formed in single precision.
SINGLE = 1e-6

#: The next centre, and the next point of a path, begin with at least this damping: less, which was
#: right at the end of the one before, asks for long line searches now; the more where X is sparse.
NEXT_DAMPING, NEXT_DAMPING_SPARSE = 1e-4, 1e-3


@dataclass
class State:
    problem: Problem
    columns: Columns
    entries: Entries
    Z: np.ndarray  # X U, updated in place
    V: np.ndarray  # the dual point that belongs to Z, updated in place
    value: float  # the smoothed risk at Z
    centre: np.ndarray | None  # V0, None for a loss that is smooth by itself
    eta: float  # step of the proximal term ||v - v0||^2 / (2 eta)
    curvature: np.ndarray  # sum_i weights_i X_ij^2, what damping is measured in
    constant: float = 0.0  # what is added to the risk, where classes are joined
    growth: float = ETA_GROWTH  # of eta, from one centre to the next
    damping: float = 0.1
    gap: float = np.inf  # of (U, V) before the last steps, where V has a centre
    gap_by_class: float = 0.0  # about, after steps on single classes with a smooth loss
    enough: float = 0.0  # a subgradient on the working set that asks for no more Newton steps
    moved: bool = False  # the centre, since the last Newton step
    work: float = 0.0  # multiplications of this iteration, about
    by_class: Progress | None = None  # of the steps on single classes, None where there are none
    scores: ClassScores | None = None  # what Z and V are during such steps on dense data
    step: np.ndarray | None = None  # of the working set, known from a sharpened dual point
    looked: bool = False  # the working set is that of V, since a dual point was sharpened
    stiff: bool = False  # the model without damping takes too long
    on_path: bool = False  # another penalty came before
    follows: bool = False  # the next iteration is the first with another penalty
    sharp: np.ndarray | None = None  # the dual point of the model whose step was taken last
    gradient: np.ndarray | None = None  # all of G_U at V, where that is known
    hessian: Hessian | None = None  # on the entries as they are, for the next step to change
    formed: tuple[Entries, np.ndarray] | None = None  # the last dense Hessian, as long as V is that


class ProximalNewton(PenalisedSolver):
    """Newton steps with an l1 penalty for the penalised problem, any loss, to any accuracy.

    A loss whose f is not strongly convex is smoothed around a centre V0 that follows the dual
    solution (the proximal point method on V, or the method of multipliers seen from U)::

        U = argmin  sum_i w_i max_v { <v - y_i, U^T x_i> - f(v, y_i) - ||v - v0_i||^2 / (2 eta) }
                    + lam sum_j c_j ||U(j,:)||_1,             V0 <- the maximising v

    so that every loss is minimised by the same Newton method with an l1 penalty
    (:mod:`fenchel.solvers.l1_model`), on a working set of entries of U that grows by those whose
    dual constraint ``|G_U(j,l)| <= lam c_j`` is violated. Once the working set is solved only
    unseen entries can be violated, which is what makes the rescaled dual point tight.

    One iteration looks at all features once and then solves the working set.
    """

    name: ClassVar[str] = "proximal-newton"
    default_max_iter: ClassVar[int] = 500
    check_growth: ClassVar[float] = 1.0  # an iteration costs far more than a check

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        self.check_problem(problem)
        entries = Entries.empty() if start is None else Entries.of(start.U)
        entries.u[(entries.u < 0) & problem.nonnegative[entries.feature]] = 0.0
        Z = np.zeros((problem.n, problem.k))
        if entries.u.size:
            Z = problem.design.matmul(entries.matrix(entries.u, (problem.d, problem.k)))
        centre = None
        if not problem.loss.smooth:
            if start is None or start.V is None:
                centre = np.full((problem.n, problem.k), 1.0 / problem.k)
            else:
                centre = start.V.toarray() if sp.issparse(start.V) else np.array(start.V)
        state = State(
            problem, Columns.of(problem.design), entries, Z, np.zeros_like(Z), 0.0, centre,
            _first_eta(problem), problem.design.column_norms(problem.weights) ** 2,
        )  # fmt: skip
        self._evaluate(state)
        cheap = state.columns.sparse or few_coefficients(problem)
        if problem.loss.smooth or (start is None and cheap):
            state.by_class = Progress()
        return state

    def follow(
        self, state: State, problem: Problem, start: Start, rng: np.random.Generator, horizon: int
    ) -> State:
        """Keep the working set, the damping, and, with V as the centre, nearly the step."""
        ratio = problem.lam / state.problem.lam if state.problem.lam > 0.0 else 1.0
        state.problem, state.gap = problem, np.inf
        state.step, state.looked = None, False  # of another problem
        state.stiff = state.stiff and ratio < 1.0  # a smaller penalty makes it no better
        state.on_path = True
        state.follows, state.sharp = not state.columns.sparse, None  # conjugate gradients are dear
        entries = state.entries  # afresh: no rounding adds up along a path
        state.Z = state.columns.product(entries, entries.u, problem.k)
        if state.centre is not None:
            state.centre, state.V = state.V, state.centre
            state.eta = max(state.eta / ETA_GROWTH, _first_eta(problem))
            if not state.columns.sparse:
                state.growth = ETA_GROWTH_PATH
                self._shrink_centre(state, min(1.0, ratio))
        if problem.loss.smooth and state.columns.sparse:  # conjugate gradients would be dear
            state.by_class = Progress()
        self._raise_damping(state)
        self._evaluate(state)
        return state

    @staticmethod
    def _shrink_centre(state: State, ratio: float) -> None:
        """Move the centre towards the labels, for a penalty smaller by the ratio.

        The bounds on G_U shrink with it. That is taken from the samples at their margin: those
        with a loss keep all of their mass on mistakes.
        """
        problem, centre = state.problem, state.centre
        assert centre is not None
        few = np.flatnonzero(problem.loss.value(state.Z, problem.y) <= SETTLED)
        centre[few] *= ratio
        centre[few, problem.y[few]] += 1.0 - ratio

    def advance(self, state: State, n_steps: int) -> None:
        with self._threads(state.problem):
            for _ in range(n_steps):
                self._iterate(state)

    @staticmethod
    def _threads(problem: Problem) -> AbstractContextManager:
        """One thread where several would wait for each other more than they work."""
        small = problem.n * problem.d * problem.k < SMALL_WORK
        return one_thread() if small else nullcontext()

    def points(self, state: State) -> list[Point]:
        problem = state.problem
        entries, shape = state.entries, (problem.d, problem.k)
        dense = problem.d * problem.k <= DENSE_POINT
        U = entries.array(entries.u, shape) if dense else entries.matrix(entries.u, shape)
        # updated in place, so what is handed out is a copy if a small one is enough; who certifies
        # a large one copies it
        V = state.V if state.sharp is None else state.sharp
        if V.size <= DENSE_POINT:
            V = V.copy()
        elif 5 * np.count_nonzero(V) < V.size:
            V = sp.csr_array(V)
        return [Point(U, V, "last")]

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_per_check(self, problem: Problem) -> int:
        return 1

    def sharpened(self, state: State) -> np.ndarray | None:
        """The dual point of the Newton model (:mod:`.linearised`), whose step comes next."""
        if state.stiff or not linearises(state.problem):
            return None
        with self._threads(state.problem):
            return self._linearised(state)

    def is_far(self, state: State, goal: float, sharp: float) -> bool:
        """By the gap before the last steps, or by what it is on the working set after them."""
        problem = state.problem
        if problem.n * problem.d * problem.k > CHEAP:
            return False
        if state.centre is not None:
            return bool(MOST_GAINED * goal < state.gap < np.inf)
        return bool(ROUGHLY * max(goal, sharp) < state.gap_by_class < np.inf)

    def _linearised(self, state: State) -> np.ndarray | None:
        """Solve the model until no entry outside of it matters, a few times at most."""
        problem, limit = state.problem, self._most_new(state)
        state.gradient = full_gradient(problem, state.V)
        new = near_bounds(problem, state.V, limit, state.gradient)
        entries = state.entries.with_new(*new)
        for _ in range(ROUNDS):
            state.entries, state.hessian, state.looked = entries, None, True
            error, g, penalty = self._subgradient(state)
            if error > problem.lam:
                return None
            close = CLOSE * error * error / problem.lam
            state.step, n_cg = self._minimise(state, g, penalty, close, LEAST_DAMPING, EFFORT)
            if n_cg > MOST_CG:  # no better next time, and too dear to see
                state.step, state.stiff = None, True
                return None
            V, left = linearised(problem, state.columns, state.entries, state.step, state.V)
            if left > LEFT * problem.n:
                break
            feature, klass, excess, _ = violators(problem, V, limit)
            if excess.size == 0 or excess.max() <= close:
                break
            new = np.append(new[0], feature), np.append(new[1], klass)
            entries = state.entries.with_new(*new)
            if entries.u.size == state.entries.u.size:  # the same model once more
                state.stiff = state.on_path  # not solved, and hardly cheaper for the next penalty
                break
        return V

    @staticmethod
    def _most_new(state: State) -> int:
        """How many entries the next working set may take in."""
        least = 0 if state.by_class is None else NEW_BY_CLASS
        return most_new(state.problem, int(np.count_nonzero(state.entries.u)), least)

    def _iterate(self, state: State) -> None:
        state.work, state.sharp, state.gap_by_class = 0.0, None, 0.0
        if state.follows and self._first_of_a_penalty(state):
            return
        if state.step is not None and self._take_known_step(state):
            return
        if not state.looked:
            self._look(state)
        state.looked = False
        if joins(state.problem, state.entries):
            self._joined_steps(state)
        else:
            self._steps(state)
        self._centre_free(state, state.entries.u)  # Z may keep the mean: no loss sees it

    def _steps(self, state: State) -> None:
        """Solve the working set, or come closer to that."""
        progress = state.by_class
        if progress is None or progress.slow:
            self._newton_steps(state)
        else:
            self._class_steps(state, progress)
            if progress.slow:
                state.damping = self._first_damping(state)

    def _joined_steps(self, state: State) -> None:
        """The same with the classes without entries as one (:mod:`.joined`)."""
        problem, entries, Z, constant = joined(state.problem, state.entries, state.Z)
        V = np.empty_like(Z)
        small = replace(state, problem=problem, entries=entries, Z=Z, V=V, constant=constant)
        self._evaluate(small)
        self._steps(small)
        state.entries.u, state.damping, state.work = entries.u, small.damping, small.work
        state.Z[:, state.entries.classes] = Z[:, :-1]
        self._evaluate(state)

    def _first_of_a_penalty(self, state: State) -> bool:
        """Go to the minimum of the model from the solution with another penalty.

        Its dual point and U after its step are both of second order in the change of the penalty:
        most points of a path need no more.
        """
        state.follows = False
        V = self.sharpened(state)
        if V is None or not self._take_known_step(state):
            return False
        state.sharp = V
        return True

    def _look(self, state: State) -> None:
        """Look at all features for what belongs to the working set, and move the centre in time."""
        problem, limit = state.problem, self._most_new(state)
        state.gradient = full_gradient(problem, state.V)
        feature, klass, _, scale = violators(problem, state.V, limit, state.gradient)
        if state.centre is not None and self._solved(state, scale):
            state.centre, state.V = state.V, state.centre
            state.eta *= state.growth
            self._raise_damping(state)
            self._evaluate(state)
            state.moved = state.columns.sparse
            if state.by_class is not None:
                state.by_class.slow = True  # from one centre to the next Newton steps are better
            state.gradient = full_gradient(problem, state.V)
            feature, klass, _, scale = violators(problem, state.V, limit, state.gradient)
        state.entries, state.hessian = state.entries.with_new(feature, klass), None

    def _take_known_step(self, state: State) -> bool:
        """Make the step of the model that a dual point was taken from, if it is a good one."""
        _, g, penalty = self._subgradient(state)
        assert state.step is not None
        t, state.step, state.looked = self._move(state, state.step, g, penalty), None, False
        return t == 1.0

    def _newton_steps(self, state: State) -> None:
        """Solve the working set by Newton steps."""
        goal = None
        for _ in range(NEWTON_STEPS):
            error, gradient, penalty = self._subgradient(state)
            goal = self._goal(state, error) if goal is None else goal
            if error <= goal or not self._newton(state, gradient, penalty, error):
                break
            if self._long(state):
                break

    def _class_steps(self, state: State, progress: Progress) -> None:
        """Work on the working set by steps on single classes (:mod:`.class_newton`)."""
        entries = state.entries
        error, g, penalty = self._subgradient(state)
        goal = self._goal(state, error)
        before, nonzero, n_steps = self._objective(state), entries.u != 0.0, 0
        if not state.columns.sparse:
            (Xt,) = state.columns.data
            state.scores = ClassScores.of(
                state.problem, Xt, state.Z, state.V, state.centre, state.eta
            )
        for _ in range(STEPS):
            if error <= goal or self._long(state):
                break
            if progress.blocks is None:
                V = state.V if state.scores is None else state.scores.V
                progress.blocks = Blocks.of(state.problem, state.columns, entries, V, state.eta)
            found = self._class_step(state, progress, g, penalty)
            if found is None:
                break
            s, quadratic = found
            entries.u = entries.u + s
            n_steps += 1
            error, new, _ = self._subgradient(state)
            progress.stepped(self._objective(state), float((new - g) @ s), quadratic)
            g = new
        if state.scores is not None:
            state.scores.restore(state.Z, state.V)
            state.scores = None
        # complementarity, and what scaling V costs by the constraints of the working set
        complementarity = float(g @ entries.u + penalty @ np.abs(entries.u))
        dual = self._objective(state) - complementarity
        shrunk = error / max(state.problem.lam + error, 1e-300)
        state.gap_by_class = complementarity + shrunk * dual
        moved = np.count_nonzero(nonzero != (entries.u != 0.0))
        settled = bool(moved <= UNSETTLED * np.count_nonzero(entries.u))
        cost, newton = costs(state.problem, state.columns, entries, n_steps, many(state.V))
        progress.looked(before - self._objective(state), settled, cost, newton)

    def _class_step(
        self, state: State, progress: Progress, g: np.ndarray, penalty: np.ndarray
    ) -> tuple[np.ndarray, float] | None:
        """A step on every class and its s^T K s; Z and V go along. None where nothing is gained.

        The very first step has no quotient to go by: its length is the best of a few.
        """
        blocks, below = progress.blocks, self._below(state, penalty)
        assert blocks is not None
        s, gone = np.empty_like(g), np.zeros_like(g)
        first = not progress.values
        start = best = self._objective(state)
        while progress.scale <= SCALES[1]:
            state.work += blocks.work
            quadratic = blocks.step(progress.scale, g, state.entries.u, penalty, below, s)
            self._centre_free(state, s)
            self._add(state, s - gone)
            gone[:] = s
            self._evaluate(state)
            value = state.value + float(penalty @ np.abs(state.entries.u + s))
            if first and start > best < value:  # the step before was better
                first = False
                progress.values.append(start)
                progress.scale /= SHORTER
            elif not first and progress.accepts(value, quadratic):
                return s, quadratic
            else:
                best = min(best, value)
                progress.scale *= SHORTER
        self._add(state, -gone)
        self._evaluate(state)
        return None

    @staticmethod
    def _add(state: State, s: np.ndarray) -> None:
        """Add a step on the working set to the scores."""
        if state.scores is None:
            state.columns.add_product(state.Z, state.entries, s)
        else:
            state.scores.add(state.entries, s)

    @staticmethod
    def _centre_free(state: State, values: np.ndarray) -> None:
        """Take the mean over the classes off the values of features without penalty, in place.

        It changes no loss, and Newton steps have none but for rounding.
        """
        entries, problem = state.entries, state.problem
        if not problem.has_free:
            return
        free = problem.lam * problem.penalty_factor[entries.feature] == 0.0
        where = np.flatnonzero(free & ~problem.nonnegative[entries.feature])
        if where.size:
            feature = entries.feature[where]
            mean = np.bincount(feature, weights=values[where]) / problem.k
            mean[np.bincount(feature) < problem.k] = 0.0
            values[where] -= mean[feature]

    @staticmethod
    def _first_damping(state: State) -> float:
        """Where Newton steps begin after steps on single classes."""
        if state.centre is None:
            return DAMPING
        return DAMPING_SMOOTHED_SPARSE if state.columns.sparse else DAMPING_SMOOTHED

    @staticmethod
    def _raise_damping(state: State) -> None:
        """What is begun anew begins with short steps."""
        least = NEXT_DAMPING_SPARSE if state.columns.sparse else NEXT_DAMPING
        state.damping = max(state.damping, least)

    @staticmethod
    def _long(state: State) -> bool:
        """Whether the iteration has taken long enough."""
        return state.work > max(LONG, LONG_FOR_EACH * state.V.size)

    @staticmethod
    def _goal(state: State, error: float) -> float:
        """A tenth of the first error, or less where that is good enough."""
        return max(0.1 * error, min(0.5 * error, state.enough), SMALLEST_ERROR)

    @staticmethod
    def _objective(state: State) -> float:
        """The (smoothed) risk and the penalty."""
        problem, entries = state.problem, state.entries
        factors = problem.penalty_factor[entries.feature]
        return state.value + problem.lam * float(factors @ np.abs(entries.u))

    def _solved(self, state: State, scale: float) -> bool:
        """Whether the smoothed problem is solved well enough for the centre to move.

        The gap of (U, V) is what smoothing costs, ``loss(z) - (<v - y, z> - f(v))``, plus the inner
        error: complementarity, and the loss of dual value by scaling V towards the labels.
        """
        problem, entries = state.problem, state.entries
        F = linear = risk = 0.0
        for rows in problem.row_blocks():
            w, y, V, Z = problem.weights[rows], problem.y[rows], state.V[rows], state.Z[rows]
            F += float(w @ problem.loss.f(V, y))
            linear += float(w @ (np.einsum("il,il->i", V, Z) - true_class(Z, y)))
            risk += float(w @ problem.loss.value(Z, y))
        smoothing = risk - (linear - F)
        bound = problem.lam * problem.penalty_factor[entries.feature]
        inner = linear + float(bound @ np.abs(entries.u)) + (1.0 - scale) * -F
        state.gap = smoothing + inner
        # on the working set, subgradients below this make no larger inner error
        state.enough = 0.3 * INNER * smoothing / max(float(np.abs(entries.u).sum()), 1e-300)
        return inner <= INNER * smoothing

    def _subgradient(self, state: State) -> tuple[float, np.ndarray, np.ndarray]:
        """The largest entry of the smallest subgradient on the working set, G_U, and lam c."""
        entries, problem = state.entries, state.problem
        if state.scores is not None:
            return self._with_penalty(state, state.scores.gradient(entries))
        if state.gradient is None and state.columns.reads_all(entries, problem.k):
            state.gradient = full_gradient(problem, state.V)
        if state.gradient is not None:
            g = state.gradient[entries.feature, entries.klass]
        elif state.columns.reads_entries(entries, state.V):
            g = state.columns.gradient_of_dense(entries, problem, state.V)
        else:
            columns = residual_columns(state.V, problem.y, problem.weights, entries.classes)
            g = state.columns.gradient(entries, columns)
        return self._with_penalty(state, g)

    def _with_penalty(self, state: State, g: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """What ``_subgradient`` returns for this G_U on the working set."""
        entries, problem = state.entries, state.problem
        penalty = problem.lam * problem.penalty_factor[entries.feature]
        smallest = np.where(
            entries.u != 0,
            np.abs(g + penalty * np.sign(entries.u)),
            np.maximum(np.maximum(-g - penalty, g - self._below(state, penalty)), 0.0),
        )
        return (float(smallest.max()) if smallest.size else 0.0), g, penalty

    def _newton(self, state: State, g: np.ndarray, penalty: np.ndarray, error: float) -> bool:
        """One damped Newton step with line search; False where no decrease is left."""
        sparse = state.centre is not None and state.columns.sparse
        few_cg, many_cg, most_cg = CG_SPARSE if sparse else CG
        effort = Effort(2, 5, most_cg, PRODUCTS * min(1.0, DAMPED / state.damping))
        s, n_cg = self._minimise(state, g, penalty, 0.1 * error, state.damping, effort)
        t = self._move(state, s, g, penalty)
        if t < 1.0:
            state.damping = min(1.0, state.damping * (4 if t > 0.2 else 16))
        elif n_cg > many_cg:
            state.damping = min(1.0, 2 * state.damping)
        elif n_cg < few_cg:
            state.damping = max(1e-9, 0.3 * state.damping)
        return t >= SHORTEST

    def _minimise(
        self,
        state: State,
        g: np.ndarray,
        penalty: np.ndarray,
        tol: float,
        damping: float,
        effort: Effort,
    ) -> tuple[np.ndarray, int]:
        """The step that minimises the damped model, and its conjugate gradient iterations.

        ``tol`` and ``effort`` are those of :func:`.l1_model.minimise_model`.
        """
        problem, entries = state.problem, state.entries
        largest = state.eta if state.centre is not None else 1.0
        damped = np.maximum(damping * largest * state.curvature[entries.feature], 1e-11 * tol)
        below = self._below(state, penalty)
        h = problem.loss.curvature(state.V, state.eta)
        if state.moved and state.centre is not None:
            # V has overshot and lost half of its support: what it had, the centre still has
            h[state.centre > 0.0] = state.eta
            state.moved = False
        H = self._hessian(state, h, damping, effort.products)
        if H is not None:
            diagonal, kept = np.einsum("ii->i", H), H.diagonal().copy()
            diagonal += damped
            s = minimise_dense(H, g, entries.u, penalty, below, tol)
            diagonal[:] = kept  # the next step may change H and have another damping
            return s, 0
        if state.columns.packs(entries, h):
            curvature = curvature_columns(h, problem.weights, entries.classes)
            packed, positions = state.columns.pack(entries, curvature)
        else:
            packed, positions = state.columns.share(entries, h, problem.weights)
        del h  # as large as the scores
        s, n_cg = minimise_model(
            entries.klass, packed, positions, g, entries.u, penalty, below, damped, tol, effort
        )
        state.work += (20.0 + 2.0 * n_cg) * float((packed[1] - packed[0]).sum())
        return s, n_cg

    def _move(self, state: State, s: np.ndarray, g: np.ndarray, penalty: np.ndarray) -> float:
        """Go along the step s as far as the objective falls; returns the part t that was gone."""
        entries = state.entries
        move = state.columns.along(state.Z, entries, s)
        before = state.value + penalty @ np.abs(entries.u)
        slope = g @ s + penalty @ (np.abs(entries.u + s) - np.abs(entries.u))
        t = 1.0
        move(1.0)
        while True:
            self._evaluate(state)
            after = state.value + penalty @ np.abs(entries.u + t * s)
            if after <= before + 1e-4 * t * slope or t < SHORTEST:
                break
            t *= 0.5
            move(-t)
        entries.u = entries.u + (s if t == 1.0 else t * s)
        return t

    @staticmethod
    def _hessian(state: State, h: np.ndarray, damping: float, products: float) -> np.ndarray | None:
        """The Hessian on the working set, or None where conjugate gradients are the cheaper way."""
        columns, entries, weights = state.columns, state.entries, state.problem.weights
        if columns.sparse or entries.u.size > BLAS_SIZE:
            return None
        before = np.empty((0, h.shape[1])) if state.hessian is None else state.hessian.h
        by_rows, by_blas, product = columns.hessian_work(entries, h, before, weights)
        work = min(by_rows, by_blas)
        solves = FACE * float(np.count_nonzero(entries.u)) ** 3
        most = BLAS_WORK / 8 if state.centre is None and many(h) else ROW_WORK
        if work > most or work + solves > products * product:
            return None
        state.work += work
        if by_rows < by_blas:
            kept = state.hessian or Hessian.zero(entries, h.shape[1])
            state.hessian = columns.row_hessian(entries, kept, h, weights)
            return state.hessian.H
        if state.formed is not None and damping < SINGLE:
            H = columns.grown_hessian(*state.formed, entries, h, weights)
        else:
            feature_size = np.sqrt(state.curvature) if damping >= SINGLE else None
            H = columns.dense_hessian(entries, h, weights, feature_size)
        state.formed = (entries, H) if damping < SINGLE else None
        return H

    @staticmethod
    def _below(state: State, penalty: np.ndarray) -> np.ndarray:
        """The penalty of negative values: infinite where U >= 0 is asked for."""
        return np.where(state.problem.nonnegative[state.entries.feature], np.inf, penalty)

    @staticmethod
    def _evaluate(state: State) -> None:
        """The (smoothed) risk at Z, and the maximising V: G_U belongs to it."""
        problem, loss = state.problem, state.problem.loss
        state.value, state.gradient, state.formed = state.constant, None, None
        state.work += 10.0 * state.Z.size
        if state.scores is not None:
            state.value += state.scores.evaluate()
            return
        for rows in problem.row_blocks():
            y, Z, V = problem.y[rows], state.Z[rows], state.V[rows]
            if state.centre is not None:
                losses = loss.smoothed(state.centre[rows], Z, state.eta, y, V)
            else:
                losses = loss.evaluate(Z, y, V)
            state.value += float(problem.weights[rows] @ losses)


def _first_eta(problem: Problem) -> float:
    """The first step of the proximal term: scores are of the size of the loss."""
    return 1.0 / max(problem.at_zero, 1e-300)
