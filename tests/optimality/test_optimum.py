"""The optimum that other solvers find lies between the reported bounds, for every solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import checker
import fenchel
import reference
import separable_losses
from instances import BY_NAME, INSTANCES, LOSS_NAMES, Instance, with_cost
from support import SOLVER_NAMES, refusal, solve

#: Enough for bounds that mean something, few enough for all solvers on all instances.
PASSES = 60

SMOOTH_OR_INCREASING = ["smoothed-hinge", "tsallis", "quartic"]


def check_bounds(result: fenchel.Result, instance: Instance, loss: str) -> None:
    """The checker agrees, and the reference optimum is between the bounds."""
    found = checker.check(result, instance.X, instance.y, loss=loss, **instance.check_arguments())
    optimum = reference.optimum(instance, loss)
    slack = reference.TOLERANCE * max(1.0, optimum)
    assert found.dual <= optimum + slack
    assert found.primal >= optimum - slack


@pytest.mark.parametrize("solver", SOLVER_NAMES)
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_every_solver_brackets_the_optimum(instance: Instance, loss: str, solver: str) -> None:
    refused = refusal(solver, loss, instance)
    if refused:
        with pytest.raises(ValueError, match=refused):
            solve(instance, loss, solver, max_iter=1)
        return
    passes = 4 * PASSES if solver == "subgradient" else PASSES  # a slow baseline
    result = solve(instance, loss, solver, tol=1e-6, max_passes=passes)
    check_bounds(result, instance, loss)
    assert result.gap < result.history[0].gap  # better than the start, U = 0


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_prices_of_mistakes(solver: str) -> None:
    instance = with_cost(BY_NAME["weighted"])
    refused = refusal(solver, "hinge", instance)
    if refused:
        with pytest.raises(ValueError, match=refused):
            solve(instance, "hinge", solver, max_iter=1)
        return
    check_bounds(solve(instance, "hinge", solver, max_passes=PASSES), instance, "hinge")


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["three-classes", "sparse", "penalty-factors", "ball"])
def test_the_default_solver_closes_the_bracket(name: str, loss: str) -> None:
    """A bound that is merely valid could be useless: here both ends meet the optimum."""
    instance = BY_NAME[name]
    result = solve(instance, loss, "auto", tol=5e-3, max_iter=20_000)
    assert result.status == "converged"
    check_bounds(result, instance, loss)
    optimum = reference.optimum(instance, loss)
    allowed = 5e-3 * result.history[0].primal  # tol is relative to P(0)
    np.testing.assert_allclose([result.primal, result.dual], optimum, atol=allowed * (1 + 1e-9))


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_no_coefficient_is_negative_but_the_intercept_may_be(loss: str) -> None:
    """Beside free signs of the intercept: its own column and that column with the other sign."""
    instance = replace(BY_NAME["weighted"], positive=True, lam=0.02)
    result = solve(instance, loss, "primal-dual", fit_intercept=True, tol=1e-7)
    assert result.status == "converged"
    assert result.U.min() >= 0.0
    assert result.intercept.min() < 0.0
    np.testing.assert_allclose(result.intercept.mean(), 0.0, atol=1e-4)
    n, d = instance.X.shape
    ones = np.ones((n, 1))
    widened = replace(
        instance,
        name=f"positive-intercept-{loss}",
        X=np.hstack([instance.X, ones, -ones]),
        penalty_factor=np.append(np.ones(d), [0.0, 0.0]),
    )
    optimum = reference.optimum(widened, loss)
    assert result.primal == pytest.approx(optimum, abs=2e-6)
    assert result.dual <= optimum + 2e-6


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_the_smallest_penalty_of_a_non_negative_model(loss: str) -> None:
    X, y = BY_NAME["three-classes"].X, BY_NAME["three-classes"].y
    largest = fenchel.lambda_max(X, y, loss=loss, positive=True)
    assert largest < 0.99 * fenchel.lambda_max(X, y, loss=loss)
    zero = fenchel.solve(X, y, loss=loss, positive=True, lam=1.001 * largest, tol=1e-7)
    some = fenchel.solve(X, y, loss=loss, positive=True, lam=0.97 * largest, tol=1e-7)
    assert zero.primal == pytest.approx(zero.history[0].primal, abs=1e-6)
    assert zero.status == "converged"  # with softmax by the V of zero, and nothing but it
    assert some.primal < some.history[0].primal - 1e-5


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("name", ["weighted", "sparse", "absent-class"])
def test_an_intercept_is_a_free_column_of_ones(name: str, loss: str) -> None:
    """The checker and the references see an ordinary problem with one unpenalised feature."""
    instance = BY_NAME[name]
    result = solve(instance, loss, "primal-dual", fit_intercept=True, max_iter=60)
    X = checker.dense(instance.X)
    n, d = X.shape
    assert result.U.shape == (d, instance.k)
    widened = replace(
        instance,
        name=f"{name}-intercept",
        X=np.hstack([X, np.ones((n, 1))]),
        penalty_factor=np.append(np.ones(d), 0.0),
    )
    whole = np.vstack([checker.dense(result.U), result.intercept])
    check_bounds(replace(result, U=whole), widened, loss)
    assert result.gap < 0.5 * result.history[0].gap


def test_two_reference_solvers_agree() -> None:
    """HiGHS on the primal and a conic solver on the dual: the references check each other."""
    for name in ("binary-wide", "weighted", "ball-weighted-sparse", "fifty-classes"):
        instance = BY_NAME[name]
        found = reference.optimum(instance, "hinge")
        assert reference._dual(instance, "hinge") == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("loss", ["softmax", "sparsemax"])
@pytest.mark.parametrize("name", ["three-classes", "sparse"])
def test_a_separable_loss_takes_the_steps_of_its_closed_form(name: str, loss: str) -> None:
    instance, tol = BY_NAME[name], 1e-6
    closed = solve(instance, loss, "auto", tol=tol)
    found = solve(instance, separable_losses.CLOSED[loss](), "auto", tol=tol)
    assert found.status == closed.status == "converged"
    assert [r.iteration for r in found.history] == [r.iteration for r in closed.history]
    np.testing.assert_allclose(
        [r.gap for r in found.history], [r.gap for r in closed.history], atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *((name, loss) for name in ("three-classes", "sparse") for loss in SMOOTH_OR_INCREASING),
        ("three-classes", "kinked"),  # by brackets, slowly
    ],
)
def test_losses_of_users_come_to_any_accuracy(name: str, loss: str) -> None:
    """Two solvers that share no step: neither point is below the bound of the other."""
    instance, mine = BY_NAME[name], separable_losses.OPEN[loss]()
    found = solve(instance, mine, "auto", tol=1e-6)
    assert found.status == "converged"
    other = solve(instance, mine, "mirror-prox", tol=1e-6, max_iter=10)
    assert found.dual <= other.primal
    assert other.dual <= found.primal
