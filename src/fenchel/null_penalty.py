"""The smallest penalty whose solution is exactly zero."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from fenchel.certificate import Certificate
from fenchel.design import make_design
from fenchel.driver import run
from fenchel.losses import Loss
from fenchel.losses.base import true_class
from fenchel.null_program import constant_scores, gains, smallest_bound
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Solver, Start
from fenchel.solvers.continued import Continued
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.steepest_entry import steepest_entry
from fenchel.termination import Budget, Status

#: Relative accuracy where lambda_max is the value of a game.
ACCURACY = 1e-5

#: Relative gap of the first solutions, while no lower bound is known.
COARSE = 1e-2

#: Relative gap beside an intercept, where zero is told from a solution by its value.
FINE = 1e-6

#: A gradient that is smaller than this, relative to its feature, may be rounding alone.
ROUNDING = 1e-14

#: Iterations for one of them; a solution that is not good enough gives a weaker bound.
MAX_ITER = 200

#: Solutions at the most; whatever is known by then is still an upper bound.
MAX_ROUNDS = 60

#: Of scipy's minimize, where the best constant scores have no closed form.
BEST_SCORES = {"gtol": 1e-10, "maxiter": 10_000}

#: Where a path begins: the relative accuracy that is asked for, the first penalty that is tried, in
#: parts of a bound, and what is left of one with a solution of zeros for the next try.
NEAR, FIRST, DOWN = 0.05, 0.5, 0.7

#: A path begins at the bound itself where that is no further above what a single entry tells.
CLOSE = 0.2

#: The smallest and the largest relative gap of these solutions, whatever that of the path is.
NEAR_GAPS = 1e-6, 1e-3


def lambda_max(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "hinge",
    sample_weight: Any = None,
    penalty_factor: Any = None,
    classes: Any = None,
    penalty: str = "l1",
    fit_intercept: bool = False,
    positive: bool = False,
) -> float:
    """Return the smallest ``lam`` for which U = 0 solves the penalised problem.

    U = 0 is optimal when a dual point V that is optimal at U = 0 satisfies
    ``||G_U(j,:)||_* <= lam c_j`` for every feature j (with ``positive``, the negative part of G_U
    does). Softmax and sparsemax have one such V. For
    the hinge loss every distribution over the wrong classes is one, and the best of them is found
    from both sides by solving the penalised problem a few times; the value returned is then at
    most 1e-5 (relatively) above the smallest, and never below. Beside an intercept or features
    without penalty (the hinge loss again) it is the value of a linear program; where that is large,
    it is approached from below, to 1e-5 as far as a gap of 1e-6 tells zero from a solution.
    The intercept need not be zero, and all features have zero coefficients: the value is infinite
    where a feature without penalty lowers the loss.
    """
    problem = Problem.from_data(
        X,
        y,
        loss=loss,
        lam=0.0,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        classes=classes,
        penalty=penalty,
        fit_intercept=fit_intercept,
        positive=positive,
    )
    return smallest_null_penalty(problem)


def smallest_null_penalty(problem: Problem, max_time: float | None = None) -> float:
    """:func:`lambda_max` of a problem that is made already; its own ``lam`` does not matter.

    TimeoutError is raised where a search takes longer than ``max_time`` seconds.
    """
    deadline = np.inf if max_time is None else time.perf_counter() + max_time
    if problem.loss.affine and (problem.penalty_factor == 0.0).any():
        if problem.norm.q != 1:
            raise _unknown(problem, "an intercept or a feature without penalty")
        value = smallest_bound(problem, deadline - time.perf_counter())
        if time.perf_counter() > deadline:
            raise _late()
        return _climb(problem, deadline) if value is None else value
    if problem.intercept:
        V = _at_constant_scores(problem)
        return _ratio(problem.gradient_row_norms(V)[:-1], problem.penalty_factor[:-1])
    V = problem.dual_at_zero()
    free = _free_entries(problem)
    if free is not None and problem.norm.q == 1:
        return _solve_game(problem, V, free, deadline)
    if free is not None:
        raise _unknown(problem, "more than two classes")
    return _ratio(problem.gradient_row_norms(V), problem.penalty_factor)


def _at_constant_scores(problem: Problem) -> np.ndarray:
    """V (n, k) at the best scores that are the same for all samples: f is not affine.

    Where f does not depend on the label all rows are the same, and so the shares of the classes.
    Else there is a row for each label. Where f is not strictly convex other V are optimal, too, and
    the penalty that follows from this one may be larger than need be.
    """
    loss, n, k = problem.loss, problem.n, problem.k
    masses = np.bincount(problem.y, weights=problem.weights, minlength=k)
    if not loss.by_label:
        return np.broadcast_to(masses, (n, k))
    labels = np.flatnonzero(masses)
    m = masses[labels]

    def risk(b: np.ndarray) -> tuple[float, np.ndarray]:
        losses, V = loss.value_and_argmax(np.tile(b, (m.size, 1)), labels)
        return float(m @ losses), m @ V - masses

    found = scipy.optimize.minimize(risk, np.log(masses + 1.0 / n), jac=True, options=BEST_SCORES)
    place = np.zeros(k, dtype=np.int64)
    place[labels] = np.arange(labels.size)
    V = loss.argmax(np.tile(found.x, (m.size, 1)), labels)
    return V[place[problem.y]]


def _unknown(problem: Problem, beside: str) -> ValueError:
    return ValueError(
        f"lambda_max of loss={problem.loss.name!r} with penalty='group' and {beside} has no closed "
        "form and is not searched for here: give the penalty in absolute terms "
        "(alpha_scale='absolute'), or use penalty='l1'."
    )


def _climb(problem: Problem, deadline: float = np.inf) -> float:
    """The same beside free features, f affine: from below, as far as a certificate can see.

    Let P0 be the best value of constant scores. Zero is optimal for no lam that is smaller than
    ``(P0 - risk(U)) / sum_j c_j ||U(j,:)||``, whatever U is. A solution at a lower bound gives a
    larger one, until U = 0 solves the problem there. If it does for no lam, it does not where the
    penalty is larger than any gradient: the free features lower the loss alone.
    """
    c = problem.penalty_factor
    sizes = problem.design.column_norms(problem.weights)  # |G_U(j,l)| is at most this
    scale = float((sizes[c > 0] / c[c > 0]).max(initial=0.0)) or 1.0
    problem = _scaled(problem, scale)
    best, _ = constant_scores(problem)
    start, lower, lam = None, 0.0, 2.0
    for _ in range(MAX_ROUNDS):
        rough = lower == 0.0 and lam < 1.0
        point = _solution(problem, lam, COARSE if rough else FINE, start, deadline)
        start = Start(point.U, point.V)
        if lam > 1.0 and best - point.primal > FINE * problem.at_zero:
            return np.inf
        gain, known = best - problem.risk(point.U), lower
        size = float(c @ problem.row_norms(point.U))
        if size > 0.0 and gain > FINE * problem.at_zero:
            lower = max(lower, gain / size)
        if 0.0 < lower <= known * (1 + 0.1 * ACCURACY) or lam < FINE:
            break
        lam = 0.5 * min(lam, 1.0) if lower == 0.0 else lower * (1 + 0.3 * ACCURACY)
    return scale * lower * (1 + ACCURACY)


def about_null_penalty(
    problem: Problem,
    bound: float,
    tol: float,
    max_time: float | None = None,
    solver: Continued | None = None,
) -> float:
    """:func:`lambda_max` as far as a gap of ``tol`` can tell, some per cent above it: f affine.

    From half of ``bound`` down to a penalty with a solution that is not zero, roughly, and then up
    again from one quotient of :func:`_climb` to the next: Dinkelbach's method, whose quotients come
    close within two or three solutions. It is ``bound`` where that is close enough to what a single
    coefficient gains, or where the time ends before. The path may go on with the ``solver``.
    """
    deadline = np.inf if max_time is None else time.perf_counter() + max_time
    tol, c = float(np.clip(tol, *NEAR_GAPS)), problem.penalty_factor
    best, b = constant_scores(problem)
    lower = 0.0 if b.any() else steepest_entry(problem)
    if lower <= bound <= lower * (1.0 + CLOSE):
        return bound
    if solver is None or not isinstance(solver.solver, PrimalDual):
        solver = Continued(PrimalDual())
    start, lam = None, max(lower, FIRST * bound)
    for _ in range(MAX_ROUNDS):
        above = lam > lower  # on the way down, where no more is asked than whether U is zero
        try:
            point = _solution(
                problem, lam, max(tol, COARSE) if above else tol, start, deadline, solver
            )
        except TimeoutError:
            return bound
        start, known = Start(point.U, point.V), lower
        size = float(c @ problem.row_norms(point.U))
        if size > 0.0:
            lower = max(lower, (best - problem.risk(point.U)) / size)
        if (not above and lower <= known * (1.0 + NEAR)) or lam < FINE * bound:
            break
        lam = lower if size > 0.0 and lower > 0.0 else max(lower, DOWN * lam)
    return lower * (1.0 + NEAR) if lower > 0.0 else bound


def _scaled(problem: Problem, scale: float) -> Problem:
    """The same with other units of the features, in which lambda_max is at most 1 or so."""
    return replace(problem, design=make_design(problem.design.X / scale))


def _solution(
    problem: Problem,
    lam: float,
    tol: float,
    start: Start | None,
    deadline: float,
    solver: Solver | None = None,
) -> Certificate:
    """A point of the search, which nothing may cut short: its bounds would be too loose to use."""
    left = max(0.0, deadline - time.perf_counter())
    budget = Budget(tol=tol, max_iter=MAX_ITER, max_time=left)
    outcome = run(replace(problem, lam=lam), solver or PrimalDual(), budget, start=start)
    if outcome.status == Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted in the search for lambda_max")
    if outcome.status == Status.MAX_TIME:
        raise _late()
    return outcome.certificate


def _late() -> TimeoutError:
    return TimeoutError(
        "max_time ended in the search for lambda_max, the unit of alpha_scale='max': raise "
        "max_time, or give the penalty in absolute terms (alpha_scale='absolute')."
    )


def _ratio(norms: np.ndarray, c: np.ndarray) -> float:
    """``max_j norms_j / c_j``, with 0/0 = 0."""
    if np.any((c == 0) & (norms > 1e-12 * max(float(norms.max()), 1.0))):
        return np.inf
    kept = c > 0
    return float((norms[kept] / c[kept]).max()) if kept.any() else 0.0


def _free_entries(problem: Problem) -> np.ndarray | None:
    """The (n, k) mask of entries that an optimal V at U = 0 may use; None where V is unique.

    With an affine f the maximisers at z = 0 are the vertices with the largest -f.
    """
    if not problem.loss.affine:
        return None
    gain = gains(problem)
    best = gain >= gain.max(axis=1, keepdims=True) - 1e-12 * np.abs(gain).max()
    return None if np.all(best[problem.y].sum(axis=1) == 1) else best[problem.y]


def _solve_game(problem: Problem, V: np.ndarray, free: np.ndarray, deadline: float) -> float:
    """``min_V max_{j,l} |G_U(j,l)| / c_j`` over the free entries, between bounds that meet.

    Any V on the free entries bounds the value from above. Any U bounds it from below, by how fast
    the loss falls along it: ``-slope(U) / sum_j c_j ||U(j,:)||``. A solution just below lambda_max
    is such a U, one just above it comes with such a V; so the penalised problem is solved at the
    best lower bound so far until both are there.
    """
    upper = _ratio(problem.gradient_row_norms(V), problem.penalty_factor)
    sizes = problem.design.column_norms(problem.weights)
    if upper == np.inf or upper <= ROUNDING * _ratio(sizes, problem.penalty_factor):
        return upper  # nothing to tell apart, such as constant features and equal classes
    scale, problem = upper, _scaled(problem, upper)  # the value scales with X
    upper, lower, lam, tol = 1.0, 0.0, 0.5, COARSE
    start: Start | None = None
    for _ in range(MAX_ROUNDS):
        point = _solution(problem, lam, tol, start, deadline)
        U, V = point.U, _on_free(point.V, free)
        upper = min(upper, _ratio(problem.gradient_row_norms(V), problem.penalty_factor))
        size = float(problem.penalty_factor @ problem.row_norms(U))
        if size > 0.0:
            lower = max(lower, -_slope(problem, U, free) / size)
        if upper <= lower * (1 + ACCURACY):
            break
        if lower == 0.0:
            lam *= 0.7
        else:
            tol = 0.1 * (tol if size == 0.0 else max(tol, ACCURACY))
            lam = lower * (1 + 0.3 * ACCURACY)
        start = Start(point.U, point.V)
    return scale * upper


def _on_free(V: Matrix, free: np.ndarray) -> np.ndarray:
    """V with its mass on the free entries alone."""
    V = np.where(free, V.toarray() if sp.issparse(V) else V, 0.0)
    V[V.sum(axis=1) < 1e-9] += 1.0
    V *= free
    return V / V.sum(axis=1, keepdims=True)


def _slope(problem: Problem, U: Matrix, free: np.ndarray) -> float:
    """How the mean loss changes along U, from U = 0: ``sum_i w_i max_{l free} z_l - z_y``."""
    Z = problem.design.matmul(U)
    best = np.where(free, Z, -np.inf).max(axis=1)
    return float(problem.weights @ (best - true_class(Z, problem.y)))
