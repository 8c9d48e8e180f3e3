"""What the estimators share before and after the work: data, problem, options, warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from fenchel import memory_refusal
from fenchel.callbacks import FIT_FRAMES
from fenchel.class_weights import class_factors
from fenchel.path import Path
from fenchel.problem import Matrix, Problem
from fenchel.samples import canonical, distinct
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solving import Result
from fenchel.termination import Status
from fenchel.validation import (
    check_budget,
    check_sample_weight,
    refuse_broken,
    refuse_lazy,
    refuse_mask,
)


def read_training_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Matrix, np.ndarray, np.ndarray | None]:
    """Check the data, set ``classes_``, and return X, the class codes, and the weights."""
    for name, values in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        refuse_mask(name, values)
        refuse_lazy(name, values)
    refuse_broken("X", X)
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "SO" and any(isinstance(label, bytes) for label in y.tolist()):
        raise ValueError("y holds labels of bytes: decode them to text, such as b'a'.decode().")
    try:
        check_classification_targets(y)
        estimator.classes_, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"y mixes labels that cannot be sorted ({error}): drop the rows without a label, and "
            "convert the others to one type."
        ) from error
    if estimator.classes_.size < 2:
        raise ValueError(
            f"y has one class only ({estimator.classes_[0]}): a classifier needs samples of at "
            "least two classes."
        )
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        check_sample_weight(sample_weight, X.shape[0])
    return X, codes, sample_weight


def make_problem(
    estimator: Any,
    X: Matrix,
    codes: np.ndarray,
    weights: np.ndarray | None,
    penalty: tuple[float, str] | None = None,
    splits: list[tuple[np.ndarray, np.ndarray]] | None = None,
) -> Problem:
    """The estimator's problem, with lam = 0, on the distinct samples (:mod:`fenchel.samples`).

    Given the smallest penalty that is asked for, with its unit, and the splits of a
    cross-validation, it is refused where these samples take more memory than is free.
    """
    _refuse_other_order(estimator)
    X = canonical(X)
    rows, weights = distinct(X, codes, weights)
    if penalty is not None:
        memory_refusal.check(estimator, X, codes, (rows, weights), penalty, splits)
    codes, classes = codes[rows], estimator.classes_
    if estimator.class_weight is not None:
        weights = weights * class_factors(estimator.class_weight, classes, codes, weights)[codes]
    return Problem.from_data(
        X,
        codes,
        loss=estimator.loss,
        lam=0.0,
        sample_weight=weights,
        penalty_factor=estimator.penalty_factor,
        classes=np.arange(classes.size),
        penalty=estimator.penalty,
        fit_intercept=estimator.fit_intercept,
        positive=estimator.positive,
        rows=rows,
    )


def _refuse_other_order(estimator: Any) -> None:
    """Refuse a series of penalty factors that names other features, or in another order, than X."""
    index = getattr(estimator.penalty_factor, "index", None)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or index is None or callable(index):  # a list has a method of this name
        return
    by_name = [name for name in index if isinstance(name, str)]
    if by_name and by_name != list(names):
        raise ValueError(
            "penalty_factor is indexed by other features than X has, or in another order: use "
            "penalty_factor.reindex(X.columns), or its values alone."
        )


def solver_options(estimator: Any) -> dict[str, Any]:
    """The estimator's parameters as arguments of :func:`fenchel.solving.solve_problem`."""
    return {
        "tol": estimator.tol,
        "solver": estimator.solver,
        "max_iter": estimator.max_iter,
        "max_time": check_budget("max_time", estimator.max_time),
        "rng": _seed(estimator.random_state),
    }


def _seed(random_state: Any) -> int:
    """A seed that is drawn from scikit-learn's parameter of this name."""
    try:
        return check_random_state(random_state).randint(np.iinfo(np.int32).max)
    except ValueError as error:  # which does not name it
        raise ValueError(
            "random_state must be a whole number from 0 to 2^32 - 1, a RandomState or None, found "
            f"{random_state!r}."
        ) from error


#: What to try where a run ended before its tolerance.
REMEDIES = {
    Status.MAX_ITER: "raise max_iter",
    Status.MAX_TIME: "raise max_time",
    Status.DIVERGED: "scale the features, for example with StandardScaler",
}

#: A gap of this part of P(0) cannot be told from rounding.
ROUNDING = 1e-13

#: Solvers of the paper, for rough accuracy.
FIRST_ORDER = (
    "mirror-descent", "mirror-prox", "partial-sampling", "full-sampling", "sublinear", "subgradient"
)  # fmt: skip


def warn_unless_converged(result: Result, tol: float, problem: Problem) -> None:
    """One warning with the gap, the tolerance in the same unit, and what to try."""
    if sentence := _of_fit(result, tol, problem):
        warnings.warn(sentence, ConvergenceWarning, stacklevel=2 + FIT_FRAMES)


def warn_of_cross_validation(
    statuses: np.ndarray, gaps: np.ndarray, result: Result, tol: float, problem: Problem
) -> None:
    """One warning where fits of the folds, or the fit on all data, ended before ``tol``."""
    sentences = [_of_folds(statuses, gaps, tol, problem), _of_fit(result, tol, problem)]
    if any(sentences):
        text = " On all data, ".join(sentences) if all(sentences) else "".join(sentences)
        warnings.warn(text, ConvergenceWarning, stacklevel=2 + FIT_FRAMES)


def warn_of_path(path: Path, n_asked: int, tol: float, problem: Problem) -> None:
    """One warning where a path was interrupted, or where limits ended points before ``tol``."""
    sentences = []
    if len(path) < n_asked or path[-1].status == Status.INTERRUPTED:
        sentences.append(
            f"the path was interrupted: it has {len(path)} of {n_asked} points, and the last "
            f"one has a certified gap of {path[-1].dual_gap:.3g}."
        )
    ended = [(point.status, point.dual_gap) for point in path if point.status in REMEDIES]
    if ended:
        sentences.append(
            f"{len(ended)} of {len(path)} points of the path {_stopped(ended, tol, problem)}"
        )
    if sentences:
        warnings.warn(" ".join(sentences), ConvergenceWarning, stacklevel=3 + FIT_FRAMES)


def _of_fit(result: Result, tol: float, problem: Problem) -> str:
    """What there is to say of a fit: nothing where it converged."""
    if result.status == Status.CONVERGED:
        return ""
    return (
        f"{result.solver} stopped ({result.status}) with a certified gap of {result.gap:.3g}, more "
        f"than {_tolerance(tol, problem)}: {_remedies(result, problem)}. The model is the best "
        f"point found, and its objective is at most {result.gap:.3g} above the smallest."
    )


def _remedies(result: Result, problem: Problem) -> str:
    """What to try for a fit that did not converge."""
    if result.gap <= ROUNDING * problem.at_zero:
        return "raise tol, because a gap of this size is rounding"
    remedies = [REMEDIES.get(result.status, "let it run longer")]
    if result.status == Status.MAX_ITER:
        remedies[0] += f" above {result.n_iter}"
    if result.solver in FIRST_ORDER and not PrimalDual.refuses(problem):
        remedies.append("use solver='auto', which is made for small gaps")
    if result.status != Status.DIVERGED:
        remedies.append("scale the features")
    return ", ".join(remedies) + ", or raise tol or alpha"


def _of_folds(statuses: np.ndarray, gaps: np.ndarray, tol: float, problem: Problem) -> str:
    """What there is to say of the fits of the folds: nothing where no limit ended one."""
    ended = [pair for pair in zip(statuses.flat, gaps.flat, strict=True) if pair[0] in REMEDIES]
    if not ended:
        return ""
    return (
        f"{len(ended)} of {statuses.size} fits of the folds {_stopped(ended, tol, problem)} "
        "The scores are those of the best points found; dual_gaps_ has the gaps."
    )


def _stopped(ended: list[tuple[str, float]], tol: float, problem: Problem) -> str:
    statuses = sorted({str(status) for status, _ in ended})
    remedies = " and ".join(REMEDIES[Status(status)] for status in statuses)
    return (
        f"stopped ({', '.join(statuses)}) with certified gaps of up to "
        f"{max(gap for _, gap in ended):.3g}, more than {_tolerance(tol, problem)}: {remedies}, or "
        "raise tol."
    )


def _tolerance(tol: float, problem: Problem) -> str:
    at_zero = problem.at_zero
    return f"tol * P(0) = {tol:.3g} * {at_zero:.3g} = {tol * at_zero:.3g}"
