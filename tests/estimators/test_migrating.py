"""The rows of docs/migrating.md, against the packages themselves where they are installed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fenchel import SparseLinearClassifier


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def objective(X, y, coef, intercept, alpha):
    """Mean softmax loss and l1 penalty."""
    Z = X @ coef.T + intercept
    risk = np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(y.size), y]
    return risk.mean() + alpha * np.abs(coef).sum()


def test_cyanure_has_the_same_objective(iris):
    cyanure = pytest.importorskip("cyanure.estimators")
    X, y = iris
    peer = cyanure.Classifier(
        loss="multiclass-logistic", penalty="l1", lambda_1=0.02, fit_intercept=False, tol=1e-7,
        max_iter=2000, verbose=False,
    )  # fmt: skip
    peer.fit(X.copy(), y)
    coef = np.asarray(peer.get_weights()).reshape(4, 3).T
    model = SparseLinearClassifier("softmax", alpha=0.02, fit_intercept=False, tol=1e-8).fit(X, y)
    assert objective(X, y, coef, 0.0, 0.02) == pytest.approx(model.objective_, rel=1e-4)
    np.testing.assert_allclose(coef, model.coef_, atol=0.02)


def test_celer_fits_the_difference_of_our_two_rows(iris):
    celer = pytest.importorskip("celer")
    X, y = iris
    X, y = X[50:], y[50:] - 1
    C = 0.5
    peer = celer.LogisticRegression(C=C, tol=1e-8).fit(np.asfortranarray(X), y)
    alpha = 1 / (C * y.size)
    model = SparseLinearClassifier("softmax", alpha=alpha, fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], peer.coef_.ravel(), atol=1e-4)


def test_two_rows_are_logistic_regression_with_one(iris):
    X, y = iris
    X, y = X[50:], y[50:] - 1
    peer = LogisticRegression(l1_ratio=1, C=0.5, solver="saga", tol=1e-8, max_iter=20_000).fit(X, y)
    model = SparseLinearClassifier("softmax", alpha=1 / (0.5 * y.size), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], peer.coef_.ravel(), atol=1e-4)
    assert model.intercept_[1] - model.intercept_[0] == pytest.approx(peer.intercept_[0], abs=1e-4)
