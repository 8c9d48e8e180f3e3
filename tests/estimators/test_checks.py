"""scikit-learn's own checks, without an expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import SparseLinearClassifier, SparseLinearClassifierCV

LOSSES = ("hinge", "softmax", "sparsemax")


def exact(loss):
    """Accurate enough for scikit-learn to see that a weight is a repetition (rtol 1e-7)."""
    return SparseLinearClassifier(loss=loss, alpha=1e-2, tol=1e-12, max_iter=30)


def first_order(loss):
    """Far from converged, but a deterministic solver walks the same way for a repetition."""
    return SparseLinearClassifier(
        loss=loss, alpha=0.05, solver="mirror-descent", fit_intercept=False, max_iter=300
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [exact(loss) for loss in LOSSES]
    + [first_order("hinge")]
    + [SparseLinearClassifierCV(alphas=[0.03, 0.01], cv=3, tol=1e-12, max_iter=30)]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
