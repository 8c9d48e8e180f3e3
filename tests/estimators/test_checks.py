"""scikit-learn's own checks for every loss and every solver, without an expected failure.

What a solver that is stopped early returns would differ between a weight and a repetition, if the
data did not become the same weighted set before (:mod:`fenchel.samples`).
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import SparseLinearClassifier, SparseLinearClassifierCV

LOSSES = ("hinge", "softmax", "sparsemax")

#: Iterations that are enough for the accuracy that scikit-learn asks for, by solver.
#: The sampled solver that learns slowest gets a larger ball (a smaller penalty) besides.
SETTINGS = {
    "mirror-descent": (600, 0.1),
    "mirror-prox": (30, 0.1),
    "partial-sampling": (300, 0.1),
    "full-sampling": (1000, 0.05),
    "subgradient": (500, 0.1),
    "hybrid-gradient": (300, 0.1),
    "proximal-newton": (100, 0.1),
}


def limited(loss, solver, max_iter, alpha):
    """A solver by its name; those of the paper are far from converged."""
    return SparseLinearClassifier(loss=loss, alpha=alpha, solver=solver, max_iter=max_iter)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [SparseLinearClassifier(loss=loss) for loss in LOSSES]
    + [limited(loss, name, *SETTINGS[name]) for loss in LOSSES for name in SETTINGS]
    + [limited("hinge", "sublinear", 2000, 0.1)]
    + [SparseLinearClassifierCV(loss=loss, alphas=[0.03, 0.01], cv=3) for loss in LOSSES]
    + [SparseLinearClassifierCV("softmax", alphas=3, cv=3)]  # from lambda_max down, the default
    + [SparseLinearClassifier(alpha=0.05, alpha_scale="max")]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
