"""A certificate beside features without penalty: a true bound, and one that closes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import checker
import fenchel
import reference
from fenchel import SparseLinearClassifier
from fenchel.certificate import certify
from fenchel.driver import WITHOUT_BOUND
from fenchel.free_features import MAX_FREE, Repair
from fenchel.problem import Problem
from instances import BY_NAME, Instance

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


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_classes_that_free_features_separate(loss: str) -> None:
    """Nothing inside the simplices satisfies the equalities: some entries of V must be zero."""
    X, y = load_iris(return_X_y=True)
    c = np.array([1.0, 1.0, 0.0, 0.0])
    result = fenchel.solve(
        X, y, loss=loss, lam=0.01, penalty_factor=c, fit_intercept=True, tol=1e-5
    )
    assert result.status == "converged"
    instance = Instance(
        name=f"free-separates-{loss}",
        X=np.hstack([X, np.ones((y.size, 1))]),
        y=y,
        k=3,
        lam=0.01,
        penalty_factor=np.append(c, 0.0),
    )
    optimum = reference.optimum(instance, loss)
    assert optimum > 0.01
    assert result.dual <= optimum + reference.TOLERANCE
    assert result.primal >= optimum - reference.TOLERANCE


def test_equal_samples_that_are_half_separated() -> None:
    """A group without samples of one class, as with indicators of groups, beside another."""
    groups = np.repeat([0, 1, 2], 20)
    y = np.r_[np.arange(20) % 2, np.arange(20) % 3, np.full(20, 1)]
    problem = Problem.from_data(np.eye(3)[groups], y, loss="softmax", lam=0.0)
    repair = Repair.of(problem)
    assert repair is not None
    V = repair.nearest_to_uniform  # which tells the face
    assert V.sum(axis=1) == pytest.approx(1.0)
    np.testing.assert_array_equal(
        repair.face, np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0]], bool)[groups]
    )


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_samples_without_free_features_beside_separated_ones(loss: str) -> None:
    """What is open belongs to rows of zeros: the equalities are met, and nothing is to invert."""
    X, y = np.r_[np.zeros((5, 2)), [[0, 1], [1, 0], [1, 1]]], np.zeros(8, int)
    result = fenchel.solve(X, y, loss=loss, lam=0.0, classes=[0, 1], max_iter=50)
    assert result.status == "converged"
    at_zero = Problem.from_data(X, y, loss=loss, lam=0.0, classes=[0, 1]).at_zero
    assert result.dual == pytest.approx(5 / 8 * at_zero, abs=1e-3 * at_zero)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_labels_but_for_rounding_bound_nothing(loss: str) -> None:
    """As many free features as samples leave V = Y alone, whose rounding is not a direction."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.standard_normal((4, 4)), np.array([0, 1, 1, 1])
        problem = Problem.from_data(
            X, y, loss=loss, lam=0.02, penalty_factor=[1.0, 0.0, 0.0, 0.0], fit_intercept=True
        )
        V = rng.dirichlet(np.ones(2), 4)
        assert certify(problem, np.zeros((5, 2)), V).dual <= 1e-9


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_without_any_penalty(loss: str) -> None:
    X, y = load_iris(return_X_y=True)
    path = SparseLinearClassifier(loss).path(X, y, alphas=[0.01, 0.0])
    assert [point.status for point in path] == ["converged"] * 2
    assert 0.0 < path[1].dual_objective <= path[0].objective


def overlapping() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres, y = rng.standard_normal((6, 9)), np.arange(400) % 6
    return centres[y] + 1.5 * rng.standard_normal((400, 9)) + 3.0, y


@pytest.mark.parametrize("loss", ["softmax", "sparsemax"])
def test_a_rough_point_has_a_bound(loss: str) -> None:
    """Where U is 2% above the optimum, the bound is 2% below it (it was 6 and 8)."""
    X, y = overlapping()
    problem = Problem.from_data(X, y, loss=loss, lam=0.0)
    best = fenchel.solve(X, y, loss=loss, lam=0.0, tol=1e-8)
    U = best.U * 1.3
    assert 1.01 * best.primal < problem.primal(U) < 1.03 * best.primal
    found = certify(problem, U, problem.loss.argmax(X @ U, y))
    assert 0.98 * best.primal <= found.dual <= best.primal


def test_corners_get_as_much_of_other_classes_as_the_equalities_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No V has their zeros; the point next to uniform rows would do, but is another one."""
    X, y = overlapping()
    problem = Problem.from_data(X, y, loss="hinge", lam=0.0, fit_intercept=True)
    monkeypatch.setattr(Repair, "nearest_to_uniform", None)
    wrong = np.random.default_rng(1).random(y.size) < 0.2
    V = np.eye(6)[np.where(wrong, (y + 1) % 6, y)]
    found = Repair.of(problem)(V)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert np.abs(problem.gradient(found)).max() <= 1e-13
    assert np.abs(found - V).max(axis=1)[~wrong].mean() < 0.2


def test_mass_on_a_class_that_can_have_none_goes_to_the_others() -> None:
    X, y = overlapping()
    problem = Problem.from_data(
        X, y, loss="hinge", lam=0.0, fit_intercept=True, classes=np.arange(7)
    )
    V = np.eye(7)[np.where(np.arange(y.size) % 9 == 0, 6, (y + 1) % 6)]
    found = Repair.of(problem)(V)
    np.testing.assert_array_equal(found[:, 6], 0.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert np.abs(problem.gradient(found)).max() <= 1e-13


def test_the_hinge_loss_without_penalty_is_certified_early() -> None:
    """It took seven iterations while the projection was mixed with an inner point."""
    X, y = overlapping()
    result = fenchel.solve(X, y, lam=0.0, tol=1e-3)
    assert result.status == "converged"
    assert result.history[-1].iteration <= 4


def test_all_features_without_penalty_are_worked_on_at_once() -> None:
    """More entries than a first working set takes in: the centre must not move without them."""
    rng = np.random.default_rng(0)
    centres, y = rng.standard_normal((26, 16)), np.arange(600) % 26
    X = centres[y] + 2.0 * rng.standard_normal((600, 16))
    result = fenchel.solve(X, y, lam=0.0, max_iter=40)
    assert result.status == "converged"
    close = fenchel.solve(X, y, lam=1e-7, tol=1e-6)
    assert result.dual <= close.primal
    assert result.primal <= close.primal + 1e-3


def test_without_a_bound_the_run_ends_soon(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, MAX_FREE + 1)), np.arange(200) % 2
    result = fenchel.solve(X, y, loss="softmax", lam=0.0)
    assert (result.status, result.n_iter, result.dual) == ("max_iter", WITHOUT_BOUND, 0.0)
    assert "no bound but 0" in caplog.text


def test_too_many_free_features_are_left_alone() -> None:
    X = np.random.default_rng(0).standard_normal((8, MAX_FREE + 2))
    y = np.arange(8) % 2
    few = Problem.from_data(X, y, lam=1.0, penalty_factor=np.r_[0.0, np.ones(MAX_FREE + 1)])
    many = Problem.from_data(X, y, lam=1.0, penalty_factor=np.r_[np.zeros(MAX_FREE + 1), 1.0])
    assert Repair.of(few) is Repair.of(few)
    assert Repair.of(many) is None


@pytest.mark.parametrize("seed", [3, 5, 7, 9])
def test_features_that_are_nearly_the_same_are_one(seed: int) -> None:
    """What tells them apart is rounding, and a class that the one separates the other does not."""
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, 3, 100), rng.uniform(0, 2, 100) * (rng.random(100) < 0.8)
    z = 1.0 * (y == 0)
    X = np.column_stack([z, z * (1 + 1e-9 * rng.standard_normal(100)), rng.standard_normal(100)])
    V = rng.dirichlet(np.ones(3), 100)
    c, duals = np.array([0.0, 0.0, 1.0]), []
    for some in ([0, 1, 2], [0, 2]):
        problem = Problem.from_data(
            X[:, some], y, lam=1.0, penalty_factor=c[some], fit_intercept=True, sample_weight=w
        )
        duals.append(certify(problem, np.zeros((problem.d, 3)), V).dual)
    assert duals[1] > 0.05
    assert duals[0] >= 0.9 * duals[1]
