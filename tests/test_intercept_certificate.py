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


def test_labels_but_for_rounding_keep_their_masses() -> None:
    """``Y + s (V - Y)`` with a large s would make a direction of what rounding leaves of V - Y."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        y = np.append([0, 1], rng.integers(0, 2, 6))
        w = rng.uniform(0.1, 1.0, 8)
        X = rng.standard_normal((8, 1))
        problem = Problem.from_data(X, y, lam=1e3, fit_intercept=True, sample_weight=w)
        V = np.eye(2)[y] + 1e-16 * rng.random((8, 2))
        certificate = certify(problem, np.zeros((2, 2)), V)
        masses = np.bincount(y, weights=problem.weights)
        np.testing.assert_allclose(problem.weights @ certificate.V, masses, atol=2e-12)
        np.testing.assert_allclose(certificate.V.sum(axis=1), 1.0, atol=2e-12)
