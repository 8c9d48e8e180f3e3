"""Bad parameters of the estimators: the error names the argument, the finding and the remedy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from fenchel import SparseLinearClassifier, SparseLinearClassifierCV, estimate_memory

X, Y = load_iris(return_X_y=True)
MASKED = np.ma.masked_array(X, X > 7.0)
BROKEN = sp.csc_array(X)
BROKEN.indices[7] = 150
ALL_ZERO = {"class_weight": {0: 0.0, 1: 0, 2: 0}}


def fit(X=X, y=Y, sample_weight=None, **params):
    return SparseLinearClassifier(**params).fit(X, y, sample_weight)


def predict(X):
    return fit().predict(X)


def estimate(X=X, **params):
    return estimate_memory(X, Y, **params)


def nan_of(model, X, y):
    return np.nan


class Plan:
    """A data frame that is yet to be made, such as a LazyFrame of polars."""

    def collect(self):
        return X


def fit_cv(sample_weight=None, **params):
    return SparseLinearClassifierCV(**params).fit(X, Y, sample_weight)


def fold_without_weight():
    weights = np.where(np.arange(150) % 2, 1.0, 0.0)
    half = np.arange(0, 150, 2)
    return {"cv": [(half, half + 1), (half + 1, half)], "sample_weight": weights}


@pytest.mark.parametrize(
    ("call", "params", "words"),
    [
        (fit, {"class_weight": {0: 1, 1: 1, 2: 1, 7: 3}}, ["class_weight", "7", "no label"]),
        (fit, {"class_weight": {"0": 2.0}}, ["class_weight", "'0'", "such as 0"]),
        (fit, {"class_weight": {0: -1.0}}, ["class_weight[0]", "-1.0", ">= 0"]),
        (fit, {"class_weight": {1: np.nan}}, ["class_weight[1]", "nan", "finite"]),
        (fit, {"class_weight": {1: "2"}}, ["class_weight[1]", "'2'", "number"]),
        (fit, {"class_weight": "even"}, ["class_weight", "'even'", "'balanced'"]),
        (fit, {"class_weight": [1, 2, 3]}, ["class_weight", "[1, 2, 3]", "dictionary"]),
        (fit, ALL_ZERO, ["class_weight", "zero for every class", "factor > 0"]),
        (fit, {"fit_intercept": "False"}, ["fit_intercept", "'False'", "True or False"]),
        (fit, {"positive": "no"}, ["positive", "'no'", "True or False"]),
        (fit, {"warm_start": "no"}, ["warm_start", "'no'", "True or False"]),
        (fit, {"verbose": None}, ["verbose", "None", "whole number"]),
        (fit, {"verbose": -1}, ["verbose", "-1", ">= 0"]),
        (fit, {"callback": 3}, ["callback", "3", "function"]),
        (fit, {"X": BROKEN}, ["X", "CSC", "indices", "to 150", "beyond 149", "coo_array"]),
        (fit, {"X": MASKED}, ["X", "12 masked", "X.filled", "drop"]),
        (fit, {"X": Plan()}, ["X", "Plan", "no rows", "X.collect()"]),
        (predict, {"X": Plan()}, ["X", "Plan", "no rows", "X.collect()"]),
        (fit, {"y": np.ma.masked_array(Y, Y == 1)}, ["y", "50 masked", "drop"]),
        (fit, {"sample_weight": MASKED[:, 0]}, ["sample_weight", "12 masked"]),
        (fit, {"y": np.array([b"a", b"b", b"c"])[Y]}, ["y", "bytes", "decode"]),
        (fit, {"y": np.array([b"a", "b", "c"], dtype=object)[Y]}, ["y", "bytes", "decode"]),
        (estimate, {"fit_intercept": "False"}, ["fit_intercept", "'False'", "True or False"]),
        (estimate, {"X": Plan()}, ["X", "Plan", "no rows", "X.collect()"]),
        (fit_cv, {"scoring": "neg_log_loss"}, ["scoring", "'neg_log_loss'", "loss='softmax'"]),
        (fit_cv, {"scoring": nan_of, "alphas": 3}, ["scoring", "nan", "alphas_[0]", "finite"]),
        (fit_cv, {"scoring": ["accuracy", "f1_macro"]}, ["scoring", "'f1_macro'", "one score"]),
        (fit, {"random_state": "x"}, ["random_state", "'x'", "RandomState"]),
        (fit, {"random_state": -1}, ["random_state", "-1", "RandomState"]),
        (fit, {"max_iter": -1}, ["max_iter", "-1", "the solver's own limit"]),
        (fit_cv, {"alphas": "5"}, ["alphas", "'5'", "how many"]),
        (fit_cv, {"alphas": True}, ["alphas", "True", "how many"]),
        (fit_cv, {"alphas": 0.1}, ["alphas", "0.1", "a list"]),
        (fit_cv, {"alphas": [0.1, None]}, ["alphas", "None", "a list"]),
        (fit_cv, {"eps": 2.0}, ["eps", "2.0", "at most 1", "fraction"]),
        (fit_cv, fold_without_weight(), ["sample_weight", "zero", "fold", "cv="]),
        (
            fit,
            {"loss": "softmax", "penalty": "group", "penalty_factor": [0, 1, 1, 1]},
            ["penalty_factor", "positive ones", "penalty='l1'", "fenchel.solve"],
        ),
        (
            fit,
            {"loss": "softmax", "solver": "mirror-prox", "alpha": 0.0},
            ["alpha=0", "solver='primal-dual'", "fenchel.solve"],
        ),
        (
            fit,
            {"alpha_scale": "max", "penalty": "group"},
            ["lambda_max", "'group'", "intercept", "alpha_scale='absolute'"],
        ),
    ],
)
def test_the_message(call, params, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call(**params)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert "primal-dual' cannot" not in message


def test_penalty_factors_by_name_are_those_of_the_features():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    factors = pd.Series([1.0, 2.0, 3.0, 4.0], index=["d", "c", "b", "a"])
    with pytest.raises(ValueError, match=r"penalty_factor .* another order: use .*reindex"):
        fit(frame, penalty_factor=factors)
    named = fit(frame, penalty_factor=factors.reindex(frame.columns))
    plain = fit(frame, penalty_factor=[4.0, 3.0, 2.0, 1.0])
    numbered = fit(frame, penalty_factor=pd.Series([4.0, 3.0, 2.0, 1.0]))
    assert (named.coef_ == plain.coef_).all()
    assert (numbered.coef_ == plain.coef_).all()


def test_the_remedies_work():
    """What the messages above advise is possible."""
    factors = {"penalty_factor": [0, 1, 1, 1], "alpha": 0.1, "tol": 1e-2}
    assert fit(loss="softmax", penalty="l1", **factors).status_ == "converged"
    assert fit(loss="softmax", solver="primal-dual", alpha=0.0, tol=0.1).status_ == "converged"
    assert fit(alpha=0.1, penalty="group", tol=0.5).status_ == "converged"


@pytest.mark.parametrize("n_top", [True, np.bool_(True)])
def test_topk_takes_no_bool(n_top):
    model = fit(alpha=0.1)
    with pytest.raises(ValueError, match=re.escape(f"found {n_top!r}")):
        model.predict_topk(X, n_top)


def test_a_masked_array_is_refused_where_a_model_predicts():
    model = fit(alpha=0.1)
    with pytest.raises(ValueError, match="12 masked"):
        model.predict(MASKED)
    assert (model.predict(np.ma.masked_array(X)) == model.predict(X)).all()  # nothing is masked


def test_a_broken_matrix_is_refused_where_a_model_predicts():
    model = fit(alpha=0.1)
    with pytest.raises(ValueError, match="broken CSC"):
        model.predict(BROKEN)


@pytest.mark.parametrize("loss", ["foo", ["softmax"], None])
def test_an_unknown_loss_has_no_probabilities(loss):
    model = SparseLinearClassifier(loss)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(ValueError, match="loss must be one of"):
        model.fit(X, Y)


def test_class_weights_of_labels_that_are_not_whole_text_or_missing():
    """Some classes may be left out; numpy's labels, numbers and booleans are found."""
    y = np.array(["a", "b", "c"])[Y]
    weighted = fit(y=y, class_weight={np.str_("a"): 3.0}, alpha=0.1, tol=1e-6)
    repeated = fit(y=y, sample_weight=np.where(Y == 0, 3.0, 1.0), alpha=0.1, tol=1e-6)
    assert (weighted.coef_ == repeated.coef_).all()
    fit(y=Y == 1, class_weight={True: 2.0}, alpha=0.1)
    fit(y=Y * 1.0, class_weight={1: 2.0}, alpha=0.1)
