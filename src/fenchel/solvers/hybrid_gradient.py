"""The primal-dual hybrid gradient method, restarted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from fenchel.design import Design, SparseDesign
from fenchel.design.dense import by_columns
from fenchel.kernels import hybrid_gradient as kernels
from fenchel.problem import BLOCK_ENTRIES, Problem, dense
from fenchel.solvers.base import DENSE_POINT, Point, Start
from fenchel.solvers.penalised import PenalisedSolver

#: Iterations between two looks at the gap.
LOOK = 10

#: A gap this much smaller than at the last restart asks for another.
DECAY = 0.5

#: The rule of PDLP, which allows for ever smaller changes of the step, begins as after so many
#: steps: at its own beginning it would cut the first ones to a fifth.
TRIED = 10

#: A class whose own step was too long goes on with this part of it, but no less than the second,
#: and comes back to the step of all by the third.
SHORTER, SHORTEST, LONGER = 0.7, 0.05, 1.02

#: Products that a look spends on a better dual point.
REPAIRS = 2

#: Features are scaled as if their norms were no smaller, nor larger than the inverse.
SMALLEST_NORM = 1e-100

#: Above this gap, in parts of P(0), products read an X of so many entries in single precision: they
#: are as fast as they read. Not where a norm of its columns is below the third number or above the
#: last.
ROUGH, LARGE, SMALL_NORM, LARGE_NORM = 1e-4, 1 << 17, 1e-15, 1e15

#: A point with more non-zeros than this part of its entries is multiplied as a dense one.
MANY = 0.15

#: Rows of V are stepped in blocks of about this many entries, which stay in the cache.
CACHE_ENTRIES = 1 << 15

#: Rows of a matrix with few non-zeros: pointers, columns, values.
Lists: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class Pair:
    """A point (U, V) with its scores Z = X U and its gradient G_U; all but V by class."""

    U: Lists
    G: np.ndarray
    V: np.ndarray
    Z: np.ndarray

    @classmethod
    def empty(cls, problem: Problem) -> Pair:
        n, d, k = problem.n, problem.d, problem.k
        none = np.zeros(k + 1, np.int64), np.empty(0, np.int32), np.empty(0)
        return cls(none, np.zeros((k, d)), np.empty((n, k)), np.empty((k, n)))


@dataclass
class State:
    problem: Problem
    products: Products
    now: Pair
    new: Pair
    average: Pair  # of the iterates since the restart, as of the last look
    totals: tuple[np.ndarray, np.ndarray]  # sums of step * (U, V) since the restart
    origin: tuple[Lists, np.ndarray]  # where the last restart began
    scale: np.ndarray  # diagonal of the metric of U
    omega: float  # primal weight: the primal step is eta omega scale, the dual one eta / omega
    pace: np.ndarray  # the primal step of every class in parts of that
    eta: float = 1.0
    total: float = 0.0  # sum of steps since the restart
    tried: int = TRIED  # steps so far, also those that were too long
    iteration: int = 0
    restart_gap: float = np.inf
    # the best of the looks so far, with the points that they belong to
    primal: tuple[float, Lists | None] = (np.inf, None)
    dual: tuple[float, np.ndarray | None] = (-np.inf, None)
    gap: float = np.inf

    @property
    def dual_step(self) -> float:
        return self.eta / self.omega


class HybridGradient(PenalisedSolver):
    """Restarted primal-dual hybrid gradient for the penalised problem, any loss.

    Euclidean proximal steps, so that both iterates are sparse and a product with X costs a small
    part of a dense one::

        U+ = soft-threshold(U - tau G_U(V), tau lam c)
        V+ = argmax_v <v, z> - f(v, y) - ||v - v0||^2 / (2 sigma),   z = X (2 U+ - U)

    Steps follow the rule of PDLP: they grow as long as ``eta <= ||dz||^2 / (2 <dV, X dU>)`` holds
    for the step just made. The norm of X on sparse differences is far below its norm on all, and
    so the steps are longer than a constant one could be. The run restarts from the better of the
    last point and the average whenever the gap has halved, and balances then the two step sizes.

    The bilinear form is a sum over the classes. Those with many samples are the first for which a
    step is too long: they make shorter ones, as long as the rule is broken by what is theirs in it.
    And where a class violates its dual constraints, a look repairs it alone.
    """

    name: ClassVar[str] = "hybrid-gradient"
    default_max_iter: ClassVar[int] = 10_000
    check_growth: ClassVar[float] = 1.0

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        self.check_problem(problem)
        norms = problem.design.column_norms(problem.weights)
        in_range = ((norms == 0.0) | (norms > SMALL_NORM)) & (norms < LARGE_NORM)
        single = problem.n * problem.d >= LARGE and bool(in_range.all())
        now, products = Pair.empty(problem), Products.of(problem, single)
        if start is not None:
            U = dense(start.U).T.astype(np.float64)
            U[(U < 0.0) & problem.nonnegative] = 0.0
            now.U = kernels.nonzeros(U, U.size)
        products.scores(now.U, now.Z)
        if start is None or start.V is None:
            now.V[:] = 1.0 / problem.k
            products.gradient_of_equal(now.G)
        else:
            now.V[:] = dense(start.V)
            products.gradient(now.V, now.G)
        norms = np.clip(np.where(norms > 0.0, norms, 1.0), SMALLEST_NORM, 1.0 / SMALLEST_NORM)
        scale = 1.0 / norms**2
        return State(
            problem, products, now, Pair.empty(problem), Pair.empty(problem),
            (np.zeros_like(now.G), np.zeros_like(now.V)), (now.U, now.V.copy()), scale,
            omega=0.7 * problem.at_zero * np.sqrt(problem.k), pace=np.ones(problem.k),
        )  # fmt: skip

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            used, V = self._step(state)
            kernels.accumulate(state.totals[0], used, *state.now.U)
            if V is None:
                state.totals[1][...] += used * state.now.V
            else:
                kernels.accumulate(state.totals[1], used, *V)
            state.total += used
            state.iteration += 1
            if state.iteration % LOOK == 0:
                self._look(state)

    def _step(self, state: State) -> tuple[float, Lists | None]:
        """One step, and the size of the next; returns the size of this one, and V by lists."""
        problem, now, new = state.problem, state.now, state.new
        while True:
            eta, omega, sigma = state.eta, state.omega, state.dual_step
            tau = eta * omega * state.scale
            above = tau * problem.lam * problem.penalty_factor
            below = np.where(problem.nonnegative, np.inf, above)
            new.U, moved_U = kernels.primal_step(*now.U, now.G, tau, above, below, state.pace)
            state.products.scores(new.U, new.Z)
            moved_V, crossed = np.zeros(problem.k), np.zeros(problem.k)
            for rows, ahead in rows_of(problem, new.Z, now.Z, 1.0):
                new.V[rows] = problem.loss.prox_euclidean(
                    now.V[rows], ahead, sigma, problem.y[rows]
                )
                kernels.add_change(now.V[rows], new.V[rows], problem.weights[rows], moved_V)
            V = state.products.gradient(new.V, new.G)
            kernels.add_pairing(*new.U, now.G, new.G, crossed)  # <dU, dG>, which is <dV, X dU>
            kernels.add_pairing(*now.U, new.G, now.G, crossed)
            moved = eta * moved_U / state.pace + omega * moved_V
            limit = _quotient(0.5 * float(moved.sum()), abs(float(crossed.sum())))
            too_long = 2.0 * eta * np.abs(crossed) > moved
            state.pace = np.where(
                too_long,
                np.maximum(SHORTER * state.pace, SHORTEST),
                np.minimum(LONGER * state.pace, 1.0),
            )
            state.tried += 1
            shorter, longer = 1.0 - (state.tried + 1) ** -0.3, 1.0 + (state.tried + 1) ** -0.6
            state.eta = min(shorter * limit, longer * eta)
            if eta <= limit:
                break
        state.now, state.new = new, now
        return eta, V

    def _look(self, state: State) -> None:
        """Restart from the better of the last point and the average where the gap has halved."""
        problem, now = state.problem, state.now
        primal, dual = mean_primal, mean_dual = bounds(problem, now)
        average = now
        if state.restart_gap < np.inf:  # the first iterates are nowhere near, and not sparse
            average = self._average(state)
            mean_primal, mean_dual = bounds(problem, average)
        repaired = self._repaired(state, average)
        lowest, point = (primal, now) if primal <= mean_primal else (mean_primal, average)
        if lowest < state.primal[0]:
            state.primal = lowest, point.U
        highest, V = max(
            (dual, now.V), (mean_dual, average.V), (repaired, state.new.V), key=lambda pair: pair[0]
        )
        if highest > state.dual[0]:
            state.dual = highest, V.copy()
        state.gap = state.primal[0] - state.dual[0]
        if state.gap <= ROUGH * problem.at_zero:
            state.products.make_exact()
        gap = min(primal - dual, mean_primal - mean_dual)
        if gap <= DECAY * state.restart_gap:
            state.restart_gap = gap
            if mean_primal - mean_dual < primal - dual:
                state.now, state.average = average, now
            self._restart(state)

    @staticmethod
    def _average(state: State) -> Pair:
        average = state.average
        average.U = kernels.nonzeros(state.totals[0] / state.total, state.totals[0].size)
        np.divide(state.totals[1], state.total, out=average.V)
        state.products.scores(average.U, average.Z)
        state.products.gradient(average.V, average.G)
        return average

    @staticmethod
    def _repaired(state: State, at: Pair) -> float:
        """The dual value of a point, repaired class by class; the new one is in ``state.new``.

        One factor for all of V - Y is as small as the worst class of all asks for. Here every
        class has its own, and a sample the smaller of two, so that its row stays in the simplex:
        that of the class in question and that of its true class. What this moves from others is
        of second order, and most of it is repaired the second time.
        """
        problem, new = state.problem, state.new
        worst = violation(problem, at.G)
        if problem.has_free or worst.max() <= 1.0:  # an equality does not survive several factors
            return -np.inf
        factor = np.ones(problem.k)
        for _ in range(REPAIRS):
            factor /= np.maximum(worst, 1.0)
            kernels.shrink_classes(at.V, problem.y, factor, new.V)
            state.products.gradient(new.V, new.G)
            worst = violation(problem, new.G)
        return -problem.conjugate(new.V) / max(1.0, float(worst.max()))

    @staticmethod
    def _restart(state: State) -> None:
        """Begin the average afresh, and weigh the steps by how far U and V have moved."""
        now, (U, V) = state.now, state.origin
        moved = _sparse(now.U, state.problem.d) - _sparse(U, state.problem.d)
        far_U = np.sqrt(float((moved.data**2 / state.scale[moved.indices]).sum()))
        changed = np.zeros(state.problem.k)
        kernels.add_change(now.V, V, state.problem.weights, changed)
        far_V = np.sqrt(float(changed.sum()))
        if far_U > 0.0 and far_V > 0.0:
            state.omega = float(np.sqrt(state.omega * far_U / far_V))
        V[:] = now.V
        state.origin = now.U, V
        for total in state.totals:
            total[:] = 0.0
        state.total = 0.0

    def points(self, state: State) -> list[Point]:
        problem = state.problem
        lists = state.now.U if state.primal[1] is None else state.primal[1]
        V = state.now.V if state.dual[1] is None else state.dual[1]
        U = _sparse(lists, problem.d)
        U = U.toarray().T if problem.d * problem.k <= DENSE_POINT else U.T.tocsc()
        if V.size > DENSE_POINT:
            return [Point(U, _sparse(kernels.nonzeros(V, V.size), problem.k), "best")]
        return [Point(U, V.copy(), "best")]

    def is_far(self, state: State, goal: float, sharp: float) -> bool:
        # only with features without penalty is a certificate better than what a look knows
        return not state.problem.has_free and state.gap > goal

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_to_check(self, problem: Problem, state: State) -> int:
        return LOOK * max(1, state.iteration // (5 * LOOK))  # right after a look


@dataclass
class Products:
    """X U and G_U for points with few non-zeros."""

    problem: Problem
    by_sample: tuple
    by_feature: tuple
    combine: Callable[..., Any]
    single: bool = False

    @classmethod
    def of(cls, problem: Problem, single: bool = False) -> Products:
        design: Design = problem.design
        if isinstance(design, SparseDesign):
            rows, columns = design.X, design.csc
            return cls(
                problem, (rows.indptr, rows.indices, rows.data),
                (columns.indptr, columns.indices, columns.data), kernels.sparse_combine,
            )  # fmt: skip
        rows, columns = both_ways(design.X, single)
        return cls(problem, (rows,), (columns,), kernels.dense_combine, single)

    def make_exact(self) -> None:
        """Leave single precision."""
        self.single, X = False, self.problem.design.X
        if self._dense and self.by_sample[0] is not X:
            self.by_feature, self.by_sample = (), (X,)  # what there was goes before more is made
            self.by_feature = (by_columns(X),)

    def scores(self, U: Lists, out: np.ndarray) -> None:
        """``out = X U``, by class."""
        d = self.problem.d
        if self._dense and U[2].size > MANY * d * self.problem.k:
            self._multiply(_sparse(U, d).toarray(), self.by_feature[0], out)
        else:
            self.combine(*self.by_feature, *U, out)

    def gradient(self, V: np.ndarray, out: np.ndarray) -> Lists | None:
        """``out = X^T diag(weights) (V - Y)``, by class; returns V by lists, where it is sparse."""
        problem = self.problem
        most = int(MANY * V.size) if self._dense else V.size
        lists: Lists = kernels.nonzeros(V, most)
        if lists[0][-1] <= most:
            self._of_lists(lists, out)
            return lists
        R = problem.weights[:, None] * V  # a product of dense matrices is the faster one
        R[np.arange(problem.n), problem.y] -= problem.weights
        common = problem.common_part(V)
        if common is not None:
            width = max(1, BLOCK_ENTRIES // max(problem.d, problem.n))
            for start in range(0, problem.k, width):
                some = slice(start, start + width)
                out[some] = common.rmatmul(R[:, some]).T
        else:
            self._multiply(R.T, self.by_sample[0], out)
        return None

    def gradient_of_equal(self, out: np.ndarray) -> None:
        """The same for V = 1 / k: of the labels alone, and what all classes share."""
        n, k = self.problem.n, self.problem.k
        self._of_lists((np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0)), out)
        out += self.problem.design.rmatmul(self.problem.weights[:, None])[:, 0] / k

    def _of_lists(self, V: Lists, out: np.ndarray) -> None:
        problem = self.problem
        residual = kernels.residual_by_class(*V, problem.y, problem.weights, problem.k)
        self.combine(*self.by_sample, *residual, out)

    def _multiply(self, A: np.ndarray, X: np.ndarray, out: np.ndarray) -> None:
        if self.single:
            out[...] = A.astype(np.float32) @ X
        else:
            np.matmul(A, X, out=out)

    @property
    def _dense(self) -> bool:
        return self.combine is kernels.dense_combine


def both_ways(X: np.ndarray, single: bool) -> tuple[np.ndarray, np.ndarray]:
    """X by rows and by columns, in single precision if asked for.

    Two copies are made in one array: an X by columns in double precision, which comes after them,
    has the room of both then. The holes of two would stay memory of the process beside it.
    """
    if not single or X.dtype == np.float32 or X.flags.f_contiguous:
        X = X.astype(np.float32, copy=False) if single else X
        return X, by_columns(X)
    room = np.empty((2, X.size), np.float32)
    rows, columns = room[0].reshape(X.shape), room[1].reshape(X.shape[::-1])
    rows[:] = X
    return rows, by_columns(rows, out=columns)


def bounds(problem: Problem, at: Pair) -> tuple[float, float]:
    """Primal and dual value of a point, from the products at hand.

    They only steer the run: what is reported comes from the certificate, which is also able to
    repair the constraints of features without penalty. Here they cost what they are off by.
    """
    risk = 0.0
    for rows, Z in rows_of(problem, at.Z, at.Z, 0.0):
        risk += float(problem.weights[rows] @ problem.loss.value(Z, problem.y[rows]))
    limits = problem.lam * problem.penalty_factor
    sizes = np.bincount(at.U[1], weights=np.abs(at.U[2]), minlength=problem.d)
    worst = max(1.0, float(violation(problem, at.G).max()))
    off = 0.0
    if problem.has_free:
        free = limits == 0.0
        off = float(problem.constrained_part(at.G.T)[free].max(axis=1) @ sizes[free])
    return risk + float(limits @ sizes), -problem.conjugate(at.V) / worst - off


def violation(problem: Problem, G: np.ndarray) -> np.ndarray:
    """The largest quotient of G_U and its bound in every class, of features with a penalty."""
    limits = problem.lam * problem.penalty_factor
    below = np.divide(1.0, limits, out=np.zeros_like(limits), where=limits > 0.0)
    return kernels.worst_by_class(G, np.where(problem.nonnegative, 0.0, below), below)


def rows_of(
    problem: Problem, Z: np.ndarray, old: np.ndarray, ahead: float
) -> Iterator[tuple[slice, np.ndarray]]:
    """``Z + ahead (Z - old)`` by sample, in blocks of rows that stay in the cache; Z by class."""
    size = max(1, CACHE_ENTRIES // problem.k)
    space = np.empty((size, problem.k))
    for start in range(0, problem.n, size):
        rows = slice(start, min(start + size, problem.n))
        kernels.rows_of(Z, old, start, ahead, space[: rows.stop - start])
        yield rows, space[: rows.stop - start]


def _quotient(a: float, b: float) -> float:
    return a / b if b != 0.0 else np.inf


def _sparse(lists: Lists, columns: int) -> sp.csr_array:
    pointer, index, value = lists
    return sp.csr_array((value, index, pointer), shape=(pointer.size - 1, columns))
