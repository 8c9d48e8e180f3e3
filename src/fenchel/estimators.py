"""The scikit-learn estimator. It holds no mathematics: ``fenchel.solve`` does the work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from numbers import Integral
from types import MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel import persistence, prediction
from fenchel.callbacks import CallbackSupportMixin, FitMonitor, shown, with_callbacks
from fenchel.driver import Callback
from fenchel.losses import Loss, Softmax, Sparsemax, get_loss
from fenchel.path import (
    Path,
    continued,
    penalties,
    regularisation_path,
    resolve_alpha,
    smallest_penalty,
)
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Solver, Start
from fenchel.solving import Result, solve_problem
from fenchel.training import (
    make_problem,
    read_training_data,
    solver_options,
    warn_of_path,
    warn_unless_converged,
)
from fenchel.validation import check_flag, refuse_broken, refuse_lazy, refuse_mask

#: How many classes ``predict_topk`` returns unless it is told.
TOP = 5


class of_probabilistic_losses:  # noqa: N801 (a decorator)
    """A method of models with probabilities; of the others, an AttributeError that says why.

    As scikit-learn's ``available_if``, but for that: its error only names the attribute.
    """

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self.method = method

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., np.ndarray]:
        if model is None:
            return self.method
        model._probabilistic_loss()
        return MethodType(self.method, model)


class LinearClassifier(ClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """What a fitted model can do; the subclasses fit it."""

    coef_: Matrix
    intercept_: np.ndarray
    classes_: np.ndarray
    loss: str | Loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any) -> Matrix:
        check_is_fitted(self)
        refuse_mask("X", X)
        refuse_lazy("X", X)
        refuse_broken("X", X)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores, (n, k); with two classes the second score less the first one, (n,)."""
        X = self._read(X)
        compute = prediction.margins if self.classes_.size == 2 else prediction.scores
        return compute(X, self.coef_, self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score, (n,), without ever holding all scores."""
        return self._topk(self._read(X), 1)[0][:, 0]

    def predict_topk(
        self, X: Any, n_top: int | None = None, *, return_scores: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The ``n_top`` classes with the highest scores, best first, (n, n_top).

        By default five of them, or all where there are fewer. With ``return_scores`` their scores,
        of the same shape, are returned besides.
        """
        X = self._read(X)
        if n_top is None:
            n_top = min(TOP, self.classes_.size)
        whole = isinstance(n_top, Integral) and not isinstance(n_top, bool)
        if not whole or not 1 <= n_top <= self.classes_.size:
            raise ValueError(
                f"n_top must be an integer between 1 and the number of classes "
                f"({self.classes_.size}), found {n_top!r}."
            )
        labels, scores = self._topk(X, n_top, return_scores)
        return (labels, scores) if return_scores else labels

    def _topk(self, X: Any, n_top: int, with_scores: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Labels and scores, which are not written without ``with_scores`` and take no memory."""
        labels = np.empty((X.shape[0], n_top), dtype=self.classes_.dtype)
        scores = np.empty(labels.shape, np.result_type(X, self.coef_, self.intercept_))
        for rows, columns, values in prediction.top_blocks(X, self.coef_, self.intercept_, n_top):
            labels[rows] = self.classes_[columns]
            if with_scores:
                scores[rows] = values
        return labels, scores

    @of_probabilistic_losses
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, k): softmax of the scores, or their projection onto
        the simplex (sparsemax). The hinge loss has none.
        """
        X, loss = self._read(X), self._probabilistic_loss()
        # f of these losses does not depend on y: the maximiser at z is the prediction
        return prediction.scores(
            X, self.coef_, self.intercept_, lambda Z: loss.argmax(Z, np.zeros(len(Z), np.intp))
        )

    @of_probabilistic_losses
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of ``predict_proba``."""
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):  # sparsemax gives exact zeros
            return np.log(probabilities, out=probabilities)

    def _probabilistic_loss(self) -> Loss:
        try:
            loss = get_loss(self.loss)
        except ValueError as error:  # no such loss: hasattr asks, and fit refuses
            raise AttributeError(str(error)) from error
        if not isinstance(loss, Softmax | Sparsemax):
            raise AttributeError(
                f"loss={self.loss!r} models no probabilities, so that there is no predict_proba: "
                "use loss='softmax' or 'sparsemax', or calibrate this one with "
                "sklearn.calibration.CalibratedClassifierCV."
            )
        return loss

    def sparsify(self) -> LinearClassifier:
        """Make ``coef_`` a CSR array."""
        check_is_fitted(self)
        self.coef_ = sp.csr_array(self.coef_)
        return self

    def densify(self) -> LinearClassifier:
        """Make ``coef_`` a numpy array."""
        check_is_fitted(self)
        self.coef_ = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`fenchel.load` reads: no pickle, written at once."""
        check_is_fitted(self)
        persistence.save(self, path)

    def _set_result(self, result: Result, dtype: np.dtype) -> None:
        """Take over a solution and its certificate."""
        self.__dict__.pop("source_", None)  # of a model file, and not of these data
        self.__dict__.update(prediction.fitted(result.U, result.intercept, dtype))
        self.n_iter_ = result.n_iter
        self.objective_, self.dual_objective_ = result.primal, result.dual
        self.dual_gap_ = result.gap
        self.status_, self.history_ = str(result.status), result.history


class SparseLinearClassifier(LinearClassifier):
    """A sparse multiclass linear classifier that comes with a certificate.

    It minimises ``mean loss + alpha * sum_j penalty_factor_j sum_l |coef_[l, j]|``, where the mean
    is weighted, so that ``alpha`` keeps its meaning whatever the number of samples.

    Parameters
    ----------
    loss : "hinge" (multiclass SVM), "softmax" (multinomial logistic regression), "sparsemax", or an
        object of :mod:`fenchel.losses`, such as ``Hinge(cost=...)``.
    alpha : float >= 0, the penalty, in the unit that ``alpha_scale`` names.
    alpha_scale : "absolute", or "max": alpha is then a fraction of :func:`fenchel.lambda_max`, the
        smallest penalty whose solution is zero.
    tol : fit stops when ``dual_gap_ <= tol * P(0)``, where P(0) is the objective at zero (hinge: 1,
        softmax: log k), whatever the weights and the order of the classes. With costs
        (``Hinge(cost=...)``) it is the weighted mean of the largest cost of each sample's class.
    solver : "auto", the name of a solver of :func:`fenchel.solve`, or a solver object.
    fit_intercept : whether each class has a constant, which is not penalised.
    class_weight : None, "balanced", or a dictionary from label to a factor on the sample weights.
    penalty_factor : (d,) factors >= 0 on alpha, or None; 0 leaves a feature without penalty.
    penalty : "l1", or "group": a feature is used by all classes or by none.
    positive : whether to allow no negative coefficient (the intercept keeps its sign).
    max_iter, max_time : limits on iterations and on seconds, or None. Where both are None, the
        solver's own limit on iterations ends a fit that does not come to ``tol``: "auto", 100,000
        (a fit makes tens). A search for ``lambda_max`` (``alpha_scale="max"`` with the hinge loss)
        counts against ``max_time``; one that does not end in time raises TimeoutError, as without
        it there is no penalty.
    warm_start : start from the last solution, primal and dual, where its shape allows it.
    random_state : seed of the randomised solvers.
    verbose : 1 shows the checks of the certificate on standard error, 2 all that is logged.
    callback : called with a :class:`~fenchel.termination.Record` at every check; returning True
        (or numpy's) stops the fit, and no other value does. scikit-learn's own callbacks
        (``set_callbacks``) work too.

    Attributes
    ----------
    coef_ : (k, d), one row a class, also for two classes; a CSR array where that is smaller than a
        numpy array of more than 1 MiB (``densify()`` undoes it). float32 if X is float32.
    intercept_ : (k,), summing to zero.
    classes_, n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    objective_, dual_objective_, dual_gap_ : float. The optimum lies between ``dual_objective_`` and
        ``objective_``; ``dual_gap_`` is their difference, computed in float64 (before rounding to
        float32 if X is float32).
    status_ : "converged", "max_iter", "max_time", "interrupted" or "diverged".
    history_ : list of :class:`~fenchel.termination.Record`, one a check.
    n_iter_ : iterations of the solver.
    alpha_ : the penalty in absolute terms.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import SparseLinearClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseLinearClassifier(loss="softmax", alpha=0.01).fit(X, y)
    >>> model.status_, model.dual_gap_ < 0.0011, model.score(X, y) > 0.95
    ('converged', True, True)
    """

    def __init__(
        self,
        loss: str | Loss = "hinge",
        alpha: float = 1e-3,
        *,
        alpha_scale: str = "absolute",
        tol: float = 1e-3,
        solver: str | Solver = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        penalty_factor: Any = None,
        penalty: str = "l1",
        positive: bool = False,
        max_iter: int | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.alpha_scale = alpha_scale
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.penalty_factor = penalty_factor
        self.penalty = penalty
        self.positive = positive
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseLinearClassifier:
        """Fit the model; a weight is a repetition of its row.

        The order of the samples does not matter: see :mod:`fenchel.samples`. Ctrl-C ends the fit
        with the best point so far and a warning; in the search for ``lambda_max``, where there is
        no point yet, it raises KeyboardInterrupt.
        """
        check_flag("warm_start", self.warm_start)
        X, codes, weights = read_training_data(self, X, y, sample_weight)
        problem = make_problem(self, X, codes, weights, (self.alpha, self.alpha_scale))
        options, began = solver_options(self), time.perf_counter()
        limit = options["max_time"]
        self.alpha_ = resolve_alpha(problem, self.alpha, self.alpha_scale, limit)
        if limit is not None:
            options["max_time"] = max(0.0, limit - (time.perf_counter() - began))
        problem = problem.with_penalty(self.alpha_)
        monitor = FitMonitor(self, problem, X, y, weights)
        start = self._start(problem)
        with shown(self.verbose):
            result = solve_problem(problem, start=start, callback=monitor, **options)
        self._set_result(result, X.dtype)
        if self.warm_start:
            self._dual_ = result.V
        warn_unless_converged(result, self.tol, problem)
        monitor.end()
        return self

    def path(
        self, X: Any, y: Any, sample_weight: Any = None, *, alphas: Any = 20, eps: float = 1e-3
    ) -> Path:
        """Fit a whole regularisation path, each point started from the one before.

        ``max_iter`` and ``max_time`` hold for every point, and for a search for ``lambda_max``. The
        callbacks and ``verbose`` are told of every check; ``record.iteration`` is 0 where a point
        begins. Ctrl-C, or a callback, ends the path with the points so far. One warning tells that,
        and of points that ended before ``tol``.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``; the estimator itself is not fitted.
        alphas : the penalties, in the unit of ``alpha_scale``; or how many of them, spaced
            geometrically from :func:`fenchel.lambda_max` down to ``eps`` times that.
        eps : the smallest penalty as a fraction of the largest, where ``alphas`` is a number.

        Returns
        -------
        Path
            A list of points, each with its penalty, coefficients and certificate.
        """
        return copy(self)._path(X, y, sample_weight, alphas, eps)

    @with_callbacks
    def _path(self, X: Any, y: Any, sample_weight: Any, alphas: Any, eps: float) -> Path:
        """The path; sets ``classes_`` and what else is known of the data."""
        X, codes, weights = read_training_data(self, X, y, sample_weight)
        last = smallest_penalty(alphas, eps=eps, scale=self.alpha_scale)
        problem, options = make_problem(self, X, codes, weights, last), solver_options(self)
        solver = options["solver"] = continued(problem, options["solver"])
        with shown(self.verbose):
            grid = penalties(
                problem,
                alphas,
                eps=eps,
                scale=self.alpha_scale,
                tol=self.tol,
                max_time=options["max_time"],
                solver=solver,
            )
            monitor = FitMonitor(self, problem, X, y, weights)
            path = regularisation_path(
                problem, grid, options, classes=self.classes_, dtype=X.dtype, callback=monitor
            )
        warn_of_path(path, grid.size, self.tol, problem)
        monitor.end()
        return path

    def _start(self, problem: Problem) -> Start | None:
        """The last solution where ``warm_start`` asks for it and where its shape fits."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        k, d = problem.k, problem.d - problem.intercept
        if self.coef_.shape != (k, d):
            return None
        U = self.coef_.T.astype(np.float64)
        if problem.intercept:
            stack = sp.vstack if sp.issparse(U) else np.vstack
            U = stack([U, self.intercept_[None, :].astype(np.float64)])
        V = getattr(self, "_dual_", None)
        return Start(U, V if V is not None and V.shape == (problem.n, k) else None)
