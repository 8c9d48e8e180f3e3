"""The primal-dual hybrid gradient method, restarted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.design import Design, SparseDesign
from fenchel.design.dense import by_columns
from fenchel.kernels import hybrid_gradient as kernels
from fenchel.kernels.curvature import residual_columns
from fenchel.problem import BLOCK_ENTRIES, Problem, dense
from fenchel.solvers.base import DENSE_POINT, Point, Start
from fenchel.solvers.penalised import PenalisedSolver

#: Iterations between two looks at the gap.
LOOK = 10

#: A gap this much smaller than at the last restart asks for another.
DECAY = 0.5

#: Features are scaled as if their norms were no smaller, nor larger than the inverse.
SMALLEST_NORM = 1e-100

#: A point with more non-zeros than this part of its entries is multiplied as a dense one.
MANY = 0.15

#: Rows of V are stepped in blocks of about this many entries, which stay in the cache.
CACHE_ENTRIES = 1 << 15


@dataclass
class Pair:
    """A point (U, V) with its scores Z = X U and its gradient G_U; U and G by class."""

    U: np.ndarray
    G: np.ndarray
    V: np.ndarray
    Z: np.ndarray

    @classmethod
    def empty(cls, problem: Problem) -> Pair:
        n, d, k = problem.n, problem.d, problem.k
        return cls(np.zeros((k, d)), np.zeros((k, d)), np.empty((n, k)), np.empty((n, k)))


@dataclass
class State:
    problem: Problem
    products: Products
    now: Pair
    new: Pair
    average: Pair  # of the iterates since the restart, as of the last look
    totals: tuple[np.ndarray, np.ndarray]  # sums of step * (U, V) since the restart
    origin: tuple[np.ndarray, np.ndarray]  # where the last restart began
    scale: np.ndarray  # diagonal of the metric of U
    omega: float  # primal weight: the primal step is eta omega scale, the dual one eta / omega
    eta: float = 1.0
    total: float = 0.0  # sum of steps since the restart
    tried: int = 0  # steps so far, also those that were too long
    iteration: int = 0
    restart_gap: float = np.inf
    # of the best look: the U of the lower primal value, the V of the higher dual value, their gap
    best: tuple[np.ndarray, np.ndarray] | None = None
    gap: float = np.inf


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
    """

    name: ClassVar[str] = "hybrid-gradient"
    default_max_iter: ClassVar[int] = 10_000
    check_growth: ClassVar[float] = 1.0

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        self.check_problem(problem)
        now = Pair.empty(problem)
        if start is not None:
            now.U[:] = dense(start.U).T
            now.U[(now.U < 0.0) & problem.nonnegative] = 0.0
        if start is None or start.V is None:
            now.V[:] = 1.0 / problem.k
        else:
            now.V[:] = dense(start.V)
        products = Products.of(problem)
        products.scores(now.U, now.Z)
        products.gradient(now.V, now.G)
        norms = problem.design.column_norms(problem.weights)
        norms = np.clip(np.where(norms > 0.0, norms, 1.0), SMALLEST_NORM, 1.0 / SMALLEST_NORM)
        scale = 1.0 / norms**2
        return State(
            problem, products, now, Pair.empty(problem), Pair.empty(problem),
            (np.zeros_like(now.U), np.zeros_like(now.V)), (now.U.copy(), now.V.copy()), scale,
            omega=0.5 * problem.at_zero * np.sqrt(problem.k),
        )  # fmt: skip

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            used = self._step(state)
            kernels.accumulate(state.totals[0], used, state.now.U)
            kernels.accumulate(state.totals[1], used, state.now.V)
            state.total += used
            state.iteration += 1
            if state.iteration % LOOK == 0:
                self._look(state)

    def _step(self, state: State) -> float:
        """One step, and the size of the next; returns the size of the one that was made."""
        problem, now, new = state.problem, state.now, state.new
        space = np.empty((max(1, CACHE_ENTRIES // problem.k), problem.k))
        while True:
            eta, omega = state.eta, state.omega
            tau = eta * omega * state.scale
            above = tau * problem.lam * problem.penalty_factor
            below = np.where(problem.nonnegative, np.inf, above)
            moved_U = eta * kernels.primal_step(now.U, now.G, tau, above, below, new.U)
            state.products.scores(new.U, new.Z)
            for rows in cached_rows(problem):
                ahead = space[: rows.stop - rows.start]
                kernels.extrapolate(new.Z[rows], now.Z[rows], ahead)
                new.V[rows] = problem.loss.prox_euclidean(
                    now.V[rows], ahead, eta / omega, problem.y[rows]
                )
            moved_V, crossed = kernels.change_of(now.V, new.V, now.Z, new.Z, problem.weights)
            moved = moved_U + omega * moved_V
            limit = 0.5 * moved / abs(crossed) if crossed != 0.0 else np.inf
            state.tried += 1
            shorter, longer = 1.0 - (state.tried + 1) ** -0.3, 1.0 + (state.tried + 1) ** -0.6
            state.eta = min(shorter * limit, longer * eta)
            if eta <= limit:
                break
        state.products.gradient(new.V, new.G)
        state.now, state.new = new, now
        return eta

    def _look(self, state: State) -> None:
        """Restart from the better of the last point and the average where the gap has halved."""
        problem, now, average = state.problem, state.now, state.average
        np.divide(state.totals[0], state.total, out=average.U)
        np.divide(state.totals[1], state.total, out=average.V)
        state.products.scores(average.U, average.Z)
        state.products.gradient(average.V, average.G)
        primal, dual = bounds(problem, now)
        mean_primal, mean_dual = bounds(problem, average)
        found = min(primal, mean_primal) - max(dual, mean_dual)
        if found < state.gap:
            lower = now if primal <= mean_primal else average
            higher = now if dual >= mean_dual else average
            state.best, state.gap = (lower.U.copy(), higher.V.copy()), found
        gap = min(primal - dual, mean_primal - mean_dual)
        if gap <= DECAY * state.restart_gap:
            state.restart_gap = gap
            if mean_primal - mean_dual < primal - dual:
                state.now, state.average = average, now
            self._restart(state)

    @staticmethod
    def _restart(state: State) -> None:
        """Begin the average afresh, and weigh the steps by how far U and V have moved."""
        now, (U, V) = state.now, state.origin
        change = now.U - U
        far_U = np.sqrt(float((np.einsum("lj,lj->j", change, change) / state.scale).sum()))
        change = now.V - V
        far_V = np.sqrt(float(state.problem.weights @ np.einsum("il,il->i", change, change)))
        if far_U > 0.0 and far_V > 0.0:
            state.omega = float(np.sqrt(state.omega * far_U / far_V))
        U[:], V[:] = now.U, now.V
        for total in state.totals:
            total[:] = 0.0
        state.total = 0.0

    def points(self, state: State) -> list[Point]:
        U, V = state.best or (state.now.U, state.now.V)
        U = U.T.copy() if U.size <= DENSE_POINT else _sparse(U).T.tocsc()
        return [Point(U, V.copy() if V.size <= DENSE_POINT else _sparse(V), "best")]

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
    space: np.ndarray  # (k, n)

    @classmethod
    def of(cls, problem: Problem) -> Products:
        design: Design = problem.design
        space = np.empty((problem.k, problem.n))
        if isinstance(design, SparseDesign):
            rows, columns = design.X, design.csc
            return cls(
                problem, (rows.indptr, rows.indices, rows.data),
                (columns.indptr, columns.indices, columns.data), kernels.sparse_combine, space,
            )  # fmt: skip
        by_feature = (by_columns(design.X),)
        return cls(problem, (design.X,), by_feature, kernels.dense_combine, space)

    def scores(self, U: np.ndarray, out: np.ndarray) -> None:
        """``out = X U``, (n, k), for U by class."""
        if self._many(U):
            np.matmul(self.by_sample[0], U.T, out=out)
            return
        self.combine(*self.by_feature, *kernels.nonzeros(U), self.space)
        kernels.transpose(self.space, out)

    def gradient(self, V: np.ndarray, out: np.ndarray) -> None:
        """``out = X^T diag(weights) (V - Y)``, by class."""
        problem = self.problem
        if self._many(V):
            R = problem.weights[:, None] * V
            R[np.arange(problem.n), problem.y] -= problem.weights
            common = problem.common_part(V)
            if common is not None:
                width = max(1, BLOCK_ENTRIES // max(problem.d, problem.n))
                for start in range(0, problem.k, width):
                    some = slice(start, start + width)
                    out[some] = common.rmatmul(R[:, some]).T
                return
            np.matmul(R.T, self.by_sample[0], out=out)
            return
        residual = residual_columns(V, problem.y, problem.weights, np.arange(problem.k))
        self.combine(*self.by_sample, *residual, out)

    def _many(self, A: np.ndarray) -> bool:
        """Whether a product of dense matrices is the faster one, as in the first iterations."""
        dense = self.combine is kernels.dense_combine
        return dense and bool(np.count_nonzero(A) > MANY * A.size)


def bounds(problem: Problem, at: Pair) -> tuple[float, float]:
    """Primal and dual value of a point, from the products at hand.

    They only steer the run: what is reported comes from the certificate, which is also able to
    repair the constraints of features without penalty. Here they cost what they are off by.
    """
    risk = conjugate = 0.0
    for rows in cached_rows(problem):
        w, y = problem.weights[rows], problem.y[rows]
        risk += float(w @ problem.loss.value(at.Z[rows], y))
        conjugate += float(w @ problem.loss.f(at.V[rows], y))
    limits = problem.lam * problem.penalty_factor
    largest = problem.constrained_part(at.G.T).max(axis=1)
    sizes = np.abs(at.U).sum(axis=0)
    free = limits == 0.0
    over = (largest > limits) & ~free
    shrink = float((limits[over] / largest[over]).min(initial=1.0))
    off = float(largest[free] @ sizes[free])
    return risk + float(limits @ sizes), -shrink * conjugate - off


def cached_rows(problem: Problem) -> Iterator[slice]:
    """Blocks of rows whose scores stay in the cache."""
    size = max(1, CACHE_ENTRIES // problem.k)
    for start in range(0, problem.n, size):
        yield slice(start, min(start + size, problem.n))


def _sparse(A: np.ndarray) -> sp.csr_array:
    pointer, index, value = kernels.nonzeros(A)
    return sp.csr_array((value, index, pointer), shape=A.shape)
