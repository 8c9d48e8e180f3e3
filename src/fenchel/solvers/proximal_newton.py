"""Proximal steps on the dual, Newton steps on a working set of the primal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.equal_columns import EqualColumns
from fenchel.problem import Matrix, Problem
from fenchel.solvers.alike import Alike
from fenchel.solvers.along_path import extrapolate, newcomers, shrink_centre
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
from fenchel.solvers.gathered import gathered, gathers
from fenchel.solvers.joined import joined, joins
from fenchel.solvers.kept_hessian import Room
from fenchel.solvers.l1_model import (
    BLAS_SIZE,
    Effort,
    minimise_dense,
    minimise_quadratic,
)
from fenchel.solvers.linearised import linearises, model_point
from fenchel.solvers.newton_state import ETA_GROWTH, FAR_APART, State
from fenchel.solvers.packed_quadratic import PackedQuadratic
from fenchel.solvers.penalised import PenalisedSolver
from fenchel.solvers.working_set import (
    GROWTH,
    Columns,
    Entries,
    many,
    most_new,
    violators,
)
from fenchel.threads import one_thread
from fenchel.time_limit import TimeLimitError, late

#: Newton steps between two looks at all features.
NEWTON_STEPS = 30

#: Conjugate gradient iterations on a face: fewer than the first number ask for less damping, more
#: than the second for more, the last is the limit. With a sparse X and V they are cheap beside the
#: passes over all of V that a Newton step makes.
CG, CG_SPARSE = (15, 40, 50), (45, 120, 150)

#: On dense data the Hessian is formed where that takes no more than so many conjugate gradient
#: iterations, which make more and worse steps, but fewer where the damping is above the second.
PRODUCTS, DAMPED = 6000, 1e-4

#: An iteration makes no further step after so many multiplications (a few seconds), or so many for
#: each entry of V, as many as the look at all features and the certificate take.
LONG, LONG_FOR_EACH = 1 << 30, 100

#: Where a product has fewer multiplications than this, an iteration takes milliseconds, and a
#: certificate a good part of it. None is made where the gap is more than so many times its limit:
#: by what a survey says of it, or the working set, with a smooth loss. That was 0.25 to 7 times the
#: certified gap in the first iterations of 21 problems, and up to 1.5 times where U is still rough.
CHEAP, SURVEYED, ROUGHLY, WHILE_ROUGH = 1 << 24, 3.0, 2.0, 1.5

#: The same for the survey of a larger problem, whose certificates take longer: they are made where
#: the gap is this part of the one that was certified last.
SURVEYED_LARGE, PROGRESS = 1.2, 0.25

#: No subgradient is asked to be smaller, in units of the features where these are small.
SMALLEST_ERROR = 1e-15

#: A full step leaves what damping has held back of it. More than this part of the error, and the
#: damping falls, though conjugate gradients may take longer then.
HELD = 0.3

#: A step that is cut short raises the damping by this factor, one that is cut to a fifth or less by
#: the second.
RAISED = 4, 16

#: A line search that comes down to this has nothing left to gain.
SHORTEST = 1e-6

#: A line search shortens a step to no less than this part at once, and by more than halves along a
#: path on dense data, or where X is sparse and scores are so many that to look at them is dear.
SHORTEN, MANY_SCORES = 0.1, 1 << 22

#: The growth of a working set of Newton steps on dense data where the loss is smoothed: with a new
#: centre many entries are violated that stay zero, and the Hessian of all of them is large.
GROWTH_SMOOTHED = 0.25

#: The growth of eta on a path from the second point on, where the first centre is close already, on
#: dense and on sparse data: with more of it the last centres ask for many damped steps.
ETA_GROWTH_PATH, ETA_GROWTH_PATH_SPARSE = 2.0, 1.6

#: The next centre, and the next point of a path, begin with at least this damping: less, which was
#: right at the end of the one before, asks for long line searches now; the more where X is sparse.
NEXT_DAMPING, NEXT_DAMPING_SPARSE = 1e-4, 1e-3


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
        uniform, alike = 1.0 / problem.k, None
        if start is None or start.V is None:
            alike = Alike.of(problem, entries.classes)
        if alike is not None:
            problem = alike.small
            entries = Entries(entries.feature, alike.place[entries.klass], entries.u)
        Z = np.zeros((problem.n, problem.k))
        if entries.u.size:
            Z = problem.design.matmul(entries.matrix(entries.u, (problem.d, problem.k)))
        centre = None
        if not problem.loss.smooth:
            if start is None or start.V is None:
                centre = np.full((problem.n, problem.k), uniform)
            else:
                centre = start.V.toarray() if sp.issparse(start.V) else np.array(start.V)
        state = State(
            problem, Columns.of(problem.design), entries, Z, np.zeros_like(Z), 0.0, centre,
            _first_eta(problem, start), problem.design.column_norms(problem.weights) ** 2,
            Room(min(BLAS_SIZE, problem.d * problem.k)), alike=alike,
        )  # fmt: skip
        state.evaluate()
        cheap = state.columns.sparse or few_coefficients(problem)
        if problem.loss.smooth or (start is None and cheap):
            state.by_class = Progress()
        return state

    def follow(
        self,
        state: State,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        horizon: int,
    ) -> State:
        """Keep the working set, the damping, and, with V as the centre, nearly the step."""
        last = state.problem.lam
        ratio = problem.lam / last if last > 0.0 else 1.0
        state.gap, state.bracket, state.survey = np.inf, FAR_APART, None
        if state.alike is not None:
            state.alike = replace(state.alike, problem=problem)
            problem = state.alike.small
        state.problem = problem
        state.step, state.looked = None, False  # of another problem
        state.stiff = state.stiff and ratio < 1.0  # a smaller penalty makes it no better
        state.on_path = True
        state.follows, state.sharp = not state.columns.sparse, None  # conjugate gradients are dear
        if state.centre is not None:
            entries = state.entries  # afresh: no rounding adds up along a path
            state.Z = state.columns.product(entries, entries.u, problem.k)
            state.centre, state.V = state.V, state.centre
            state.eta = max(state.eta / ETA_GROWTH, _first_eta(problem))
            state.growth = ETA_GROWTH_PATH_SPARSE if state.columns.sparse else ETA_GROWTH_PATH
            if not state.columns.sparse:
                shrink_centre(state, min(1.0, ratio))
            state.evaluate()
        if problem.loss.smooth and state.columns.sparse:  # conjugate gradients would be dear
            state.by_class = Progress()
        if problem.loss.smooth and not problem.loss.twice_differentiable:
            extrapolate(state, last)
        self._raise_damping(state)
        return state

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            self._iterate(state)

    def points(self, state: State) -> list[Point]:
        problem, entries, known = state.whole, state.entries, state.alike
        state.shown = state.gap_so_far
        entries = entries if known is None else known.in_all(entries)
        shape = problem.d, problem.k
        dense = problem.d * problem.k <= DENSE_POINT
        U = entries.array(entries.u, shape) if dense else entries.matrix(entries.u, shape)
        # updated in place, so what is handed out is a copy if a small one is enough; who certifies
        # a large one copies it
        V: Matrix = state.V if state.sharp is None else state.sharp
        if known is not None:
            V = EqualColumns(V, known)
        elif V.size <= DENSE_POINT:
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
        if state.stiff or state.rough or not linearises(state.problem):
            return None
        return model_point(state, self._most_new(state), self._minimise)

    def is_far(self, state: State, goal: float, sharp: float) -> bool:
        """By a survey of the points so far, or by the gap on the working set.

        Of a large problem the first point is certified in any case, and so is one with a
        quarter of the gap of the last: users wait for them.
        """
        cheap = self._is_cheap(state.whole)
        if not cheap and state.gap_so_far <= PROGRESS * state.shown:
            return False
        if state.centre is not None:
            far = SURVEYED if cheap else SURVEYED_LARGE
            return bool(far * goal < state.gap_so_far < np.inf)
        if not cheap:
            return False
        limit = WHILE_ROUGH * goal if state.rough else ROUGHLY * max(goal, sharp)
        return bool(limit < state.gap_by_class < np.inf)

    @staticmethod
    def _is_cheap(problem: Problem) -> bool:
        return problem.n * problem.d * problem.k <= CHEAP

    @staticmethod
    def _most_new(state: State) -> int:
        """How many entries the next working set may take in."""
        least = 0 if state.by_class is None else NEW_BY_CLASS
        steps_on_classes = state.by_class is not None and not state.by_class.slow
        smoothed = state.centre is not None and not state.columns.sparse
        growth = GROWTH_SMOOTHED if smoothed and not steps_on_classes else GROWTH
        nonzeros = int(np.count_nonzero(state.entries.u))
        problem = state.whole
        # features without penalty have coefficients in any case: these come on top
        free = (
            int(np.count_nonzero(problem.lam * problem.penalty_factor == 0.0)) - problem.intercept
        )
        return most_new(problem, nonzeros, least, growth) + free * problem.k

    def _iterate(self, state: State) -> None:
        state.work, state.sharp, state.gap_by_class, state.rough = 0.0, None, 0.0, False
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
        state.centre_free(state.entries.u)  # Z may keep the mean: no loss sees it
        if state.centre is not None:
            with suppress(TimeLimitError):  # then there is time for no more than the certificate
                self._survey(state)  # the next iteration would begin with it

    def _steps(self, state: State) -> None:
        """Solve the working set, or come closer to that."""
        if gathers(state):
            self._gathered_steps(state)
            return
        progress = state.by_class
        if progress is None or progress.slow:
            self._newton_steps(state)
        else:
            self._class_steps(state, progress)
            if progress.slow:
                state.damping = self._first_damping(state)

    def _gathered_steps(self, state: State) -> None:
        """The same with the features of the working set as dense data (:mod:`.gathered`)."""
        small, features = gathered(state)
        self._steps(small)
        done = small.entries
        state.entries = Entries(features[done.feature], done.klass, done.u)
        state.damping, state.work, state.rough = small.damping, small.work, small.rough
        state.gap_by_class = small.gap_by_class
        state.evaluate()

    def _joined_steps(self, state: State) -> None:
        """The same with the classes without entries as one (:mod:`.joined`)."""
        problem, entries, Z, constant = joined(state.problem, state.entries, state.Z)
        V = np.empty_like(Z)
        small = replace(state, problem=problem, entries=entries, Z=Z, V=V, constant=constant)
        small.evaluate()
        self._steps(small)
        done, classes = small.entries, state.entries.classes
        state.entries = Entries(done.feature, classes[done.klass], done.u)
        state.damping, state.work = small.damping, small.work

        def restore(rows: slice) -> None:
            state.Z[rows, classes] = Z[rows, :-1]

        state.problem.in_rows(restore)
        state.evaluate()

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
        if state.survey is None:
            self._survey(state)
        assert state.survey is not None
        feature, klass, solved = state.survey
        if solved:
            state.centre, state.V = state.V, state.centre
            state.eta *= state.growth
            self._raise_damping(state)
            state.evaluate()
            state.moved = state.columns.sparse
            if state.by_class is not None:
                state.by_class.slow = True  # from one centre to the next Newton steps are better
            feature, klass, _ = self._violated(state)
        state.take_in(feature, klass)

    def _survey(self, state: State) -> None:
        """What is violated, and whether the smoothed problem is solved."""
        feature, klass, scale = self._violated(state)
        solved = state.centre is not None and state.solved(scale)
        state.survey = feature, klass, solved

    def _violated(self, state: State) -> tuple[np.ndarray, np.ndarray, float]:
        """The entries that the working set may take in, and the scale (:func:`.violators`)."""
        limit = self._most_new(state)
        if state.alike is not None:
            feature, klass, _, scale = state.alike.violators(state.V, limit)
            return feature, klass, scale
        state.know_gradient()
        if state.on_path and state.centre is not None and not state.columns.sparse:
            return newcomers(state, limit)
        feature, klass, _, scale = violators(state.problem, state.V, limit, state.gradient)
        return feature, klass, scale

    def _take_known_step(self, state: State) -> bool:
        """Make the step of the model that a dual point was taken from, if it is a good one."""
        _, g, penalty = state.subgradient()
        assert state.step is not None
        t, state.step, state.looked = self._move(state, state.step, g, penalty), None, False
        return t == 1.0

    def _newton_steps(self, state: State) -> None:
        """Solve the working set by Newton steps."""
        goal = None
        for _ in range(NEWTON_STEPS):
            error, gradient, penalty = state.subgradient()
            goal = self._goal(state, error) if goal is None else goal
            if error <= goal or not self._newton(state, gradient, penalty, error):
                break
            if self._long(state):
                break

    def _class_steps(self, state: State, progress: Progress) -> None:
        """Work on the working set by steps on single classes (:mod:`.class_newton`)."""
        entries = whole = state.entries
        error, g, penalty = state.subgradient()
        goal = self._goal(state, error)
        before = value = state.objective()
        nonzero, n_steps = entries.u != 0.0, 0
        if not state.columns.sparse:
            (Xt,) = state.columns.data
            state.scores = ClassScores.of(
                state.problem, Xt, state.Z, state.V, state.centre, state.eta
            )
        for _ in range(STEPS):
            if error <= goal or self._long(state):
                break
            if progress.blocks is None:
                if n_steps > 0 and not state.columns.sparse:
                    # blocks cost the square of their size, and most that came in stay at zero
                    moves = (entries.u != 0.0) | (np.abs(g) > penalty)
                    kept = np.flatnonzero(nonzero | moves)
                    entries, nonzero = entries.only(kept), nonzero[kept]
                    g, penalty = g[kept], penalty[kept]
                    state.work_on(entries)
                V = state.V if state.scores is None else state.scores.V
                progress.blocks = Blocks.of(state.problem, state.columns, entries, V, state.eta)
                if not state.columns.sparse:
                    state.room.blocks = max(state.room.blocks, entries.block_bytes)
            found = self._class_step(state, progress, g, penalty, value)
            if found is None:
                break
            s, quadratic, value = found
            entries.u = entries.u + s
            n_steps += 1
            error, new, _ = state.subgradient()
            progress.stepped(value, float((new - g) @ s), quadratic)
            g = new
        if state.scores is not None:
            state.scores.restore(state.Z, state.V)
            state.scores = None
        state.gap_by_class = state.gap_on_working_set(error, g, penalty)
        state.rough = error > state.problem.lam
        moved = np.count_nonzero(nonzero != (entries.u != 0.0))
        settled = bool(moved <= UNSETTLED * np.count_nonzero(entries.u))
        cost, newton = costs(state.problem, state.columns, whole, n_steps, many(state.V))
        progress.looked(before - state.objective(), settled, cost, newton)

    def _class_step(
        self, state: State, progress: Progress, g: np.ndarray, penalty: np.ndarray, start: float
    ) -> tuple[np.ndarray, float, float] | None:
        """A step on every class, its s^T K s and the objective there; Z and V go along.

        None where nothing is gained; ``start`` is the objective before. The very first step has no
        quotient to go by: its length is the best of a few.
        """
        blocks, below = progress.blocks, state.penalties[1]
        assert blocks is not None
        s, gone = np.empty_like(g), np.zeros_like(g)
        first, best = not progress.values, start
        while progress.scale <= SCALES[1]:
            state.work += blocks.work
            quadratic = blocks.step(progress.scale, g, state.entries.u, penalty, below, s)
            state.centre_free(s)
            state.add(s - gone)
            gone[:] = s
            state.evaluate()
            value = state.value + float(penalty @ np.abs(state.entries.u + s))
            if first and start > best < value:  # the step before was better
                first = False
                progress.values.append(start)
                progress.scale /= SHORTER
            elif not first and progress.accepts(value, quadratic):
                return s, quadratic, value
            else:
                best = min(best, value)
                progress.scale *= SHORTER
        state.add(-gone)
        state.evaluate()
        return None

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
        size = state.whole.n * state.whole.k
        return late() or state.work > max(LONG, LONG_FOR_EACH * size)

    @staticmethod
    def _goal(state: State, error: float) -> float:
        """A tenth of the first error, or less where that is good enough."""
        return max(0.1 * error, min(0.5 * error, state.enough), SMALLEST_ERROR * state.size)

    def _newton(self, state: State, g: np.ndarray, penalty: np.ndarray, error: float) -> bool:
        """One damped Newton step with line search; False where no decrease is left."""
        sparse = state.centre is not None and state.columns.sparse
        few_cg, many_cg, most_cg = CG_SPARSE if sparse else CG
        effort = Effort(2, 5, most_cg, PRODUCTS * min(1.0, DAMPED / state.damping))
        s, n_cg = self._minimise(state, g, penalty, 0.1 * error, state.damping, effort)
        t = self._move(state, s, g, penalty)
        if t < 1.0:
            state.damping = min(1.0, state.damping * RAISED[int(t <= 0.2)])
        elif n_cg > many_cg:
            state.damping = min(1.0, 2 * state.damping)
        elif n_cg < few_cg or self._held_back(state, s, error):
            state.damping = max(1e-9, 0.3 * state.damping)
        return t >= SHORTEST

    @staticmethod
    def _held_back(state: State, s: np.ndarray, error: float) -> bool:
        """Whether damping leaves a good part of the error, after a whole step s."""
        unit = state.eta if state.centre is not None else 1.0  # as in _minimise
        damped = unit * state.damping * state.curvature[state.entries.feature]
        return bool(np.abs(damped * s).max(initial=0.0) > HELD * error)

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

        ``tol`` and ``effort`` are those of :func:`.l1_model.minimise_quadratic`.
        """
        if gathers(state):
            small, _ = gathered(state)
            s, n_cg = self._minimise(small, g, penalty, tol, damping, effort)
            state.work = small.work
            return s, n_cg
        problem, entries = state.problem, state.entries
        unit = state.eta if state.centre is not None else 1.0  # of the model: its H outlives eta
        g, penalty, tol = g / unit, penalty / unit, tol / unit
        damped = np.maximum(damping * state.curvature[entries.feature], 1e-11 * tol * state.size)
        below = state.penalties[1] / unit
        if state.centre is not None and state.columns.sparse:
            h = problem.loss.support(state.V, state.eta, problem.y)
        else:
            h = problem.loss.curvature(state.V, state.eta, problem.y)
        if state.moved and state.centre is not None:
            # V has overshot and lost half of its support: what it had, the centre still has
            np.maximum(h, problem.loss.support(state.centre, state.eta, problem.y), out=h)
            state.moved = False
        H = state.dense_hessian(h, damping, effort.products)
        if H is not None:
            diagonal, kept = np.einsum("ii->i", H), H.diagonal().copy()
            diagonal += damped
            behind = state.room.behind(entries.u.size)
            s = minimise_dense(H, g, entries.u, penalty, below, tol, behind)
            diagonal[:] = kept  # the next step may change H and have another damping
            return s, 0
        quadratic = state.quadratic(h, damped)
        del h  # as large as the scores
        with one_thread():
            if isinstance(quadratic, PackedQuadratic) and quadratic.forms_hessian():
                H = quadratic.hessian(state.room)
                return minimise_dense(H, g, entries.u, penalty, below, tol), 0
            s, n_cg = minimise_quadratic(
                quadratic, g, entries.u, penalty, below, damped, tol, effort
            )
        state.work += (20.0 + 2.0 * n_cg) * quadratic.work
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
            state.evaluate()
            after = state.value + penalty @ np.abs(entries.u + t * s)
            if after <= before + 1e-4 * t * slope or t < SHORTEST:
                break
            last, t = t, self._shorter(state, t, after - before, slope)
            move(t - last)
        entries.u = entries.u + (s if t == 1.0 else t * s)
        return t

    @staticmethod
    def _shorter(state: State, t: float, change: float, slope: float) -> float:
        """The part of a step to try after t, which has changed the objective so.

        Half of t; or the lowest point of the parabola through what is known, if that is shorter:
        where X is sparse, and a look at so many scores is half of a Newton step, and along a path
        on dense data, where the first step after a change of penalty is often far too long.
        """
        by_parabola = state.Z.size >= MANY_SCORES if state.columns.sparse else state.on_path
        if not by_parabola or not np.isfinite(change):
            return 0.5 * t
        rise = change - t * slope  # above the tangent
        return float(min(max(-0.5 * slope * t**2 / rise, SHORTEN * t), 0.5 * t))


def _first_eta(problem: Problem, start: Start | None = None) -> float:
    """The first step of the proximal term: that of the start, or scores as large as the loss.

    A step that is too long leaves the start at once, and what it was good for is lost.
    """
    if start is not None and start.step is not None:
        return start.step
    return 1.0 / max(problem.at_zero, 1e-300)
