"""The stochastic theory step and the online rule, without solving anything."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem
from fenchel.sampling import PartialSampler
from fenchel.steps.online import FIRST_EPOCH, LONGEST, Moments, OnlineStep
from fenchel.steps.theory import stochastic_step


def test_theory_step_is_the_printed_one():
    rng = np.random.default_rng(0)
    n, d, k, R, T = 9, 7, 4, 3.0, 50
    X, y = rng.standard_normal((n, d)), rng.integers(k, size=n)
    problem = Problem.from_data(X, y, lam=0.1, radius=R, classes=range(k))
    primal, dual = make_geometries(problem, R)
    sampler = PartialSampler(problem, primal, dual)
    gamma = stochastic_step(sampler.lipschitz, primal, dual, sampler.variance_bounds(), T)
    # in the paper's own scale; its Omega_V is n times ours, and its step does not feel that
    columns, rows = (X**2).sum(axis=0).max(), np.abs(X).max(axis=1).sum()
    L, omega_U, omega_V = np.sqrt(columns) / n, R**2 * np.log(2 * d * k), n * np.log(k)
    sigma_U, sigma_V = 4 * R**2 * columns / n**2, 8 * columns / n + 8 * rows**2 / n**2
    printed = min(
        1 / (L * np.sqrt(5 * omega_U * omega_V)),
        1 / np.sqrt(omega_U * sigma_V + omega_V * sigma_U),
    ) / np.sqrt(2 * T)
    assert gamma == pytest.approx(printed)


def test_online_rule_balances_and_caps():
    step = OnlineStep(omega_U=8.0, omega_V=2.0)
    assert step.due(0)
    step.measure(Moments(primal_size=4.0, dual_size=0.5, primal_square=0.0, dual_square=0.0))
    # without noise: as long as allowed, and both sides move equally far
    assert step.omega == LONGEST
    assert step.rates == pytest.approx((LONGEST / 4.0, LONGEST / 0.5))
    assert not step.due(FIRST_EPOCH - 1)
    assert step.due(FIRST_EPOCH)
    # with noise: the minimiser of Omega_U / r + r T square / 2 + the same for V
    step.measure(Moments(9.0, 9.0, primal_square=3.0, dual_square=0.2))
    T = 2 * FIRST_EPOCH

    def cost(omega):
        r, s = omega / 4.0, omega / 0.5
        return 8.0 / r + r * T * 3.0 / 2 + 2.0 / s + s * T * 0.2 / 2

    assert step.omega < LONGEST
    assert cost(step.omega) < min(cost(1.01 * step.omega), cost(0.99 * step.omega))
    assert step.rates[0] / step.rates[1] == pytest.approx(0.5 / 4.0)
    # it never grows
    before = step.omega
    step.measure(Moments(1.0, 1.0, 1e-12, 1e-12))
    assert step.omega == before
    assert step.due(4 * FIRST_EPOCH)
    assert not step.due(4 * FIRST_EPOCH - 1)


def test_online_rule_without_data():
    step = OnlineStep(1.0, 1.0)
    step.measure(Moments(0.0, 0.0, 0.0, 0.0))
    assert np.isfinite(step.rates).all()
