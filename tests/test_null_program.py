"""lambda_max of the hinge loss beside features without penalty: the smallest over all optimal V."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel
from fenchel.losses import Hinge
from fenchel.null_penalty import _climb
from fenchel.null_program import constant_scores, smallest_bound
from fenchel.problem import Problem

X = np.c_[np.ones(6), [1.0, -1.0, 0.2, 0.5, -0.3, 0.1]]
Y = np.array([0, 0, 0, 1, 1, 2])


def test_a_free_feature_that_some_optimal_v_satisfies() -> None:
    """A V with equal shares does not, others do: half of the wrong mass is on the first class."""
    top = fenchel.lambda_max(X, Y, penalty_factor=[0.0, 1.0])
    assert top == pytest.approx(1 / 60, rel=1e-8)
    above, below = (
        fenchel.solve(X, Y, lam=factor * top, penalty_factor=[0.0, 1.0], tol=1e-9)
        for factor in (1.001, 0.9)
    )
    assert above.dual == pytest.approx(1.0, abs=1e-8)
    assert below.primal < 1.0 - 1e-4


def test_a_free_feature_that_lowers_the_loss() -> None:
    free = np.c_[Y == 0, X[:, 1]].astype(float)
    assert fenchel.lambda_max(free, Y, penalty_factor=[0.0, 1.0]) == np.inf


def test_a_gradient_of_zero_at_equal_shares_is_not_the_value_beside_an_intercept() -> None:
    y = np.array([0, 0, 0, 0, 1, 2])
    x = np.array([[1.0], [1.0], [-1.0], [3.0], [2.0], [2.0]])
    problem = Problem.from_data(x, y, lam=0.0, fit_intercept=True)
    assert fenchel.lambda_max(x, y, fit_intercept=True) == pytest.approx(_climb(problem), rel=3e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_climb_of_large_problems_ends_at_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, k = 12, 3, 3
    features, y = np.round(rng.standard_normal((n, d))), rng.permutation(np.arange(n) % k)
    problem = Problem.from_data(
        features, y, lam=0.0, penalty_factor=[seed % 2, 1, 2], fit_intercept=seed % 4 > 0,
        positive=seed > 5,
    )  # fmt: skip
    assert _climb(problem) == pytest.approx(smallest_bound(problem), rel=3e-5, abs=1e-6)


def test_a_large_program_is_left_to_the_climb(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = fenchel.lambda_max(X, Y, penalty_factor=[0.0, 1.0])
    monkeypatch.setattr("fenchel.null_program.MOST_ENTRIES", 0)
    climbed = fenchel.lambda_max(X, Y, penalty_factor=[0.0, 1.0])
    assert climbed == pytest.approx(exact, rel=3e-5)
    assert climbed != exact


@pytest.mark.parametrize("counts", [(5, 3, 2), (6, 3, 2), (2, 9), (4, 4), (1, 1, 1, 20), (7, 7, 1)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_constant_scores_of_the_plain_hinge_loss_are_those_of_the_program(counts, fit_intercept):
    y = np.repeat(np.arange(len(counts)), counts)
    X, k = np.ones((y.size, 1)), len(counts)
    problems = [
        Problem.from_data(X, y, loss=loss, lam=0.0, fit_intercept=fit_intercept)
        for loss in (Hinge(), Hinge(cost=1.0 - np.eye(k)))
    ]
    (value, b), (wanted, _) = map(constant_scores, problems)
    assert value == pytest.approx(wanted, abs=1e-9)
    scores = np.broadcast_to(b, (y.size, k))
    assert Hinge().value(scores, y).mean() == pytest.approx(value, abs=1e-12)
