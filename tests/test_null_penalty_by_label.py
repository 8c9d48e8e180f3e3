"""``lambda_max`` beside an intercept where f is another function for the true class."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel
import separable_losses


@pytest.mark.parametrize("loss", ["smoothed-hinge", "quartic"])
def test_zero_is_the_solution_from_there_on_and_not_below(loss: str) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    y[:30] = 0
    X[:, 0] += y == 1
    arguments = {"loss": separable_losses.OPEN[loss](), "fit_intercept": True}
    top = fenchel.lambda_max(X, y, **arguments, classes=np.arange(4))  # one has no sample
    assert top == pytest.approx(fenchel.lambda_max(X, y, **arguments), rel=1e-6)
    arguments["tol"] = 1e-9
    assert not fenchel.solve(X, y, lam=1.0001 * top, **arguments).U.any()
    assert fenchel.solve(X, y, lam=0.99 * top, **arguments).U.any()
