"""A dual point to second order: the dual point of a Newton model in place of that of U.

The dual point V of a smooth loss that belongs to U violates its constraints by the error of U, and
moving it into them costs as much: the gap is of first order, while U is only of second order above
the optimum. The Newton model at U knows better. With its step s, and h the curvature of a row,

    V' = V + diag(h) D - h <h, D> / sum(h),        D = X s

has the gradient ``X^T (V' - Y) = G_U + H s`` of the model, which meets the constraints once the
model is minimised over all entries that matter: the non-zeros, and those close to their bounds.
What is left is of second order in s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.kernels.class_blocks import linearise
from fenchel.problem import Problem
from fenchel.solvers.l1_model import Effort
from fenchel.solvers.newton_state import SINGLE, State
from fenchel.solvers.working_set import Columns, Entries, violators

#: The step that minimises a model at a state, for gradient, penalties, accuracy, damping, effort,
#: and the conjugate gradient iterations that it took.
Minimise = Callable[[State, np.ndarray, np.ndarray, float, float, Effort], tuple[np.ndarray, int]]

#: Entries whose dual constraint is within this part of its bound belong to the model.
NEAR = 0.95

#: The model is solved to this part of the square of the error of U, in units of the penalty.
CLOSE = 0.01

#: Damping of the model, next to none: V' would violate what it adds; and what is put into it.
LEAST_DAMPING, EFFORT = 1e-9, Effort(rounds=8, sweeps=1, cg=30, products=300)

#: Along a path, a model at a U whose error is above this part of the penalty is only about right:
#: its Hessian may be of single precision, with the damping that this takes.
ROUGH_MODEL = 0.1

#: A model with more conjugate gradient iterations than this is given up, for the rest of the run.
MOST_CG = 75

#: How often the model is solved at most, each time with the entries that V' violates.
ROUNDS = 3

#: Not again where more than this part of the rows would leave the simplex: the model is no good.
LEFT = 0.02

#: No more entries of V than this: the point is another array of the size of the scores.
MOST = 1 << 25


def linearises(problem: Problem) -> bool:
    """Whether there is such a point: where V is differentiable in the scores, and not too large."""
    fits = problem.n * problem.k <= MOST
    return problem.loss.twice_differentiable and problem.lam > 0.0 and fits


def near_bounds(
    problem: Problem, V: np.ndarray, limit: int, G: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The entries (feature, class) close to their bounds or beyond; ``G`` is G_U, if known."""
    return violators(problem.with_penalty(NEAR * problem.lam), V, limit, G)[:2]


def linearised(
    problem: Problem, columns: Columns, entries: Entries, s: np.ndarray, V: np.ndarray
) -> tuple[np.ndarray, int]:
    """V' for the step s of the entries, and how many rows would have left the simplex."""
    D = columns.product(entries, s, problem.k)

    def of(rows: slice) -> int:
        return linearise(V[rows], problem.loss.curvature(V[rows], 1.0, problem.y[rows]), D[rows])

    return D, sum(problem.in_rows(of))


def model_point(state: State, limit: int, minimise: Minimise) -> np.ndarray | None:
    """Solve the model until its dual point violates nothing that matters, a few times at most.

    What it violates, no more than ``limit`` entries, joins the model, whose step ``minimise`` finds
    (:meth:`.ProximalNewton._minimise`). Where rows have left the simplex, and were brought back,
    the dual point is no longer that of the model: the next one is made there instead of at U.
    """
    problem = state.problem
    state.know_gradient()
    new = near_bounds(problem, state.V, limit, state.gradient)
    state.work_on(state.entries.with_new(*new))
    state.looked = True
    here, V = state, None
    for _ in range(ROUNDS):
        error, g, penalty = here.subgradient()
        if here is state:
            state.step = None  # that of the round before was for fewer entries
            if error > problem.lam:
                return None
            close = CLOSE * error * error / problem.lam
            rough = state.on_path and error > ROUGH_MODEL * problem.lam
            damping = SINGLE if rough else LEAST_DAMPING
        s, n_cg = minimise(here, g, penalty, close, damping, EFFORT)
        if n_cg > MOST_CG:  # no better next time, and too dear to see
            state.stiff = True
            return V
        if here is state:
            state.step = s
        V, left = linearised(problem, state.columns, here.entries, s, here.V)
        if left > LEFT * problem.n:
            break
        feature, klass, excess, _ = violators(problem, V, limit, problem.full_gradient(V))
        if excess.size == 0 or excess.max() <= close:
            break
        if left:
            here, new = here.after(s, V, feature, klass), (feature, klass)
            continue
        new = np.append(new[0], feature), np.append(new[1], klass)
        entries = here.entries.with_new(*new)
        if entries.u.size == here.entries.u.size:  # the same model once more
            state.stiff = state.on_path  # not solved, and hardly cheaper for the next penalty
            break
        here.work_on(entries)
    return V
