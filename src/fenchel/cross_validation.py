"""The estimator that chooses its penalty by cross-validation along regularisation paths."""

from __future__ import annotations

from copy import copy
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted

from fenchel.callbacks import FitMonitor, shown, with_callbacks
from fenchel.driver import Callback
from fenchel.estimators import LinearClassifier, SparseLinearClassifier
from fenchel.losses import Loss, get_loss
from fenchel.path import penalties, smallest_penalty, walk
from fenchel.problem import Matrix, Problem
from fenchel.solvers.base import Solver
from fenchel.solving import Result, solve_problem
from fenchel.termination import Status
from fenchel.training import (
    make_problem,
    read_training_data,
    solver_options,
    warn_of_cross_validation,
)


class SparseLinearClassifierCV(LinearClassifier):
    """:class:`SparseLinearClassifier` with the penalty chosen by cross-validation.

    Every fold walks one warm-started regularisation path; the model is then fitted on all data,
    along the path down to the chosen penalty. The folds know all classes, also those of which they
    have no sample.

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
    n_jobs : how many folds to work on at the same time, each with the memory of a fit; the result
        does not depend on it.
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
        eps: float = 1e-3,
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
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **params: Any
    ) -> SparseLinearClassifierCV:
        """Choose the penalty and fit; a weight is a repetition, in the fits and in the scores.

        Parameters
        ----------
        X, y, sample_weight : as in :class:`SparseLinearClassifier`.
        **params : ``groups`` for the splitter ``cv``; with scikit-learn's metadata routing all
            that the splitter and the scorer ask for. The scorer must then ask for weights too.
        """
        if self.selection not in ("best", "one-standard-error"):
            raise ValueError(
                f"selection must be 'best' or 'one-standard-error', found {self.selection!r}."
            )
        self._check_scoring()
        _raise_for_params(params, self, "fit", allow={"groups"})
        X, codes, weights = read_training_data(self, X, y, sample_weight)
        routed = self._route(weights, params)
        last = smallest_penalty(self.alphas, eps=self.eps, scale=self.alpha_scale)
        y, options = self.classes_[codes], solver_options(self)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, **routed.splitter.split))
        problem = make_problem(self, X, codes, weights, last, splits)
        self.alphas_ = penalties(
            problem,
            self.alphas,
            eps=self.eps,
            scale=self.alpha_scale,
            tol=self.tol,
            max_time=options["max_time"],
        )
        scorer = _with_labels(self._scorer(), self.classes_)
        model = self._model()
        model.classes_, model.n_features_in_ = self.classes_, X.shape[1]
        folds = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_fold)(
                model, scorer, X, codes, weights, train, test, self.alphas_, options,
                _check_method_params(X, routed.scorer.score, indices=test),
            )
            for train, test in splits
        )  # fmt: skip
        self.scores_, self.dual_gaps_, statuses = (
            np.array(part).T for part in zip(*folds, strict=True)
        )
        if not np.isfinite(self.scores_).all():
            bad = np.argwhere(~np.isfinite(self.scores_))[0]
            raise ValueError(
                f"scoring={self.scoring!r} gave {self.scores_[*bad]} (first at alphas_[{bad[0]}], "
                f"fold {bad[1]}), by which nothing can be chosen: give a scorer of finite numbers."
            )
        chosen = choose(self.scores_, self.selection)
        self.alpha_ = float(self.alphas_[chosen])
        monitor = FitMonitor(self, problem, X, y, weights)
        with shown(self.verbose):
            result = _solve_last(problem, self.alphas_[: chosen + 1], options, monitor)
        self._set_result(result, X.dtype)
        warn_of_cross_validation(statuses, self.dual_gaps_, result, self.tol, problem)
        monitor.end()
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score by which the penalty was chosen: ``scoring``, accuracy where that is None."""
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(_with_labels(self._scorer(), self.classes_)(self, X, y, **weights))

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` hands on: to the splitter, and to the scorer (scikit-learn's user guide)."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(
                scorer=self._scorer(),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        )

    def _route(self, weights: np.ndarray | None, params: dict[str, Any]) -> Bunch:
        """The arguments of the splitter and of the scorer."""
        if _routing_enabled():
            return process_routing(self, "fit", sample_weight=weights, **params)
        weighted = {} if weights is None else {"sample_weight": weights}
        return Bunch(splitter=Bunch(split=params), scorer=Bunch(score=weighted))

    def _scorer(self) -> Any:
        return check_scoring(self, self.scoring or "accuracy")

    def _check_scoring(self) -> None:
        """Refuse more than one score, and a scorer of probabilities that the loss has none for.

        Before any path is made.
        """
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                f"scoring must be a scorer's name, a scorer or None, found {self.scoring!r}: one "
                "score chooses the penalty."
            )
        if getattr(self._scorer(), "_response_method", None) == "predict_proba":
            get_loss(self.loss)  # where there is no such loss, that is what is wrong
            try:
                self._probabilistic_loss()
            except AttributeError as error:
                raise ValueError(f"scoring={self.scoring!r} needs probabilities: {error}") from None

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


def _with_labels(scorer: Any, classes: np.ndarray) -> Any:
    """The scorer, which is told all classes where it scores their probabilities.

    The samples that are left out may lack some of them.
    """
    function = getattr(scorer, "_score_func", None)
    if (
        function is None
        or scorer._response_method != "predict_proba"
        or "labels" not in signature(function).parameters
    ):
        return scorer
    return make_scorer(
        function,
        response_method="predict_proba",
        greater_is_better=scorer._sign > 0,
        **{"labels": classes} | scorer._kwargs,
    )


def _score_fold(
    model: SparseLinearClassifier,
    scorer: Any,
    X: Matrix,
    codes: np.ndarray,
    weights: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    alphas: np.ndarray,
    options: dict[str, Any],
    score_params: dict[str, Any],
) -> tuple[list[float], list[float], list[str]]:
    """The score on the left-out rows, the certified gap and the status, for every penalty."""
    model = copy(model)
    X_test, y_test = _safe_indexing(X, test), model.classes_[codes[test]]
    weights = None if weights is None else weights[train]
    used = codes[train] if weights is None else codes[train][weights > 0.0]
    present = model.classes_[np.unique(used)]
    if present.size == 0:
        raise ValueError(
            "sample_weight is zero for every training sample of a fold: give other folds, for "
            "example cv=StratifiedKFold(shuffle=True), or leave out the samples without weight."
        )
    if present.size == 1:
        raise ValueError(
            f"a fold has samples of one class only ({present[0]}): give fewer folds, or "
            "cv=StratifiedKFold(shuffle=True)."
        )
    problem = make_problem(model, _safe_indexing(X, train), codes[train], weights)
    scores, gaps, statuses = [], [], []
    for _, result in walk(problem, alphas, options):
        if result.status == Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted in the folds of the cross-validation")
        model._set_result(result, X.dtype)
        scores.append(float(scorer(model, X_test, y_test, **score_params)))
        gaps.append(result.gap)
        statuses.append(str(result.status))
    return scores, gaps, statuses


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
