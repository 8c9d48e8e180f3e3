"""The last steps for the hinge loss: a linear program on what is active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
import scipy.sparse as sp

from fenchel.losses import Hinge
from fenchel.problem import Problem, dense
from fenchel.solvers.base import Point, Start
from fenchel.solvers.penalised import PenalisedSolver

#: A program with more rows and columns than the first, or more entries than the second, is not
#: tried. One of this size takes the simplex method about half a second.
LARGEST, MOST_ENTRIES = 2000, 60_000

#: Simplex iterations before it is given up, in parts of rows and columns; 1 to 2 are usual.
ITERATIONS = 4

#: Entries of U whose dual constraint is this close to its bound, and classes whose margin is this
#: close to the largest of its sample (in parts of P(0)), belong to the program.
NEAR_BOUND, NEAR_TOP = 0.06, 0.06

#: Dual values below this are rounding.
ZERO = 1e-9

#: What HiGHS may violate, the least that it takes.
FEASIBLE = 1e-10

#: Entries of U, G and V together: dense arrays of them are formed.
DENSE_ENTRIES = 1 << 22


@dataclass
class State:
    problem: Problem
    U: np.ndarray
    V: np.ndarray
    entries: np.ndarray  # (d, k) mask of the entries of U in the program
    pairs: np.ndarray  # (n, k) mask of the samples and wrong classes in the program
    failed: bool = False  # too large, or given up
    solved: bool = False  # a solution of the whole problem: nothing outside is violated


class LinearProgram(PenalisedSolver):
    """Exact solutions of the penalised problem with the hinge loss, from a good starting point.

    The problem is a linear program::

        min  sum_i w_i xi_i + lam sum_jl c_j |u_jl|
        s.t. xi_i >= C(y_i, l) + x_i^T (u_l - u_{y_i})  for all i and l,   xi >= 0

    At a solution few u_jl are non-zero and few of the constraints bind. Only those that may are
    in the program; what its solution violates outside comes in, and it is solved again (column and
    constraint generation, Dedieu and Mazumder). The multipliers of the constraints are w_i V(i,l).
    Without a good start the programs are large: it is meant for the end of a run.

    One iteration is one program.
    """

    name: ClassVar[str] = "linear-program"
    default_max_iter: ClassVar[int] = 50
    check_growth: ClassVar[float] = 1.0

    @staticmethod
    def refuses(problem: Problem) -> str:
        if not isinstance(problem.loss, Hinge):
            return "only the hinge loss makes a linear program"
        if (problem.n + 2 * problem.d) * problem.k > DENSE_ENTRIES:
            return "it forms dense arrays, and these are too large"
        return PenalisedSolver.refuses(problem)

    def init(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, horizon: int
    ) -> State:
        self.check_problem(problem)
        U = np.zeros((problem.d, problem.k)) if start is None else dense(start.U)
        V = _labels(problem) if start is None or start.V is None else dense(start.V)
        state = State(problem, U, V, np.zeros(U.shape, bool), np.zeros(V.shape, bool))
        self._grow(state)
        return state

    def advance(self, state: State, n_steps: int) -> None:
        for _ in range(n_steps):
            if not state.failed and not state.solved:
                self._solve(state)
                state.solved = not state.failed and not self._grow(state)

    def points(self, state: State) -> list[Point]:
        return [Point(state.U.copy(), state.V.copy(), "vertex")]

    def passes(self, problem: Problem) -> float:
        return 2.0

    def iterations_per_check(self, problem: Problem) -> int:
        return 1

    @staticmethod
    def _grow(state: State) -> bool:
        """Take in what is violated or close to it; False where the program has it all already."""
        problem, rows = state.problem, np.arange(state.problem.n)
        bound = problem.lam * problem.penalty_factor[:, None]
        # no (d, k) array of numbers outlives its line
        near = problem.constrained_part(problem.gradient(state.V)) >= (1.0 - NEAR_BOUND) * bound
        entries = state.entries | (state.U != 0.0) | near
        margins = _hinge(problem).margins(problem.design.matmul(state.U), problem.y)
        top = margins.max(axis=1, keepdims=True) - NEAR_TOP * problem.at_zero
        pairs = state.pairs | (margins >= top) | (state.V > ZERO)
        pairs[rows, problem.y] = False
        pairs[problem.weights == 0.0] = False
        grown = bool((entries != state.entries).any() or (pairs != state.pairs).any())
        state.entries, state.pairs = entries, pairs
        i, l = np.nonzero(pairs)
        per_class = entries.sum(axis=0)
        size = 2 * int(entries.sum()) + int(pairs.any(axis=1).sum()) + i.size
        nonzeros = int((per_class[l] + per_class[problem.y[i]]).sum())
        state.failed = size > LARGEST or nonzeros > MOST_ENTRIES
        return grown

    @staticmethod
    def _solve(state: State) -> None:
        """Solve the program; ``failed`` where it is too large for that."""
        problem, X = state.problem, state.problem.design.X
        klass, feature = np.nonzero(state.entries.T)
        i, l = np.nonzero(state.pairs)
        y, size = problem.y[i], feature.size
        slacks, slack = np.unique(i, return_inverse=True)
        in_class = np.searchsorted(klass, np.arange(problem.k + 1))
        A = sp.lil_array((i.size, size))
        for c in np.unique(klass):  # x_i^T (u_l - u_y), class by class
            columns = slice(in_class[c], in_class[c + 1])
            for rows, sign in ((np.flatnonzero(l == c), 1.0), (np.flatnonzero(y == c), -1.0)):
                if rows.size:
                    A[rows, columns] = sign * dense(X[i[rows]][:, feature[columns]])
        A = A.tocsc()
        # HiGHS knows no small numbers: columns of size one, and weights
        size_of = abs(A).max(axis=0).toarray().ravel() if i.size else np.ones(size)
        unit, per_weight = 1.0 / np.where(size_of > 0.0, size_of, 1.0), 1.0 / problem.weights.max()
        A = A @ sp.diags_array(unit, format="csc")
        penalty = per_weight * problem.lam * problem.penalty_factor[feature] * unit
        negative = ~problem.nonnegative[feature]
        shape = i.size, slacks.size
        chosen = sp.csc_array((-np.ones(i.size), (np.arange(i.size), slack)), shape=shape)
        cost = _hinge(problem).margins(np.zeros_like(state.V), problem.y)[i, l]
        found = scipy.optimize.linprog(
            np.concatenate([penalty, penalty[negative], per_weight * problem.weights[slacks]]),
            A_ub=sp.hstack([A, -A[:, negative], chosen], format="csc"),
            b_ub=-cost,
            method="highs-ds",
            options={
                "maxiter": ITERATIONS * (2 * size + slacks.size + i.size),
                "primal_feasibility_tolerance": FEASIBLE,
                "dual_feasibility_tolerance": FEASIBLE,
            },
        )
        if found.status != 0:
            state.failed = True
            return
        u = found.x[:size].copy()
        u[negative] -= found.x[size : size + int(negative.sum())]
        state.U = np.zeros_like(state.U)
        state.U[feature, klass] = unit * u
        # a mean over the classes changes no margin: what is free of penalty has none, as elsewhere
        free = (problem.penalty_factor == 0.0) & ~problem.nonnegative
        state.U[free] -= state.U[free].mean(axis=1, keepdims=True)
        wrong = sp.coo_array(
            (np.maximum(-found.ineqlin.marginals, 0.0) / (per_weight * problem.weights[i]), (i, l)),
            shape=state.V.shape,
        ).toarray()
        wrong /= np.maximum(wrong.sum(axis=1, keepdims=True), 1.0)
        wrong[np.arange(problem.n), problem.y] = 1.0 - wrong.sum(axis=1)
        state.V = np.maximum(wrong, 0.0)


def _labels(problem: Problem) -> np.ndarray:
    Y = np.zeros((problem.n, problem.k))
    Y[np.arange(problem.n), problem.y] = 1.0
    return Y


def _hinge(problem: Problem) -> Hinge:
    assert isinstance(problem.loss, Hinge)
    return problem.loss
