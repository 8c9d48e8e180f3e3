"""The certificate beside an unpenalised intercept: its equality constraint holds exactly."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.certificate import certify
from fenchel.problem import Problem


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_the_classes_have_the_mass_that_they_have_in_the_labels(loss: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 3)), rng.choice(3, 40, p=[0.6, 0.3, 0.1])
    problem = Problem.from_data(X, y, loss=loss, lam=0.05, fit_intercept=True)
    V = rng.dirichlet(np.ones(3), 40)
    assert np.abs(problem.weights @ V - np.bincount(y) / 40).max() > 0.05
    certificate = certify(problem, np.zeros((4, 3)), V)
    np.testing.assert_allclose(
        problem.weights @ certificate.V, np.bincount(y, minlength=3) / 40, atol=1e-14
    )
    # the intercept of the most frequent class lowers the loss: no valid dual value is above that
    for size in np.linspace(0.0, 2.0, 9):
        U = np.zeros((4, 3))
        U[-1, 0] = size
        assert certificate.dual <= problem.primal(U)
