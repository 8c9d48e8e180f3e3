"""The kernels on arrays by class against plain numpy, and the scores that are made of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits

from fenchel.certificate import certify
from fenchel.kernels.by_class import (
    TOGETHER,
    add_columns,
    curvature_by_class,
    gradient_by_class,
    smoothed_hinge_by_class,
    softmax_by_class,
)
from fenchel.kernels.class_blocks import class_curvature, one_over_row_sums
from fenchel.losses import Hinge, SeparableLoss, get_loss
from fenchel.problem import Problem
from fenchel.solvers.base import Start
from fenchel.solvers.class_scores import WHOLE, ClassScores
from fenchel.solvers.proximal_newton import SURVEYED, ProximalNewton
from fenchel.solvers.working_set import Entries

SIZES = [(5, 3), (TOGETHER, 2), (2 * TOGETHER + 7, 6)]


def made(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    w = rng.random(n)
    return rng.standard_normal((n, k)), rng.integers(0, k, n), w / w.sum()


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_softmax(n: int, k: int, size: float) -> None:
    Z, y, w = made(n, k)
    Z *= size
    Vt = np.empty((k, n))
    value = softmax_by_class(Z.T.copy(), y, w, Vt)
    np.testing.assert_allclose(Vt.T, softmax(Z, axis=1), rtol=1e-12, atol=1e-300)
    expected = w @ -log_softmax(Z, axis=1)[np.arange(n), y]
    assert value == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_score_that_is_no_number_has_no_value(bad: float) -> None:
    Z, y, w = made(7, 4)
    Z[3, (y[3] + 1) % 4] = bad
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(softmax_by_class(Z.T.copy(), y, w, np.empty((4, 7))))


def simplex_projection(a: np.ndarray) -> np.ndarray:
    order = np.sort(a)[::-1]
    thresholds = (np.cumsum(order) - 1.0) / np.arange(1, a.size + 1)
    return np.maximum(a - thresholds.max(), 0.0)


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("eta", [0.01, 1.0, 50.0])
def test_smoothed_hinge(n: int, k: int, eta: float) -> None:
    Z, y, w = made(n, k, 1)
    V0 = softmax(3.0 * made(n, k, 2)[0], axis=1)
    Vt = np.empty((k, n))
    value = smoothed_hinge_by_class(V0.T.copy(), Z.T.copy(), eta, y, w, Vt)
    margins = Z + 1.0
    margins[np.arange(n), y] -= 1.0
    V = np.array([simplex_projection(a) for a in V0 + eta * margins])
    np.testing.assert_allclose(Vt.T, V, atol=1e-12)
    losses = (V * margins).sum(axis=1) - Z[np.arange(n), y]
    losses -= ((V - V0) ** 2).sum(axis=1) / (2.0 * eta)
    assert value == pytest.approx(w @ losses, rel=1e-10)


def test_scores_and_gradients() -> None:
    Z, y, w = made(40, 5)
    rng = np.random.default_rng(3)
    X, V = rng.standard_normal((40, 8)), softmax(Z, axis=1)
    U = np.where(rng.random((8, 5)) < 0.4, rng.standard_normal((8, 5)), 0.0)
    U[:, 2] = 0.0  # a class without entries
    entries = Entries.of(U)
    Zt = Z.T.copy()
    add_columns(X.T.copy(), entries.feature, entries.klass, entries.u, Zt)
    np.testing.assert_allclose(Zt.T, Z + X @ U, atol=1e-13)
    R = w[:, None] * (V - np.eye(5)[y])
    out = np.empty(entries.u.size)
    classes, bounds = entries.bounds
    gradient_by_class(X.T.copy(), V.T.copy(), y, w, entries.feature, classes, bounds, out)
    np.testing.assert_allclose(out, (X.T @ R)[entries.feature, entries.klass], atol=1e-15)


@pytest.mark.parametrize("lasts", [True, False])
def test_curvature_is_that_of_rows(lasts: bool) -> None:
    """Which has its own twin."""
    Z, y, w = made(40, 5)
    H = softmax(Z, axis=1)
    H[4] = 0.0
    H[5] = np.eye(5)[(y[5] + 1) % 5]  # no mass on the true class
    classes = np.array([0, 3, 4])
    by_rows, by_class = np.empty((3, 40)), np.empty((3, 40))
    part = np.empty(40)
    one_over_row_sums(H, part)
    class_curvature(H, part, 0.7, y, w, classes, 0.1, lasts, by_rows)
    curvature_by_class(H.T.copy(), 0.7, y, w, classes, 0.1, lasts, by_class)
    np.testing.assert_allclose(by_class, by_rows, rtol=1e-13)


LOSSES = [
    get_loss("softmax"),
    get_loss("sparsemax"),
    get_loss("hinge"),
    Hinge(cost=2.0 - 2.0 * np.eye(5)),
    SeparableLoss(lambda v, true: 0.5 * (v * v - true), lambda v, true: v),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("share", [0.5 / WHOLE, 1.0])
def test_class_scores_are_those_of_rows(loss, share: float) -> None:
    """With few entries, where columns are added, and with all, where BLAS does it."""
    Z, y, w = made(60, 5)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 12))
    problem = Problem.from_data(X, y, loss=loss, lam=0.1, sample_weight=w, classes=np.arange(5))
    U = np.where(rng.random((12, 5)) < share, rng.standard_normal((12, 5)), 0.0)
    entries = Entries.of(U)
    V = softmax(Z, axis=1)
    centre = None if loss.smooth else softmax(-Z, axis=1)
    scores = ClassScores.of(problem, X.T.copy(), Z, V, centre, 0.8)
    scores.add(entries, entries.u)
    value = scores.evaluate()
    found = scores.gradient(entries)
    new_Z, new_V = np.empty_like(Z), np.empty_like(V)
    scores.restore(new_Z, new_V)
    np.testing.assert_allclose(new_Z, Z + X @ U, atol=1e-13)
    if centre is None:
        losses, expected = loss.value_and_argmax(new_Z, y)
    else:
        expected = V.copy()
        losses = loss.smoothed(centre, new_Z, 0.8, y, expected)
    np.testing.assert_allclose(new_V, expected, atol=1e-12)
    assert value == pytest.approx(problem.weights @ losses, rel=1e-10)
    G = problem.gradient(expected)
    np.testing.assert_allclose(found, G[entries.feature, entries.klass], atol=1e-13)


def test_the_gap_that_the_solver_goes_by_is_about_the_certified_one() -> None:
    """Far from the solution, where it decides that no certificate is made."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 20))
    y = np.argmax(X[:, :4] + 0.5 * rng.standard_normal((300, 4)), axis=1)
    problem, solver = Problem.from_data(X, y, loss="softmax", lam=0.01), ProximalNewton()
    state = solver.init(problem, None, rng, 1)
    solver.advance(state, 1)
    point = solver.points(state)[0]
    gap = certify(problem, point.U, point.V).gap
    assert gap > 0.01 * problem.at_zero
    assert 0.3 * gap < state.gap_by_class < 3.0 * gap


def test_a_survey_brackets_the_optimum_by_the_certified_values() -> None:
    """With the hinge loss the values after the last steps decide whether a certificate is made."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 20))
    y = np.argmax(X[:, :4] + 0.5 * rng.standard_normal((300, 4)), axis=1)
    problem, solver = Problem.from_data(X, y, loss="hinge", lam=0.01), ProximalNewton()
    state, lowest, highest = solver.init(problem, None, rng, 1), np.inf, -np.inf
    for _ in range(8):
        solver.advance(state, 1)
        point = solver.points(state)[0]
        certificate = certify(problem, point.U, point.V)
        lowest, highest = min(lowest, certificate.primal), max(highest, certificate.dual)
        gap = lowest - highest
        assert solver.is_far(state, 0.9 * gap / SURVEYED, 0.0)
        assert not solver.is_far(state, 1.1 * gap / SURVEYED, 0.0)
    assert gap < 0.1
    state = solver.follow(state, problem.with_penalty(0.005), Start(point.U, point.V), rng, 1)
    assert not solver.is_far(state, 1e-9, 0.0)  # nothing is known of another penalty


def test_a_quarter_of_the_gap_is_worth_a_certificate_of_large_data(monkeypatch) -> None:
    monkeypatch.setattr("fenchel.solvers.proximal_newton.CHEAP", 0)
    X, y = load_digits(return_X_y=True)
    problem, solver = Problem.from_data(X / 16, y, loss="hinge", lam=0.001), ProximalNewton()
    state, shown, left_out = solver.init(problem, None, np.random.default_rng(0), 1), np.inf, 0
    for _ in range(12):
        solver.advance(state, 1)
        worth = state.gap_so_far <= 0.25 * shown
        assert solver.is_far(state, 1e-9, 0.0) != worth
        left_out += not worth
        if worth:
            solver.points(state)
            shown = state.gap_so_far
    assert 0 < left_out < 10
    assert shown < 0.2


@pytest.mark.parametrize("loss", ["softmax", "sparsemax", "hinge"])
def test_what_another_penalty_begins_with_belongs_to_the_coefficients(loss: str) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 20))
    y = np.argmax(X[:, :4] + 0.5 * rng.standard_normal((300, 4)), axis=1)
    problem, solver = (
        Problem.from_data(X, y, loss=loss, lam=0.01, fit_intercept=True),
        ProximalNewton(),
    )
    state = solver.init(problem, None, rng, 1)
    for lam in (0.008, 0.006):
        solver.advance(state, 5)
        point = solver.points(state)[0]
        problem = problem.with_penalty(lam)
        state = solver.follow(state, problem, Start(point.U, point.V), rng, 1)
        Z = problem.design.matmul(solver.points(state)[0].U)
        Z -= (Z - state.Z).mean(axis=1, keepdims=True)  # no loss sees it
        np.testing.assert_allclose(state.Z, Z, atol=1e-12)
        expected = state.V.copy()
        if state.centre is None:
            losses = problem.loss.evaluate(Z, y, expected)
        else:
            losses = problem.loss.smoothed(state.centre, Z, state.eta, y, expected)
        np.testing.assert_allclose(state.V, expected, atol=1e-11)
        assert state.value == pytest.approx(problem.weights @ losses)
        if state.gradient is not None:
            np.testing.assert_allclose(state.gradient, problem.gradient(expected), atol=1e-11)
