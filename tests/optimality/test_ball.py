"""The problem in a ball, by a search for its multiplier: to any accuracy, for every loss."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import checker
import fenchel
import reference
from fenchel.problem import Problem
from fenchel.solvers.ball import _largest_multiplier, _penalised
from fenchel.solvers.primal_dual import PrimalDual
from instances import BY_NAME, INSTANCES, LOSS_NAMES, Instance
from support import make_problem, solve


def balls() -> list[Instance]:
    """The l1 instances inside a ball that cuts (their own where they have one)."""
    return [
        replace(instance, radius=instance.radius or 1.0, name=f"{instance.name}-R")
        for instance in INSTANCES
        if instance.penalty == "l1"
    ]


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("instance", balls(), ids=lambda instance: instance.name)
def test_the_optimum_in_a_ball_is_found(instance: Instance, loss: str) -> None:
    result = solve(instance, loss, "auto", tol=1e-7)
    assert result.solver == "primal-dual"
    assert result.status == "converged"
    assert result.certifies == "ball"
    found = checker.check(result, instance.X, instance.y, loss=loss, **instance.check_arguments())
    assert found.primal - found.dual <= 1.001e-7 * result.history[0].primal
    try:
        optimum = reference.optimum(instance, loss)
    except cp.SolverError:  # with softmax on one or two of these, depending on its version
        assert loss == "softmax"
        return
    slack = reference.TOLERANCE * max(1.0, optimum)
    assert found.dual - slack <= optimum <= found.primal + slack
    assert np.abs(checker.dense(result.U)).sum() <= instance.radius * (1 + 1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_few_multipliers_do(lam: float, loss: str, make) -> None:
    """With the hinge loss the size of the solution jumps across that of the ball."""
    X, y = load_digits(return_X_y=True)
    X, y = X[::6] / 16, y[::6]
    result = fenchel.solve(make(X), y, loss=loss, lam=lam, radius=20.0, tol=1e-6)
    assert result.status == "converged"
    assert np.abs(checker.dense(result.U)).sum() == pytest.approx(20.0, rel=1e-6)
    moves = sum(record.note.count("multiplier of the ball") for record in result.history)
    assert 1 <= moves <= 40


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_a_ball_that_does_not_bind_changes_nothing(loss: str) -> None:
    instance = BY_NAME["three-classes"]
    free = solve(instance, loss, "auto", tol=1e-8)
    size = np.abs(free.U).sum()
    ball = solve(instance, loss, "auto", tol=1e-8, radius=3.0 * size)
    assert ball.status == "converged"
    assert ball.primal == pytest.approx(free.primal, abs=1e-7)
    assert np.abs(ball.U).sum() < 2.0 * size


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["three-classes", "penalty-factors", "weighted"])
def test_the_inner_problem_and_its_first_multiplier(name: str, loss: str) -> None:
    problem = make_problem(BY_NAME[name], loss, radius=0.7)
    mu = 0.3
    inner = _penalised(problem, mu)
    expected = problem.lam * problem.penalty_factor + mu
    np.testing.assert_allclose(inner.lam * inner.penalty_factor, expected, rtol=1e-14)
    assert inner.radius is None
    largest = _largest_multiplier(problem)
    assert 0.0 < largest <= problem.at_zero / 0.7
    if largest < problem.at_zero / 0.7:  # nothing leaves zero with it
        assert reference.optimum(BY_NAME[name], loss) <= problem.at_zero
        U = fenchel.solving.solve_problem(_penalised(problem, largest), tol=1e-9).U
        assert abs(U).sum() <= 1e-9


def test_data_without_signal_ends_at_zero() -> None:
    problem = Problem.from_data(np.zeros((6, 2)), [0, 1, 2] * 2, lam=0.0, radius=1.0)
    result = fenchel.solving.solve_problem(problem, tol=1e-9)
    assert result.status == "converged"
    assert result.primal == pytest.approx(1.0)
    state = PrimalDual().init(problem, None, np.random.default_rng(0), 1)  # nor does it break
    PrimalDual().advance(state, 2)


@pytest.mark.parametrize(("load", "radius"), [(load_wine, 0.5), (load_wine, 0.7), (load_iris, 1.5)])
def test_no_side_stays_rough(load, radius: float) -> None:
    """Solutions between two multipliers can all be on one side: the other has to get better too."""
    X, y = load(return_X_y=True)
    result = fenchel.solve(scale(X), y, lam=1e-3, radius=radius, tol=1e-6, max_iter=500)
    assert result.status == "converged"
