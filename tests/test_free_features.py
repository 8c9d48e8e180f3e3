"""A certificate beside features without penalty: a true bound, and one that closes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import checker
import fenchel
import reference
from fenchel.certificate import certify
from fenchel.free_features import MAX_FREE, Repair
from fenchel.problem import Problem
from instances import BY_NAME

FREE = replace(
    BY_NAME["weighted"],
    name="free-features",
    penalty_factor=np.r_[0.0, np.ones(7), 0.0, 1.0],
    lam=0.05,
)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_the_bracket_closes_around_the_optimum(loss: str, sparse: bool) -> None:
    X = sp.csr_array(FREE.X) if sparse else FREE.X
    result = fenchel.solve(X, FREE.y, loss=loss, tol=1e-6, **FREE.arguments())
    assert result.status == "converged"
    found = checker.check(result, FREE.X, FREE.y, loss=loss, **FREE.check_arguments())
    optimum = reference.optimum(FREE, loss)
    assert found.dual <= optimum + reference.TOLERANCE
    assert found.primal >= optimum - reference.TOLERANCE


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_beside_an_intercept(loss: str) -> None:
    arguments = FREE.arguments()
    result = fenchel.solve(FREE.X, FREE.y, loss=loss, tol=1e-6, fit_intercept=True, **arguments)
    assert result.status == "converged"
    n = FREE.y.size
    widened = replace(
        FREE,
        name=f"free-intercept-{loss}",
        X=np.hstack([FREE.X, np.ones((n, 1))]),
        penalty_factor=np.append(FREE.penalty_factor, 0.0),
    )
    optimum = reference.optimum(widened, loss)
    assert result.dual <= optimum + reference.TOLERANCE
    assert result.primal == pytest.approx(optimum, abs=5e-6)


def test_any_dual_point_is_repaired() -> None:
    problem = Problem.from_data(FREE.X, FREE.y, loss="softmax", **FREE.arguments())
    rng = np.random.default_rng(0)
    V = rng.dirichlet(np.full(problem.k, 0.3), problem.n)
    assert np.abs(problem.gradient(V)[problem.penalty_factor == 0]).max() > 1e-3
    certificate = certify(problem, np.zeros((problem.d, problem.k)), V)
    G = problem.gradient(certificate.V)
    assert np.abs(G[problem.penalty_factor == 0]).max() <= 1e-13
    assert 0.0 < certificate.dual <= reference.optimum(FREE, "softmax") + reference.TOLERANCE


def test_what_cannot_be_repaired_is_bounded_by_zero() -> None:
    """Two classes that a free feature separates have no inner point: the optimum is zero."""
    X = np.array([[-2.0, 0.3], [-1.0, 0.1], [1.0, 0.2], [2.0, 0.4]])
    y = np.array([0, 0, 1, 1])
    result = fenchel.solve(X, y, loss="softmax", lam=0.1, penalty_factor=[0.0, 1.0], max_iter=30)
    assert result.dual <= result.primal
    assert result.dual <= 1e-3


def test_too_many_free_features_are_left_alone() -> None:
    X = np.random.default_rng(0).standard_normal((8, MAX_FREE + 2))
    y = np.arange(8) % 2
    few = Problem.from_data(X, y, lam=1.0, penalty_factor=np.r_[0.0, np.ones(MAX_FREE + 1)])
    many = Problem.from_data(X, y, lam=1.0, penalty_factor=np.r_[np.zeros(MAX_FREE + 1), 1.0])
    assert Repair.of(few) is Repair.of(few)
    assert Repair.of(many) is None
