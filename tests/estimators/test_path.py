"""Regularisation paths, and the choice of a penalty by cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import SparseLinearClassifier, SparseLinearClassifierCV, cross_validation, driver
from fenchel.certificate import certify, with_dual_point
from fenchel.cross_validation import choose
from fenchel.free_features import Repair
from fenchel.losses import Hinge
from fenchel.null_penalty import NEAR
from fenchel.path import largest_penalty, walk
from fenchel.problem import Problem
from fenchel.solvers.primal_dual import PrimalDual
from fenchel.solving import solve_problem


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_every_point_of_a_path_is_certified(iris, loss, fit_intercept):
    X, y = iris
    model = SparseLinearClassifier(loss=loss, tol=1e-5, fit_intercept=fit_intercept)
    path = model.path(X, y, alphas=5)
    assert not hasattr(model, "coef_")
    assert len(path) == 5
    assert path.nonzeros[0] == 0
    assert path.nonzeros[-1] > 0
    assert (path.dual_gaps <= 1e-5 * np.log(3)).all()
    for point in path:
        alone = fenchel.solve(
            X, y, loss=loss, lam=point.alpha, tol=1e-7, fit_intercept=fit_intercept
        )
        assert point.dual_objective <= alone.primal
        assert point.objective >= alone.dual
        scores = X @ point.coef.T + point.intercept
        risk = fenchel.losses.get_loss(loss).value(scores, y).mean()
        value = risk + point.alpha * np.abs(point.coef).sum()
        assert point.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("penalty_factor", [None, [1.0, 0.2, 3.0, 1.0]])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("rows", [slice(None), slice(0, 120), slice(45, 75)])
def test_the_hinge_path_starts_at_lambda_max(iris, rows, fit_intercept, penalty_factor):
    """Some per cent above it; the rows are balanced, skewed, and two classes."""
    X, y = iris[0][rows], iris[1][rows]
    options = {"fit_intercept": fit_intercept, "penalty_factor": penalty_factor}
    found = largest_penalty(Problem.from_data(X, y, loss="hinge", lam=0.0, **options))
    assert 1.0 <= found / fenchel.lambda_max(X, y, **options) <= 1.0 + 1.1 * NEAR


def test_a_heavy_class_lowers_the_loss_by_its_intercept_alone(iris):
    X, y = iris[0][40:130], np.minimum(iris[1][40:130], 1)
    problem = Problem.from_data(X, y, loss="hinge", lam=0.0, fit_intercept=True)
    smallest = fenchel.lambda_max(X, y, fit_intercept=True)
    assert 1.0 <= largest_penalty(problem) / smallest <= 1.0 + 1.1 * NEAR


def test_a_search_that_is_late_leaves_a_bound(iris):
    X, y = iris
    problem = Problem.from_data(X, y, loss="hinge", lam=0.0)
    late = largest_penalty(problem, max_time=0.0)
    assert late > 1.2 * largest_penalty(problem)
    path = SparseLinearClassifier(max_time=1e-9, fit_intercept=False)
    with pytest.warns(ConvergenceWarning):
        assert path.path(X, y, alphas=2).alphas[0] == late


def test_given_penalties_are_sorted_and_checked(iris):
    X, y = iris
    model = SparseLinearClassifier(loss="softmax", alpha_scale="max")
    path = model.path(X, y, alphas=[0.1, 0.5])
    largest = fenchel.lambda_max(X, y, loss="softmax", fit_intercept=True)
    np.testing.assert_allclose(path.alphas, [0.5 * largest, 0.1 * largest])
    for bad in ([], [-1.0], [np.nan], 0):
        with pytest.raises(ValueError, match="alphas must be"):
            model.path(X, y, alphas=bad)
    with pytest.raises(ValueError, match="in absolute terms"):
        SparseLinearClassifier(penalty_factor=np.zeros(4)).path(X, y)


def test_choice_by_score_and_by_one_standard_error():
    scores = np.array([[0.5, 0.5, 0.5], [0.88, 0.9, 0.92], [0.9, 0.95, 0.85], [0.8, 1.0, 0.96]])
    assert choose(scores, "best") == 3
    assert choose(scores, "one-standard-error") == 1  # 0.92 - 0.061 <= 0.90
    assert choose(np.ones((3, 2)), "best") == 0  # of equals the sparsest


def test_cross_validation(iris):
    X, y = iris
    options = {"loss": "softmax", "alphas": 6, "eps": 1e-3, "cv": StratifiedKFold(3)}
    model = SparseLinearClassifierCV(**options).fit(X, y)
    assert model.scores_.shape == model.dual_gaps_.shape == (6, 3)
    assert (model.dual_gaps_ <= 1e-3 * np.log(3)).all()
    assert model.alpha_ == model.alphas_[model.scores_.mean(axis=1).argmax()]
    alone = SparseLinearClassifier(loss="softmax", alpha=model.alpha_).fit(X, y)
    assert abs(alone.objective_ - model.objective_) <= max(alone.dual_gap_, model.dual_gap_)
    train, test = next(iter(StratifiedKFold(3).split(X, y)))
    fold = SparseLinearClassifier(loss="softmax", alpha=model.alphas_[-1], tol=1e-6)
    score = fold.fit(X[train], y[train]).score(X[test], y[test])
    assert model.scores_[-1, 0] == pytest.approx(score, abs=0.03)
    parallel = SparseLinearClassifierCV(**options, n_jobs=2).fit(X, y)
    assert (parallel.scores_ == model.scores_).all()
    assert (parallel.coef_ == model.coef_).all()


def test_one_standard_error_is_sparser(iris):
    X, y = iris
    options = {"loss": "softmax", "alphas": 8, "eps": 1e-3, "cv": 3}
    best = SparseLinearClassifierCV(**options).fit(X, y)
    simple = SparseLinearClassifierCV(**options, selection="one-standard-error").fit(X, y)
    assert simple.alpha_ >= best.alpha_
    assert simple.alpha_ == simple.alphas_[choose(simple.scores_, "one-standard-error")]
    with pytest.raises(ValueError, match="selection must be"):
        SparseLinearClassifierCV(selection="1se").fit(X, y)


def test_other_scores(iris):
    X, y = iris
    model = SparseLinearClassifierCV(loss="softmax", alphas=3, cv=3, scoring="neg_log_loss")
    assert (model.fit(X, y).scores_ < 0).all()
    weights = np.linspace(0.0, 1.0, y.size)
    expected = -log_loss(y, model.predict_proba(X), sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected)
    some = y < 2  # the scorer knows the class that is not there
    assert model.score(X[some], y[some]) == pytest.approx(
        -log_loss(y[some], model.predict_proba(X[some]), labels=[0, 1, 2])
    )


def test_points_that_limits_ended_are_told_in_one_warning(iris):
    X, y = iris
    model = SparseLinearClassifier(alpha=1e-3, tol=1e-6, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="points of the path stopped") as caught:
        path = model.path(X, y, alphas=6)
    ended = [point for point in path if point.status == "max_iter"]
    assert 0 < len(ended) <= len(path) == 6
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert f"{len(ended)} of 6" in text
    assert f"up to {max(point.dual_gap for point in ended):.3g}, more than tol * P(0)" in text
    assert "raise max_iter" in text


def test_one_warning_tells_of_the_folds_and_of_the_fit_on_all_data(iris):
    X, y = iris
    model = SparseLinearClassifierCV(alphas=4, cv=3, tol=1e-6, max_iter=2)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert model.status_ == "max_iter"
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    count = (model.dual_gaps_ > 1e-6).sum()
    assert f"{count} of 12 fits of the folds stopped (max_iter)" in text
    assert f"up to {model.dual_gaps_.max():.3g}" in text
    assert "On all data, primal-dual stopped (max_iter) with a certified gap of " in text
    goal = "more than tol * P(0) = 1e-06 * 1 = 1e-06: raise max_iter"
    assert f"{model.dual_gap_:.3g}, {goal}" in text


def test_folds_alone_that_limits_ended_are_told(iris, monkeypatch):
    """The fit on all data, which has no limit here, is not mentioned."""
    X, y = iris
    solve_last = cross_validation._solve_last
    monkeypatch.setattr(
        cross_validation,
        "_solve_last",
        lambda problem, alphas, options, callback: solve_last(
            problem, alphas, options | {"max_iter": None}, callback
        ),
    )
    model = SparseLinearClassifierCV(alphas=4, cv=3, tol=1e-6, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="fits of the folds stopped") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert model.status_ == "converged"
    assert "On all data" not in str(caught[0].message)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_a_path_goes_on_from_what_the_solver_has_learnt(iris, loss):
    """Every point ends like one that is solved alone from the same start, in less work."""
    X, y = iris
    problem = Problem.from_data(X, y, loss=loss, lam=0.0, fit_intercept=True)
    grid = largest_penalty(problem) * np.geomspace(1.0, 1e-2, 12)
    options = {"tol": 1e-6, "solver": "auto"}
    start, followed, afresh = None, 0, 0
    for alpha, result in walk(problem, grid, options):
        alone = solve_problem(problem.with_penalty(alpha), start=start, **options)
        assert result.status == alone.status == "converged"
        assert result.primal >= alone.dual
        assert alone.primal >= result.dual
        start, followed, afresh = result, followed + result.n_iter, afresh + alone.n_iter
    if loss != "softmax":  # of which an iteration is a single Newton step along a path
        assert followed < 0.9 * afresh


@pytest.mark.parametrize("solver", ["auto", "proximal-newton"])
def test_a_path_begins_where_the_search_for_its_first_penalty_ends(iris, solver, monkeypatch):
    X, y = iris
    begun, init = [], PrimalDual.init

    def counted(self, problem, *rest):
        begun.append(problem.lam)
        return init(self, problem, *rest)

    monkeypatch.setattr(PrimalDual, "init", counted)
    path = SparseLinearClassifier("hinge", solver=solver).path(X, y, alphas=3)
    assert len(begun) == 1  # the search, which only a solver of its own kind goes on from
    assert begun[0] not in path.alphas
    for point in path:
        alone = fenchel.solve(X, y, lam=point.alpha, tol=1e-7, fit_intercept=True)
        assert point.dual_gap <= 1e-3
        assert point.dual_objective <= alone.primal
        assert point.objective >= alone.dual


def test_a_path_on_which_nothing_but_the_intercept_is_left_at_first_stays_short():
    """There the centre once moved in each iteration, and eta grew to 1e8, which the others had."""
    path = SparseLinearClassifier("hinge").path(*load_wine(return_X_y=True), alphas=20)
    assert (path.dual_gaps <= 1e-3).all()
    assert path.nonzeros[0] == 0
    assert path[0].n_iter <= 5  # 27 then
    assert max(point.n_iter for point in path) <= 15  # 39


def test_what_does_not_depend_on_the_penalty_is_kept(iris):
    X, y = iris
    problem = Problem.from_data(X, y, loss="softmax", lam=0.1, penalty_factor=[0, 1, 1, 1])
    problem.at_zero, problem.nonnegative, Repair.of(problem)
    other = problem.with_penalty(0.2)
    assert (other.lam, problem.lam) == (0.2, 0.1)
    assert other.nonnegative is problem.nonnegative
    assert Repair.of(other) is Repair.of(problem)
    assert other.at_zero == problem.at_zero


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("limit", [0, 100])
def test_what_a_path_returns_is_certified_afresh(iris, loss, limit, monkeypatch):
    """A point that ends where it started has had a certificate without a product."""
    X, y = iris
    problem = Problem.from_data(X, y, loss=loss, lam=0.0, fit_intercept=True)
    grid = largest_penalty(problem) * np.array([0.5, 0.499, 0.3])
    fresh = []

    def counted(problem, U, V, point="last"):
        fresh.append(certify(problem, U, V, point))
        return fresh[-1]

    def counted_dual(problem, known, V, point):
        fresh.append(with_dual_point(problem, known, V, point))
        return fresh[-1]

    monkeypatch.setattr(driver, "certify", counted)
    monkeypatch.setattr(driver, "with_dual_point", counted_dual)
    options = {"tol": 1e-2, "solver": "auto", "max_iter": limit}
    for _, result in walk(problem, grid, options):
        assert result.primal in [c.primal for c in fresh]
        assert result.dual in [c.dual for c in fresh]


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_a_path_that_goes_up_is_certified_too(iris, loss):
    X, y = iris
    problem = Problem.from_data(X, y, loss=loss, lam=0.0, fit_intercept=True)
    grid = largest_penalty(problem) * np.array([0.01, 0.3])
    for alpha, result in walk(problem, grid, {"tol": 1e-3, "solver": "auto"}):
        alone = fenchel.solve(X, y, loss=loss, lam=alpha, tol=1e-7, fit_intercept=True)
        assert result.dual <= alone.primal
        assert result.primal >= alone.dual
        assert np.asarray(result.V).min() >= 0.0


RARE = np.r_[[7, 7], np.repeat([0, 1, 2], [48, 50, 50])]
#: The two samples of class 7 are in no training data, or in no test data.
SPLITS = [(np.arange(2, 150), np.arange(150)), (np.arange(150), np.arange(2, 150))]


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax", Hinge(cost=1 - np.eye(4))])
@pytest.mark.parametrize("class_weight", [None, "balanced", {7: 3.0}])
def test_a_class_without_samples_in_a_fold(iris, loss, class_weight):
    X, _ = iris
    model = SparseLinearClassifierCV(loss, alphas=3, cv=SPLITS, class_weight=class_weight)
    model.fit(X, RARE)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.scores_[:, 0].max() <= 148 / 150  # what is not known is not found
    assert (model.dual_gaps_ <= 1e-3 * np.log(4)).all()


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_scores_of_probabilities_know_all_classes(iris, scoring):
    X, _ = iris
    model = SparseLinearClassifierCV("softmax", alphas=3, cv=SPLITS, scoring=scoring)
    scores = model.fit(X, RARE).scores_
    assert np.isfinite(scores).all()
    assert scores[-1, 0] < scores[-1, 1]


GROUPS = np.arange(150) % 6


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(iris, routing):
    X, y = iris
    with config_context(enable_metadata_routing=routing):
        model = SparseLinearClassifierCV("softmax", alphas=3, cv=GroupKFold(3))
        model.fit(X, y, groups=GROUPS)
        splits = list(GroupKFold(3).split(X, y, GROUPS))
        same = SparseLinearClassifierCV("softmax", alphas=3, cv=splits).fit(X, y)
    assert (model.scores_ == same.scores_).all()


def test_arguments_that_nobody_asks_for_are_refused(iris):
    X, y = iris
    model = SparseLinearClassifierCV("softmax", alphas=3)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        model.fit(X, y, regions=GROUPS)
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match=r"unexpected argument.*regions"),
    ):
        model.fit(X, y, regions=GROUPS)


def test_weights_reach_the_scorer_where_it_asks_for_them(iris):
    X, y = iris
    weights = np.where(np.arange(150) % 3 == 0, 5.0, 1.0)
    options = {"loss": "softmax", "alphas": 3, "cv": 3}
    plain = SparseLinearClassifierCV(**options).fit(X, y, weights)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score)
        asked = SparseLinearClassifierCV(
            **options, scoring=scorer.set_score_request(sample_weight=True)
        ).fit(X, y, sample_weight=weights)
        refused = SparseLinearClassifierCV(
            **options, scoring=scorer.set_score_request(sample_weight=False)
        ).fit(X, y, sample_weight=weights)
    assert (asked.scores_ == plain.scores_).all()
    assert (refused.scores_ != plain.scores_).any()
    assert (asked.coef_ == plain.coef_).all()
