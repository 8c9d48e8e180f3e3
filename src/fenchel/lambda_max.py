"""The smallest penalty whose solution is exactly zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from fenchel.losses import Loss
from fenchel.problem import Problem

#: Relative accuracy where lambda_max is the value of a linear program.
ACCURACY = 1e-7

#: Constraints that one round of the linear program may add.
BATCH = 300


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
) -> float:
    """Return the smallest ``lam`` for which U = 0 solves the penalised problem.

    U = 0 is optimal when a dual point V that is optimal at U = 0 satisfies
    ``||G_U(j,:)||_* <= lam c_j`` for every feature j. Softmax and sparsemax have one such V. For
    the hinge loss every distribution over the wrong classes is one, and the best of them is found
    by a linear program; the value returned is then at most 1e-7 (relatively) above the smallest,
    and never below. It is infinite where a feature without penalty already lowers the loss.
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
    )
    if fit_intercept:
        return _with_intercept(problem)
    V = problem.loss.argmax(np.zeros((problem.n, problem.k)), problem.y)
    free = _free_entries(problem)
    if free is not None and problem.norm.q == 1:
        return _solve_game(problem, V, free)
    if free is not None:
        raise ValueError(
            f"lambda_max of loss={problem.loss.name!r} with penalty='group' and more than two "
            "classes has no closed form here: search for it with solve, or use penalty='l1'."
        )
    return _ratio(problem, problem.gradient_row_norms(V))


def _with_intercept(problem: Problem) -> float:
    """The same beside a free intercept, where the best constant scores give every row one v.

    That holds where f does not depend on y; v is then the share of the classes.
    """
    if problem.loss.affine:
        raise ValueError(
            f"lambda_max of loss={problem.loss.name!r} with fit_intercept=True has no closed form "
            "here: leave fit_intercept out for an estimate to start a path from."
        )
    masses = np.bincount(problem.y, weights=problem.weights, minlength=problem.k)
    V = np.broadcast_to(masses, (problem.n, problem.k))
    return _ratio(problem, problem.gradient_row_norms(V))


def _ratio(problem: Problem, norms: np.ndarray) -> float:
    """``max_j norms_j / c_j``, with 0/0 = 0."""
    c = problem.penalty_factor
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
    k = problem.k
    gains = np.stack([-problem.loss.f(np.eye(k), np.full(k, label)) for label in range(k)])
    best = gains >= gains.max(axis=1, keepdims=True) - 1e-12 * np.abs(gains).max()
    return None if np.all(best[problem.y].sum(axis=1) == 1) else best[problem.y]


def _solve_game(problem: Problem, V: np.ndarray, free: np.ndarray) -> float:
    """``min_V max_{j,l} |G_U(j,l)| / c_j`` over the free entries, by constraint generation.

    Few of the d x k constraints bind, so they are added as they are violated. The relaxed program
    bounds the value from below, and its V, evaluated on all constraints, from above.
    """
    if np.any(problem.penalty_factor == 0):
        return _ratio(problem, np.abs(problem.gradient(V)).max(axis=1))
    rows, columns = np.nonzero(free)
    columns_of_X = sp.csc_array(problem.design.X)
    simplex = sp.csr_array((np.ones(rows.size), (rows, np.arange(rows.size))))
    chosen = np.zeros((problem.d, problem.k), dtype=bool)
    lower, upper = 0.0, np.inf
    while True:
        ratios = np.abs(problem.gradient(V)) / problem.penalty_factor[:, None]
        upper = min(upper, float(ratios.max()))
        if upper <= lower * (1 + ACCURACY) or upper == 0.0:
            return upper
        ratios[chosen | (ratios <= lower * (1 + 0.1 * ACCURACY))] = 0.0
        add = np.argsort(ratios, axis=None)[::-1][:BATCH]
        add = add[ratios.ravel()[add] > 0]
        if add.size == 0:
            return upper
        chosen.ravel()[add] = True
        lower, V = _relaxed_game(problem, chosen, rows, columns, simplex, columns_of_X, upper)


def _relaxed_game(
    problem: Problem,
    chosen: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    simplex: sp.csr_array,
    columns_of_X: sp.csc_array,
    scale: float,
) -> tuple[float, np.ndarray]:
    """The game restricted to the chosen (feature, class) constraints.

    Tolerances of the linear program are absolute, so its values are brought to about one.
    """
    features, labels = np.nonzero(chosen)
    by_class = [np.flatnonzero(columns == l) for l in range(problem.k)]
    G = sp.lil_array((features.size, rows.size))
    offsets = np.empty(features.size)
    for at, (j, l) in enumerate(zip(features, labels, strict=True)):
        x = problem.weights * (columns_of_X[:, [j]].toarray().ravel() / scale)
        entries = by_class[l][x[rows[by_class[l]]] != 0]
        G[[at], entries] = x[rows[entries]]
        offsets[at] = x[problem.y == l].sum()
    G = G.tocsr()
    c = sp.csr_array(problem.penalty_factor[features][:, None])
    solution = linprog(
        np.append(np.zeros(rows.size), 1.0),
        A_ub=sp.vstack([sp.hstack([G, -c]), sp.hstack([-G, -c])]),
        b_ub=np.concatenate([offsets, -offsets]),
        A_eq=sp.hstack([simplex, sp.csr_array((problem.n, 1))]),
        b_eq=np.ones(problem.n),
        method="highs-ipm",
    )
    if solution.status != 0:
        raise RuntimeError(f"the linear program for lambda_max failed: {solution.message}")
    V = np.zeros((problem.n, problem.k))
    V[rows, columns] = np.maximum(solution.x[:-1], 0.0)
    return scale * float(solution.fun), V / V.sum(axis=1, keepdims=True)
