"""The estimator that chooses its penalty by cross-validation along regularisation paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from fenchel import memory
from fenchel.callbacks import FitMonitor, shown, with_callbacks
from fenchel.driver import Callback
from fenchel.estimators import (
    LinearClassifier,
    SparseLinearClassifier,
    make_problem,
    read_training_data,
    solver_options,
    warn_unless_converged,
)
from fenchel.losses import Loss
from fenchel.path import penalties, walk
from fenchel.problem import Matrix, Problem
from fenchel.solve import Result, solve_problem
from fenchel.solvers.base import Solver
from fenchel.termination import Status


class SparseLinearClassifierCV(LinearClassifier):
    """:class:`SparseLinearClassifier` with the penalty chosen by cross-validation.

    Every fold walks one warm-started regularisation path; the model is then fitted on all data,
    along the path down to the chosen penalty.

    Ctrl-C in the folds raises KeyboardInterrupt, as there is nothing to choose from; in the fit on
    all data it ends the fit with the best point so far, certified for the chosen penalty.

    Parameters
    ----------
    loss : as in :class:`SparseLinearClassifier`, like all parameters that are not named here.
    alphas : the penalties to try, in the unit of ``alpha_scale``; or how many of them, spaced
        geometrically from :func:`fenchel.lambda_max` of all data down to ``eps`` times that.
    eps : the smallest penalty as a fraction of the largest, where ``alphas`` is a number.
    cv : None (five stratified folds), a number of folds, a splitter, or an iterable of splits.
    scoring : None (accuracy), a scorer's name, or a scorer.
    selection : "best" takes the penalty with the highest mean score, the largest of equals;
        "one-standard-error" takes the largest whose mean is at most one standard error below.
    max_iter, max_time : as there, for every point of every path.
    n_jobs : how many folds to work on at the same time; the result does not depend on it.
    verbose, callback : as there, for the checks of the fit on all data, the whole path down to the
        chosen penalty (``record.iteration`` is 0 where a point begins), after the folds, which are
        silent. scikit-learn's callbacks are told of the same checks.

    Attributes
    ----------
    alpha_ : the chosen penalty, in absolute terms.
    alphas_ : (n_alphas,) the penalties tried, the largest first.
    scores_ : (n_alphas, n_folds) the scores on the left-out samples.
    dual_gaps_ : (n_alphas, n_folds) the certified gaps.
    coef_, intercept_, classes_, dual_gap_, ... : as in :class:`SparseLinearClassifier`, of the
        model fitted on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import SparseLinearClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseLinearClassifierCV(loss="softmax", alphas=5, cv=3).fit(X, y)
    >>> model.scores_.shape, bool(model.alpha_ in model.alphas_)
    ((5, 3), True)
    """

    def __init__(
        self,
        loss: str | Loss = "hinge",
        alphas: Any = 20,
        *,
        eps: float = 1e-2,
        alpha_scale: str = "absolute",
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
        tol: float = 1e-3,
        solver: str | Solver = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        penalty_factor: Any = None,
        penalty: str = "l1",
        positive: bool = False,
        max_iter: int | None = None,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.eps = eps
        self.alpha_scale = alpha_scale
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.penalty_factor = penalty_factor
        self.penalty = penalty
        self.positive = positive
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseLinearClassifierCV:
        """Choose the penalty and fit; a weight is a repetition, in the fits and in the scores."""
        if self.selection not in ("best", "one-standard-error"):
            raise ValueError(
                f"selection must be 'best' or 'one-standard-error', found {self.selection!r}."
            )
        X, codes, weights = read_training_data(self, X, y, sample_weight)
        memory.check(X, self.classes_.size, self.loss)
        problem, options = make_problem(self, X, codes, weights), solver_options(self)
        self.alphas_ = penalties(
            problem,
            self.alphas,
            eps=self.eps,
            scale=self.alpha_scale,
            max_time=options["max_time"],
        )
        y = self.classes_[codes]
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        scorer = check_scoring(self, self.scoring)
        folds = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_fold)(
                self._model(), scorer, X, y, weights, train, test, self.alphas_, options
            )
            for train, test in splits
        )
        self.scores_, self.dual_gaps_ = (np.array(part).T for part in zip(*folds, strict=True))
        chosen = choose(self.scores_, self.selection)
        self.alpha_ = float(self.alphas_[chosen])
        monitor = FitMonitor(self, problem, X, y, weights)
        with shown(self.verbose):
            result = _solve_last(problem, self.alphas_[: chosen + 1], options, monitor)
        self._set_result(result, X.dtype)
        warn_unless_converged(result, self.tol, problem)
        monitor.end()
        return self

    def _model(self) -> SparseLinearClassifier:
        shared = set(SparseLinearClassifier._get_param_names())
        params = {name: value for name, value in self.get_params(False).items() if name in shared}
        return SparseLinearClassifier(**params | {"callback": None})


def choose(scores: np.ndarray, selection: str) -> int:
    """The chosen row of the scores (penalties x folds, the largest penalty first)."""
    means = scores.mean(axis=1)
    best = int(means.argmax())
    if selection == "best":
        return best
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else 0.0
    return int(np.flatnonzero(means >= means[best] - error)[0])


def _score_fold(
    model: SparseLinearClassifier,
    scorer: Any,
    X: Matrix,
    y: np.ndarray,
    weights: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    alphas: np.ndarray,
    options: dict[str, Any],
) -> tuple[list[float], list[float]]:
    """The score on the left-out rows and the certified gap, for every penalty."""
    model = clone(model)
    X_test, y_test = _safe_indexing(X, test), y[test]
    weighted = {} if weights is None else {"sample_weight": weights[test]}
    X_train, y_train = _safe_indexing(X, train), y[train]
    model.n_features_in_ = X.shape[1]
    model.classes_, codes = np.unique(y_train, return_inverse=True)
    if model.classes_.size < 2:
        raise ValueError(
            f"a fold has samples of one class only ({model.classes_[0]}): give fewer folds, or "
            "cv=StratifiedKFold(shuffle=True)."
        )
    problem = make_problem(model, X_train, codes, None if weights is None else weights[train])
    scores, gaps = [], []
    for _, result in walk(problem, alphas, options):
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted in the folds of the cross-validation")
        model._set_result(result, X.dtype)
        scores.append(float(scorer(model, X_test, y_test, **weighted)))
        gaps.append(result.gap)
    return scores, gaps


def _solve_last(
    problem: Problem, alphas: np.ndarray, options: dict[str, Any], callback: Callback
) -> Result:
    """The solution for the last penalty of a path.

    That of a path which was interrupted before is the point where it ended, certified anew.
    """
    result: Result | None = None
    try:
        for alpha, result in walk(problem, alphas, options, callback=callback):
            if alpha == alphas[-1]:
                return result
    except KeyboardInterrupt:  # between two points
        if result is None:
            raise
    last = problem.with_penalty(float(alphas[-1]))
    return solve_problem(last, start=result, callback=lambda record: True, **options)
