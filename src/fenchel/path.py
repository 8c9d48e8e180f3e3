"""Regularisation paths: many penalties on the same data, each started from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from fenchel.certificate import Certificate, for_smaller_penalty
from fenchel.driver import Callback
from fenchel.null_penalty import about_null_penalty, smallest_null_penalty
from fenchel.null_program import shares_of_mistakes
from fenchel.prediction import fitted
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Start
from fenchel.solvers.continued import Continued
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solvers.registry import choose, get_solver
from fenchel.solving import Result, join_intercept, solve_problem
from fenchel.termination import Status
from fenchel.validation import check_number


@dataclass(frozen=True)
class PathPoint:
    """One penalty of a path: the model and its certificate.

    Attributes
    ----------
    alpha : the penalty, in absolute terms.
    coef : (k, d) array or CSR array; intercept : (k,) array.
    objective, dual_objective, dual_gap : the certificate, as in ``SparseLinearClassifier``.
    status, n_iter, seconds : how and at what cost the point was found.
    """

    alpha: float
    coef: Matrix
    intercept: np.ndarray
    objective: float
    dual_objective: float
    dual_gap: float
    status: str
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class Path(Sequence):
    """The points of a regularisation path, the largest penalty first.

    A path that was interrupted ends with the points so far, the last of them with the status
    "interrupted" where it was cut short itself.

    Attributes
    ----------
    points : list of :class:`PathPoint`.
    classes : (k,) array, the labels in row order of the coefficients.
    """

    points: list[PathPoint]
    classes: np.ndarray

    @property
    def alphas(self) -> np.ndarray:
        """The penalties."""
        return np.array([point.alpha for point in self.points])

    @property
    def dual_gaps(self) -> np.ndarray:
        """The certified gaps."""
        return np.array([point.dual_gap for point in self.points])

    @property
    def nonzeros(self) -> np.ndarray:
        """Non-zero coefficients of each point."""
        return np.array([_count(point.coef) for point in self.points])

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]


def regularisation_path(
    problem: Problem,
    grid: np.ndarray,
    options: dict[str, Any],
    *,
    classes: np.ndarray,
    dtype: np.dtype,
    callback: Callback,
) -> Path:
    """All points of a path, or those so far; ``options`` are those of :func:`walk`."""
    points: list[PathPoint] = []
    try:
        for alpha, result in walk(problem, grid, options, callback=callback):
            points.append(_point(alpha, result, dtype))
    except KeyboardInterrupt:  # between two points
        if not points:
            raise
    return Path(points, classes)


def walk(
    problem: Problem, alphas: np.ndarray, options: dict[str, Any], **more: Any
) -> Iterator[tuple[float, Result]]:
    """Solve for one penalty after the other; only the last solution is kept in memory.

    An interrupted point, by Ctrl-C or by the callback, is the last one. ``options`` are those of
    ``solve_problem``; a solver that is :func:`continued` goes on from where it is.
    """
    start: Start | None = None
    method = options["solver"]
    if not isinstance(method, Continued):
        method = continued(problem, method)
    options = {**options, **more, "solver": method}
    for alpha, following in zip_longest(alphas, alphas[1:]):
        problem = problem.with_penalty(float(alpha))
        result = solve_problem(problem, start=start, **options)
        yield float(alpha), result
        if following is None or result.status == Status.INTERRUPTED:
            return
        start = _start(problem, result, float(following))


def continued(problem: Problem, name: str) -> Continued:
    """The solver of this name for one penalty after the other."""
    return Continued(choose(problem) if name == "auto" else get_solver(name, None))


def _start(problem: Problem, result: Result, alpha: float) -> Start:
    """The solution of a problem as the start for another penalty, with its certificate there.

    A larger penalty has none without a product.
    """
    U = join_intercept(result.U, result.intercept)
    if result.certifies != "penalised" or not 0.0 < problem.lam >= alpha:
        return Start(U, result.V)
    known = Certificate(U, result.V, result.primal, result.dual, "penalised", result.point)
    certificate = for_smaller_penalty(problem.with_penalty(alpha), known, problem.lam)
    return Start(U, certificate.V, certificate)


def penalties(
    problem: Problem,
    alphas: Any,
    *,
    eps: float,
    scale: str,
    tol: float,
    max_time: float | None,
    solver: Continued | None = None,
) -> np.ndarray:
    """The penalties of a path in absolute terms, the largest first.

    A search for that is by the ``solver``, if it can, which so knows a point close to the first.
    """
    if isinstance(alphas, int | np.integer) and not isinstance(alphas, bool):
        if alphas < 1:
            raise ValueError(f"alphas must be at least one penalty, found {alphas}.")
        remedy = "give a fraction of the largest penalty, such as 1e-3"
        eps = check_number("eps", eps, positive=True, remedy=remedy)
        if eps > 1.0:
            raise ValueError(f"eps must be at most 1, found {eps}: {remedy}.")
        first = largest_penalty(problem, tol, max_time, solver)
        return first * np.geomspace(1.0, eps, int(alphas))
    found = np.asarray(alphas)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise ValueError(
            "alphas must be a list of penalties, or a whole number: how many to try, found "
            f"{alphas!r}."
        )
    found = np.sort(found.astype(np.float64))[::-1]
    if found.size == 0 or not np.isfinite(found).all() or found[-1] < 0:
        raise ValueError("alphas must be finite numbers >= 0, at least one, or how many to try.")
    return found * _unit(problem, scale, max_time)


def smallest_penalty(alphas: Any, *, eps: float, scale: str) -> tuple[float, str]:
    """The last penalty of a path and its unit, before they are checked: 0 where it makes none."""
    if isinstance(alphas, int | np.integer):
        return eps, "max"
    found = np.asarray(alphas)
    return (float(found.min()), scale) if found.size and found.dtype.kind in "iuf" else (0.0, scale)


def resolve_alpha(problem: Problem, alpha: float, scale: str, max_time: float | None) -> float:
    """The penalty in absolute terms."""
    alpha = check_number("alpha", alpha, remedy="give the l1 penalty as a number >= 0")
    return alpha * _unit(problem, scale, max_time)


def _unit(problem: Problem, scale: str, max_time: float | None = None) -> float:
    """What a penalty is multiplied with; a search for it may take ``max_time`` seconds."""
    check_scale(scale)
    if scale == "absolute":
        return 1.0
    return _finite(smallest_null_penalty(problem, max_time))


def check_scale(scale: str) -> None:
    """Refuse an ``alpha_scale`` that is not known."""
    if scale not in ("absolute", "max"):
        raise ValueError(f"alpha_scale must be 'absolute' or 'max', found {scale!r}.")


def largest_penalty(
    problem: Problem,
    tol: float = 1e-3,
    max_time: float | None = None,
    solver: Continued | None = None,
) -> float:
    """Where a path starts: ``lambda_max``, for the hinge loss as far as ``tol`` can tell.

    An exact search costs as much as a path there. It begins with one of the dual points that are
    optimal at U = 0, mass shared by all wrong classes, where ``lambda_max`` has the best of them.
    """
    if not problem.loss.affine:
        return _unit(problem, "max")
    shares = shares_of_mistakes(problem)
    V = problem.dual_at_zero() if shares is None else shares[problem.y]
    norms, c = problem.gradient_row_norms(V), problem.penalty_factor
    bound = _finite(float((norms[c > 0] / c[c > 0]).max()) if (c > 0).any() else np.inf)
    searched = np.count_nonzero(c == 0.0) == problem.intercept and not PrimalDual.refuses(problem)
    return about_null_penalty(problem, bound, tol, max_time, solver) if searched else bound


def _finite(value: float) -> float:
    if not 0 < value < np.inf:
        raise ValueError(
            f"lambda_max is {value:g} here (samples of one class only, X without signal, or a "
            "feature without penalty): give alpha or alphas in absolute terms."
        )
    return value


def _point(alpha: float, result: Result, dtype: np.dtype) -> PathPoint:
    model = fitted(result.U, result.intercept, dtype)
    return PathPoint(
        alpha=alpha,
        coef=model["coef_"],
        intercept=model["intercept_"],
        objective=result.primal,
        dual_objective=result.dual,
        dual_gap=result.gap,
        status=str(result.status),
        n_iter=result.n_iter,
        seconds=result.seconds,
    )


def _count(coef: Matrix) -> int:
    return int(coef.nnz) if hasattr(coef, "nnz") else int(np.count_nonzero(coef))
