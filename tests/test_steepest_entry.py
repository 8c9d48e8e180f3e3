"""The fall of the hinge loss along one coefficient, and the dual point that an intercept allows."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import null_penalty
from fenchel.losses import Hinge
from fenchel.null_program import constant_scores, shares_of_mistakes
from fenchel.path import largest_penalty
from fenchel.problem import Problem
from fenchel.steepest_entry import steepest_entry


def sparse_problem(k, *, signed=True, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 25), density=0.2, rng=rng, format="csr")
    if signed:
        X.data -= 0.4
    y = np.arange(60) % k
    return Problem.from_data(X, y, loss="hinge", lam=0.0, **options)


@pytest.mark.parametrize("options", [{}, {"positive": True}, {"fit_intercept": True}])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_no_single_coefficient_falls_faster(k, signed, options):
    rng = np.random.default_rng(1)
    weights, factors = rng.uniform(0.5, 2.0, 60), rng.uniform(0.5, 2.0, 25)
    problem = sparse_problem(
        k, signed=signed, sample_weight=weights, penalty_factor=factors, **options
    )
    step, falls = 1e-6, []
    for j in range(25):
        for l in range(k):
            for sign in (1.0, -1.0)[: 1 if "positive" in options else 2]:
                U = np.zeros((problem.d, k))
                U[j, l] = sign * step
                falls.append((problem.risk(0 * U) - problem.risk(U)) / step / factors[j])
    assert max(falls) > 0.0
    assert steepest_entry(problem) == pytest.approx(max(falls), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_below_lambda_max(seed):
    problem = sparse_problem(4, seed=seed)
    exact = fenchel.lambda_max(problem.design.X, problem.y)
    assert 0.0 < steepest_entry(problem) <= exact * (1.0 + 1e-9)


def test_where_nothing_is_known_it_is_zero():
    X, y = np.eye(6), np.arange(6) % 3
    assert steepest_entry(Problem.from_data(X, y, loss="hinge", lam=0.0)) == 0.0
    X = sp.csr_array(X)
    assert steepest_entry(Problem.from_data(X, y, loss="softmax", lam=0.0)) == 0.0
    costs = Hinge(1.0 + np.arange(9.0).reshape(3, 3) - np.diag([1.0, 5.0, 9.0]))
    assert steepest_entry(Problem.from_data(X, y, loss=costs, lam=0.0)) == 0.0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_path_along_pure_words_needs_no_search(monkeypatch, fit_intercept):
    """Every class has a word of its own, which others have now and then; two are large."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [10, 10, 80, 90])
    X = sp.random_array((y.size, 4), density=0.1, rng=rng, format="lil")
    X[np.arange(y.size), y] = 1.0
    options = {"fit_intercept": fit_intercept}
    exact = fenchel.lambda_max(X.tocsr(), y, **options)
    problem = Problem.from_data(X.tocsr(), y, loss="hinge", lam=0.0, **options)

    def search(*arguments):
        raise AssertionError("a search")

    monkeypatch.setattr(null_penalty, "_solution", search)
    # with mass shared by all wrong classes 1.06: an intercept allows no such point
    most = 0.02 if fit_intercept else null_penalty.CLOSE
    assert 1.0 - 1e-9 <= largest_penalty(problem) / exact <= 1.0 + most


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_coefficient_that_tells_little_does_not_end_the_search(fit_intercept):
    """Sparse data with features that all classes have: zero at half of the bound is not the end."""
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    X = rng.uniform(0.0, 1.0, (90, 6)) * (rng.random((90, 6)) < 0.7) + 0.4 * np.eye(6)[y]
    options = {"fit_intercept": fit_intercept}
    dense = Problem.from_data(X, y, loss="hinge", lam=0.0, **options)
    problem = Problem.from_data(sp.csr_array(X), y, loss="hinge", lam=0.0, **options)
    exact = fenchel.lambda_max(X, y, **options)
    assert 0.0 < steepest_entry(problem) < 0.7 * exact
    for found in (largest_penalty(problem), largest_penalty(dense)):
        assert 1.0 <= found / exact <= 1.0 + 1.1 * null_penalty.NEAR


@pytest.mark.parametrize("seed", range(24))
def test_paths_begin_where_a_gap_of_tol_cannot_tell_the_solution_from_zero(seed):
    """Sparse data of many kinds: signed or not, with heavy classes, weights, penalty factors."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(20, 90), rng.integers(3, 25), rng.integers(2, 7)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.1, 0.4, 0.9]))
    X = np.abs(X) if seed % 2 else X
    y = np.r_[np.arange(k), rng.choice(k, n - k, p=rng.dirichlet(np.full(k, 2.0)))]
    X[np.arange(n), y % d] += rng.choice([0.0, 0.5, 2.0])
    options = {
        "sample_weight": rng.uniform(0.2, 2.0, n),
        "penalty_factor": rng.uniform(0.5, 2.0, d),
        "fit_intercept": bool(seed % 3),
        "positive": seed % 5 == 0,
    }
    exact = fenchel.lambda_max(sp.csr_array(X), y, **options)
    problem = Problem.from_data(sp.csr_array(X), y, loss="hinge", lam=0.0, **options)
    found = largest_penalty(problem)
    assert found <= exact * (1.0 + null_penalty.CLOSE)
    best = fenchel.solve(sp.csr_array(X), y, lam=found, tol=1e-6, **options)
    assert constant_scores(problem)[0] - best.primal <= 1e-3 * problem.at_zero


@pytest.mark.parametrize(
    "masses",
    [
        [1, 1, 1],
        [1, 1],
        [5, 3, 2],
        [4.99999, 3, 2],
        [49, 26, 25],
        [40, 40, 20, 0],
        np.random.default_rng(0).uniform(0, 1, 30),
    ],
)
def test_shares_of_mistakes_leave_no_gradient_for_the_intercept(masses):
    k = len(masses)
    labels, weights = np.flatnonzero(masses), np.asarray(masses)[np.flatnonzero(masses)]
    problem = Problem.from_data(
        np.ones((labels.size, 1)), labels, loss="hinge", lam=0.0, classes=np.arange(k),
        sample_weight=weights, fit_intercept=True,
    )  # fmt: skip
    Q = shares_of_mistakes(problem)
    V = Q[problem.y]
    np.testing.assert_allclose(V.sum(axis=1), 1.0, rtol=1e-12)
    assert (V >= 0.0).all()
    assert (np.diag(Q) == 0.0).all()
    np.testing.assert_allclose(problem.weights @ V, problem.weights @ np.eye(k)[labels], atol=1e-12)


def test_no_shares_beside_a_heavy_class():
    X, y = np.ones((5, 1)), [0, 0, 0, 1, 2]
    options = {"loss": "hinge", "lam": 0.0}
    assert shares_of_mistakes(Problem.from_data(X, y, **options, fit_intercept=True)) is None
    assert shares_of_mistakes(Problem.from_data(X, [0, 1, 2, 1, 2], **options)) is None
