"""The deterministic solvers and the subgradient method against literal twins of the paper's boxes.

The twins form [X, -X], use softmax-normalised logarithms, and share no code with the package.
"""

from __future__ import annotations

import numpy as np
import pytest

import checker
from fenchel.certificate import certify
from fenchel.solvers.registry import get_solver
from instances import BY_NAME, Instance
from support import make_problem


class Twin:
    """Constants and steps of the doubled problem (SaddleUhat) for the hinge loss."""

    def __init__(self, instance: Instance) -> None:
        X = checker.dense(instance.X)
        self.n, self.d = X.shape
        self.k = k = instance.k
        w = np.ones(self.n) if instance.weights is None else instance.weights
        self.w = w / w.sum()
        factors = np.ones(self.d) if instance.penalty_factor is None else instance.penalty_factor
        self.shrink = instance.lam * np.concatenate([factors, factors])[:, None]
        # rem:radius: at the solution lam min(c) ||U||_1 <= P(0) = 1
        self.R = instance.radius or 1.0 / (instance.lam * factors.min())
        self.Xhat = np.concatenate([X, -X], axis=1)
        self.Y = np.eye(k)[instance.y]
        self.omega_U = self.R**2 * np.log(2 * self.d * k)
        self.omega_V = max(np.log(k), 1.0)
        L = np.sqrt(self.w @ X**2).max()
        self.scale = L * np.sqrt(self.omega_U * self.omega_V)
        self.U = np.full((2 * self.d, k), self.R / (2 * self.d * k))
        self.V = np.full((self.n, k), 1.0 / k)

    def field(self, U: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.Xhat.T @ (self.w[:, None] * (V - self.Y)), self.Xhat @ U

    def prox(self, S: np.ndarray, Z: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """UpdatesForU and UpdatesForVSVM from (self.U, self.V)."""
        U = self.U * np.exp(-2 * gamma * self.omega_U * (S + self.shrink) / self.R)
        U *= min(1.0, self.R / U.sum())
        V = self.V * np.exp(2 * gamma * self.omega_V * (Z - self.Y))
        return U, V / V.sum(axis=1, keepdims=True)

    def coef(self, U: np.ndarray) -> np.ndarray:
        return U[: self.d] - U[self.d :]


INSTANCES = ["ball", "weighted", "penalty-factors", "binary-wide", "ball-weighted-sparse"]


def run_package(instance: Instance, solver: str, step: str, T: int):
    member = get_solver(solver, step)
    state = member.init(make_problem(instance), None, np.random.default_rng(0), T)
    member.advance(state, T)
    (point,) = member.points(state)
    return point


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("step", ["theory", "inverse-sqrt"])
def test_mirror_descent(name: str, step: str) -> None:
    instance, T = BY_NAME[name], 30
    twin = Twin(instance)
    U_sum, V_sum = 0.0, 0.0
    for t in range(T):
        U_sum, V_sum = U_sum + twin.coef(twin.U), V_sum + twin.V
        gamma = 1 / (twin.scale * np.sqrt(5 * (T if step == "theory" else t + 1)))
        twin.U, twin.V = twin.prox(*twin.field(twin.U, twin.V), gamma)
    point = run_package(instance, "mirror-descent", step, T)
    assert point.which == "average"
    np.testing.assert_allclose(point.U, U_sum / T, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(point.V, V_sum / T, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", INSTANCES)
def test_mirror_prox(name: str) -> None:
    instance, T = BY_NAME[name], 30
    twin = Twin(instance)
    gamma = 1 / (2 * twin.scale)
    U_sum, V_sum = 0.0, 0.0
    for _ in range(T):
        U_mid, V_mid = twin.prox(*twin.field(twin.U, twin.V), gamma)
        twin.U, twin.V = twin.prox(*twin.field(U_mid, V_mid), gamma)
        U_sum, V_sum = U_sum + twin.coef(U_mid), V_sum + V_mid
    point = run_package(instance, "mirror-prox", "theory", T)
    np.testing.assert_allclose(point.U, U_sum / T, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(point.V, V_sum / T, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["ball", "ball-weighted-sparse"])
@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_the_online_step_keeps_what_the_analysis_asks(name: str, loss: str) -> None:
    """The analysis gives a gap of at most 1 / (sum of accepted steps), whatever they were.

    Steps are longer than the theory's, or the search would be in vain.
    """
    instance = BY_NAME[name]
    problem = make_problem(instance, loss)
    member = get_solver("mirror-prox", "online")
    state = member.init(problem, None, np.random.default_rng(0), 200)
    theory = state.gamma
    for steps in (5, 20, 50, 125):
        member.advance(state, steps)
        (point,) = member.points(state)
        certificate = certify(problem, point.U, point.V)
        assert certificate.gap <= 1 / state.total
    assert state.total > 200 * theory


@pytest.mark.parametrize("name", ["three-classes", "weighted", "penalty-factors", "group", "ball"])
@pytest.mark.parametrize("step", ["theory", "inverse-sqrt"])
def test_subgradient(name: str, step: str) -> None:
    """U <- shrink(U - gamma x (v - y)^T, gamma lam c); v the first-best answer of the drawn row."""
    instance, T = BY_NAME[name], 60
    X = checker.dense(instance.X)
    n, d = X.shape
    w = np.ones(n) if instance.weights is None else instance.weights
    w = w / w.sum()
    c = np.ones(d) if instance.penalty_factor is None else instance.penalty_factor
    R = instance.radius or 1.0 / (instance.lam * c.min())
    first = R / np.sqrt(2 * w @ (X**2).sum(axis=1))
    rng = np.random.default_rng(0)
    U, U_sum, V_sum, drawn = np.zeros((d, instance.k)), 0.0, np.zeros((n, instance.k)), np.zeros(n)
    for t in range(T):
        i = int(np.flatnonzero(rng.random() < np.cumsum(w))[0])
        label = np.eye(instance.k)[instance.y[i]]
        margins = X[i] @ U + 1.0 - label
        v = (margins == margins.max()) / (margins == margins.max()).sum()
        V_sum[i] += v
        drawn[i] += 1
        gamma = first / np.sqrt(T if step == "theory" else t + 1)
        U = U - gamma * np.outer(X[i], v - label)
        if instance.penalty == "l1":
            U = np.sign(U) * np.maximum(np.abs(U) - gamma * instance.lam * c[:, None], 0.0)
        else:
            sizes = np.maximum(np.linalg.norm(U, axis=1), 1e-300)
            U = U * (np.maximum(sizes - gamma * instance.lam * c, 0.0) / sizes)[:, None]
        if instance.radius is not None and np.abs(U).sum() > R:
            U = np.sign(U) * (R * checker.project_onto_simplex(np.abs(U.ravel()) / R)).reshape(
                U.shape
            )
        U_sum = U_sum + U
    point = run_package(instance, "subgradient", step, T)
    V = np.where(drawn[:, None] > 0, V_sum / np.maximum(drawn, 1)[:, None], 1 / instance.k)
    np.testing.assert_allclose(point.U, U_sum / T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(point.V, V, atol=1e-12)


def test_subgradient_draws_rows_by_their_weights() -> None:
    instance = BY_NAME["weighted"]
    member = get_solver("subgradient", None)
    problem = make_problem(instance)
    state = member.init(problem, None, np.random.default_rng(1), 4000)
    member.advance(state, 4000)
    expected = 4000 * problem.weights
    assert np.all(state.drawn[problem.weights == 0] == 0)
    assert np.all(np.abs(state.drawn - expected) <= 5 * np.sqrt(expected))  # five deviations
