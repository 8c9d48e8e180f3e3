"""``fenchel.solve``: from data to a certified point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import SIMPLEX_TOLERANCE
from fenchel.driver import Callback, run
from fenchel.losses import Loss
from fenchel.problem import Matrix, Problem
from fenchel.radius import RadiusSearch
from fenchel.solvers.base import Solver, Start
from fenchel.solvers.registry import choose, get_solver
from fenchel.termination import Budget, Record, Status
from fenchel.validation import check_callback, check_generator, refuse_broken


@dataclass(frozen=True)
class Result:
    """A point, its certificate, and how it was found.

    Attributes
    ----------
    U : (d, k) array or sparse array, the coefficients, one column a class.
    intercept : (k,) array, or None where none was fitted.
    V : (n, k) array or sparse array, the dual point of the certificate, rows in the simplex.
    primal, dual, gap : float. ``dual <= optimum <= primal`` and ``gap = primal - dual``, computed
        in float64 from U and V on the data as given.
    certifies : "penalised" or "ball", the problem whose optimum they bound.
    point : which of the solver's points U and V are ("average", "last", "zero", ...).
    status : a :class:`~fenchel.termination.Status`, equal to its string.
    history : list of :class:`~fenchel.termination.Record`, one a check.
    classes : (k,) array, the labels in column order.
    solver : the name of the solver.
    """

    U: Matrix
    V: Matrix
    primal: float
    dual: float
    gap: float
    certifies: str
    point: str
    status: Status
    history: list[Record]
    classes: np.ndarray
    solver: str
    intercept: np.ndarray | None = None

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return self.history[-1].iteration

    @property
    def passes(self) -> float:
        """Readings of all of X."""
        return self.history[-1].passes

    @property
    def seconds(self) -> float:
        """The solver's own time; checks are not counted."""
        return self.history[-1].seconds


def solve(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "hinge",
    lam: float,
    radius: float | str | None = None,
    solver: str | Solver = "auto",
    step: str | float | None = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_passes: float | None = None,
    max_time: float | None = None,
    sample_weight: Any = None,
    penalty_factor: Any = None,
    classes: Any = None,
    penalty: str = "l1",
    fit_intercept: bool = False,
    positive: bool = False,
    start: Result | Start | tuple[Matrix, Matrix] | Matrix | None = None,
    rng: np.random.Generator | int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise a multiclass loss with an l1 penalty, and certify how close the answer is.

    The objective is ``sum_i w_i loss_i / sum_i w_i + lam * sum_j penalty_factor_j ||U(j,:)||_1``.

    Parameters
    ----------
    X : (n, d) array or scipy sparse, float64 or float32.
    y : (n,) labels of any type.
    loss : "hinge", "softmax", "sparsemax", or a :class:`~fenchel.losses.Loss`.
    lam : float >= 0, the penalty.
    radius : float > 0, optional. Given, ``||U||_1 <= radius`` holds besides, and the certificate is
        for that problem ("ball"); left out, it is for the penalised problem. "search" is for the
        penalised problem too, by a solver that works inside a ball: the ball begins small and grows
        until the solution leaves its boundary (:class:`~fenchel.radius.RadiusSearch`).
    solver : "auto", or the name of a solver (``fenchel.solvers.registry.SOLVERS``), or a
        :class:`~fenchel.solvers.base.Solver`.
    step : "theory", "inverse-sqrt", "online", a number, or None for the solver's default.
    tol : stop when the certified gap is at most ``tol * P(0)``, where P(0) is the objective at
        U = 0 (hinge: 1, softmax: log k).
    max_iter, max_passes, max_time : further limits, None for none; a pass is one reading of X, time
        is in seconds. With none of them, the solver's own ``default_max_iter`` holds.
    sample_weight : (n,) weights >= 0; a weight is a repetition.
    penalty_factor : (d,) factors >= 0 on ``lam``.
    classes : all labels in column order, also those without a sample in y.
    penalty : "l1", or "group" for ``sum_j penalty_factor_j ||U(j,:)||_2`` (whole features).
    fit_intercept : add a constant to the score of each class, without penalty. The certificate
        stays a true bound: see :mod:`fenchel.certificate`.
    positive : allow no negative coefficient (the intercept keeps its sign).
    start : a :class:`Result`, a pair (U, V) or U, to start from.
    rng : seed or generator of the randomised solvers.
    callback : called with a :class:`~fenchel.termination.Record` at every check; returning True
        (or numpy's) stops the run, and no other value does.

    Returns
    -------
    Result

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import fenchel
    >>> X, y = load_iris(return_X_y=True)
    >>> result = fenchel.solve(X, y, lam=0.1, tol=0.01)
    >>> result.status, result.gap <= 0.01
    (<Status.CONVERGED: 'converged'>, True)
    """
    problem = Problem.from_data(
        X,
        y,
        loss=loss,
        lam=lam,
        radius=None if radius == "search" else radius,  # type: ignore[arg-type]
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        classes=classes,
        penalty=penalty,
        fit_intercept=fit_intercept,
        positive=positive,
    )
    return solve_problem(
        problem,
        search_radius=radius == "search",
        solver=solver,
        step=step,
        tol=tol,
        max_iter=max_iter,
        max_passes=max_passes,
        max_time=max_time,
        start=start,
        rng=rng,
        callback=callback,
    )


def solve_problem(
    problem: Problem,
    *,
    search_radius: bool = False,
    solver: str | Solver = "auto",
    step: str | float | None = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_passes: float | None = None,
    max_time: float | None = None,
    start: Result | Start | tuple[Matrix, Matrix] | Matrix | None = None,
    rng: np.random.Generator | int | None = None,
    callback: Callback | None = None,
) -> Result:
    """:func:`solve` for a problem that is made already; the arguments are the same."""
    budget = Budget.checked(tol=tol, max_iter=max_iter, max_passes=max_passes, max_time=max_time)
    check_callback(callback)
    if search_radius:
        method: Solver = RadiusSearch(
            get_solver("mirror-prox" if solver == "auto" else solver, step)
        )
    elif solver == "auto":
        method = choose(problem, step)
    else:
        method = get_solver(solver, step)
    outcome = run(
        problem,
        method,
        budget,
        start=_check_start(start, problem),
        rng=check_generator("rng", rng),
        callback=callback,
    )
    certificate = outcome.certificate
    U, intercept = split_intercept(problem, certificate.U)
    return Result(
        U=U,
        V=certificate.V,
        primal=certificate.primal,
        dual=certificate.dual,
        gap=certificate.gap,
        certifies=certificate.problem,
        point=certificate.point,
        status=outcome.status,
        history=outcome.history,
        classes=problem.classes,
        solver=outcome.solver,
        intercept=intercept,
    )


def split_intercept(problem: Problem, U: Matrix) -> tuple[Matrix, np.ndarray | None]:
    """The coefficients of the features, and the intercept or None."""
    if not problem.intercept:
        return U, None
    last = U[[-1], :]
    return U[:-1, :], (last.toarray() if sp.issparse(last) else last).ravel()


def join_intercept(U: Matrix, intercept: np.ndarray | None) -> Matrix:
    """What :func:`split_intercept` takes apart."""
    if intercept is None:
        return U
    return (sp.vstack if sp.issparse(U) else np.vstack)([U, intercept[None, :]])


def _check_start(start: Any, problem: Problem) -> Start | None:
    if start is None or (isinstance(start, Start) and start.certificate is not None):
        return start  # what has a certificate was checked for it
    if isinstance(start, Result):
        start = Start(join_intercept(start.U, start.intercept), start.V)
    elif isinstance(start, tuple):
        if len(start) != 2:
            raise ValueError(f"start must be U or a pair (U, V), found {len(start)} things.")
        start = Start(*start)
    elif not isinstance(start, Start):
        start = Start(start)
    if start.U is None:
        raise ValueError("start has no U: give zeros, np.zeros((d, k)), to start from V alone.")
    last = ", the last row the intercept" if problem.intercept else ""
    U = _check_start_array("U", start.U, (problem.d, problem.k), last)
    V = None if start.V is None else _check_start_array("V", start.V, (problem.n, problem.k))
    start = replace(start, U=U, V=V)
    if start.V is not None:
        off = float(np.abs(start.V.sum(axis=1) - 1.0).max())
        if start.V.min() < 0 or off > SIMPLEX_TOLERANCE:
            raise ValueError(
                f"start: V must have rows in the simplex, found smallest entry {start.V.min():g} "
                f"and row sums off by up to {off:g}: give entries >= 0 and rows that sum to one, "
                "or leave V out."
            )
    return start


def _check_start_array(
    name: str, value: Any, shape: tuple[int, int], explanation: str = ""
) -> Matrix:
    """A float64 array or sparse array of this shape with finite entries."""
    refuse_broken(f"start: {name}", value)
    array = value if sp.issparse(value) else np.asarray(value)
    if array.shape != shape:
        found = array.shape or type(value).__name__
        raise ValueError(
            f"start: {name} must have shape {shape} for this data{explanation}, found {found}."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"start: {name} has dtype {array.dtype}: give real numbers.")
    array = sp.csr_array(array) if sp.issparse(array) else array
    if not np.isfinite(array.data if sp.issparse(array) else array).all():
        raise ValueError(f"start: {name} contains NaN or infinity: give finite numbers.")
    return array.astype(np.float64, copy=False)
