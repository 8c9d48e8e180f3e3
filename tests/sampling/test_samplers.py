"""Both sampling schemes: unbiased, optimal, and under the paper's variance bounds.

Expectations are exact: every outcome is enumerated with its probability.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel.geometry.registry import make_geometries
from fenchel.problem import Problem
from fenchel.sampling import SAMPLERS, FullSampler, PartialSampler

CASES = [
    ("partial", "1x1", "2x1"),
    ("partial", "1x1", "2x2"),
    ("partial", "1x2", "2x1"),
    ("partial", "1x2", "2x2"),
    ("full", "1x1", "2x1"),
    ("full", "1x1", "2x2"),
]


def make_problem(seed, primal="1x1", tails="gauss", sparse=False, n=7, d=5, k=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) if tails == "gauss" else rng.standard_t(1.5, (n, d)) ** 3
    X[rng.random((n, d)) < 0.3] = 0.0
    y = rng.integers(k, size=n)
    return Problem.from_data(
        sp.csr_array(X) if sparse else X, y, lam=0.01, radius=3.0, classes=np.arange(k),
        sample_weight=rng.random(n) + 0.1, penalty="group" if primal == "1x2" else "l1",
    )  # fmt: skip


def make_point(problem, primal, dual, seed):
    rng = np.random.default_rng(seed)
    geometry_U, geometry_V = make_geometries(problem, problem.radius, primal, dual)
    u = rng.standard_normal(geometry_U.center().shape) * (
        rng.random(geometry_U.center().shape) < 0.6
    )
    if primal == "1x1":
        u = np.abs(u)
    u *= problem.radius / geometry_U.norm(u)
    V = rng.dirichlet(np.full(problem.k, 0.3), size=problem.n)
    return geometry_U, geometry_V, u, V


def primal_outcomes(sampler, u, law):
    return [
        (law.flat[i], sampler.primal_outcome(u, i, law.flat[i]).matrix())
        for i in np.flatnonzero(law)
    ]


def dual_outcomes(sampler, V, law):
    return [
        (law.flat[i], sampler.dual_outcome(V, i, law.flat[i]).matrix()) for i in np.flatnonzero(law)
    ]


def residual(problem, V):
    W = V.copy()
    W[np.arange(problem.n), problem.y] -= 1.0
    return W


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("scheme", "primal", "dual"), CASES)
def test_estimates_are_unbiased(scheme, primal, dual, sparse):
    problem = make_problem(1, primal, sparse=sparse)
    geometry_U, geometry_V, u, V = make_point(problem, primal, dual, 2)
    sampler = SAMPLERS[scheme](problem, geometry_U, geometry_V)
    p, q = sampler.primal_law(u), sampler.dual_law(V)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    mean = sum(prob * xi for prob, xi in primal_outcomes(sampler, u, p))
    np.testing.assert_allclose(mean, problem.design.matmul(geometry_U.coef(u)), atol=1e-12)
    mean = sum(prob * eta for prob, eta in dual_outcomes(sampler, V, q))
    np.testing.assert_allclose(mean, problem.gradient(V), atol=1e-13)
    mean = np.zeros((problem.d, problem.k))
    for i in np.flatnonzero(p):
        sampler.primal_outcome(u, i, p.flat[i]).add_noisy_point(mean, p.flat[i])
    np.testing.assert_allclose(mean, geometry_U.coef(u), atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheme", ["partial", "full"])
def test_draws_follow_the_law_and_batches_average(scheme, seed):
    problem = make_problem(3)
    geometry_U, geometry_V, u, V = make_point(problem, "1x1", "2x1", 4)
    sampler = SAMPLERS[scheme](problem, geometry_U, geometry_V)
    rng = np.random.default_rng(seed)
    m = 20_000
    for estimate, exact, outcomes in (
        (
            sampler.draw_primal(u, rng, m),
            problem.design.matmul(geometry_U.coef(u)),
            primal_outcomes(sampler, u, sampler.primal_law(u)),
        ),
        (
            sampler.draw_dual(V, rng, m),
            problem.gradient(V),
            dual_outcomes(sampler, V, sampler.dual_law(V)),
        ),
    ):
        assert estimate.right.shape[0] == m
        deviation = np.sqrt(sum(p * (a - exact) ** 2 for p, a in outcomes) / m)
        # six standard deviations: a correct sampler fails once in 10^8 entries
        assert (np.abs(estimate.matrix() - exact) <= 6 * deviation + 1e-12).all()


@pytest.mark.parametrize(("scheme", "primal", "dual"), CASES)
def test_laws_minimise_the_second_moment(scheme, primal, dual):
    problem = make_problem(5, primal)
    geometry_U, geometry_V, u, V = make_point(problem, primal, dual, 6)
    sampler = SAMPLERS[scheme](problem, geometry_U, geometry_V)
    rng = np.random.default_rng(7)
    p, q = sampler.primal_law(u), sampler.dual_law(V)

    def moment_U(law):
        return sum(w * geometry_V.dual_norm(a) ** 2 for w, a in primal_outcomes(sampler, u, law))

    def moment_V(law):
        norm = geometry_U.norm_type.dual
        return sum(w * norm(a) ** 2 for w, a in dual_outcomes(sampler, V, law))

    for best, law, moment in ((moment_U(p), p, moment_U), (moment_V(q), q, moment_V)):
        for strength in (0.02, 0.3):
            for _ in range(10):
                other = law * np.exp(strength * rng.standard_normal(law.shape))
                assert moment(other / other.sum()) > best


@pytest.mark.parametrize("tails", ["gauss", "heavy"])
@pytest.mark.parametrize(("scheme", "primal", "dual"), CASES)
def test_variance_proxies_are_below_their_bounds(scheme, primal, dual, tails):
    tightest = 0.0
    for seed in range(10):
        problem = make_problem(seed, primal, tails)
        geometry_U, geometry_V, u, V = make_point(problem, primal, dual, seed + 100)
        sampler = SAMPLERS[scheme](problem, geometry_U, geometry_V)
        sigma_U, sigma_V = sampler.variance_bounds()
        # the proxies are suprema over U and V: corners of the ball make the bound tight
        corner = np.zeros_like(u)
        corner[int(np.argmax(sampler.columns)), 0] = problem.radius
        for point in (u, corner):
            exact = problem.design.matmul(geometry_U.coef(point))
            outcomes = primal_outcomes(sampler, point, sampler.primal_law(point))
            proxy = sum(p * geometry_V.dual_norm(exact - a) ** 2 for p, a in outcomes)
            moment = sum(p * geometry_V.dual_norm(a) ** 2 for p, a in outcomes)
            assert proxy <= sigma_U * (1 + 1e-12)
            tightest = max(tightest, moment / (sigma_U / 4))
        exact = problem.gradient(V)
        norm = geometry_U.norm_type.dual
        outcomes = dual_outcomes(sampler, V, sampler.dual_law(V))
        assert sum(p * norm(exact - a) ** 2 for p, a in outcomes) <= sigma_V
    # at the corner E||xi||^2 = R^2 L^2, a quarter of the bound: it cannot be off by a factor
    assert tightest == pytest.approx(1.0, rel=1e-9)


def test_uniform_weights_give_the_printed_bounds():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 5)), rng.integers(3, size=6)
    problem = Problem.from_data(X, y, lam=0.1, radius=2.0, classes=range(3))
    n, R = 6, 2.0
    sampler = PartialSampler(problem, *make_geometries(problem, R))
    sigma_U, sigma_V = sampler.variance_bounds()
    columns = (X**2).sum(axis=0).max()  # ||X^T||_{inf x 2}^2
    rows = np.abs(X).max(axis=1).sum()  # ||X||_{1 x inf}
    assert sigma_U / n == pytest.approx(4 * R**2 * columns / n**2)
    assert sigma_V == pytest.approx(8 * columns / n + 8 * rows**2 / n**2)
    smaller = sampler.variance_bounds(batch=10**6)
    assert smaller[0] < 1e-4 * sigma_U
    assert smaller[1] < 1e-4 * sigma_V


def test_laws_are_the_printed_ones():
    problem = make_problem(8)
    geometry_U, geometry_V, u, V = make_point(problem, "1x1", "2x1", 9)
    X, w = problem.design.X, problem.weights
    columns = np.sqrt(w @ X**2)
    sigma, tau, W = np.tile(columns, 2), w * np.abs(X).max(axis=1), residual(problem, V)
    partial = PartialSampler(problem, geometry_U, geometry_V)
    p = sigma * u.max(axis=1)
    q = tau * np.abs(W).max(axis=1)
    np.testing.assert_allclose(partial.primal_law(u), p / p.sum())
    np.testing.assert_allclose(partial.dual_law(V), q / q.sum())
    full = FullSampler(problem, geometry_U, geometry_V)
    p = sigma[:, None] * u
    q = tau[:, None] * np.abs(W)
    np.testing.assert_allclose(full.primal_law(u), p / p.sum())
    np.testing.assert_allclose(full.dual_law(V), q / q.sum())


def test_nothing_to_draw():
    problem = make_problem(10, n=4)
    geometry_U, geometry_V, u, _ = make_point(problem, "1x1", "2x1", 11)
    labels = np.eye(problem.k)[problem.y]
    for sampler_type in SAMPLERS.values():
        sampler = sampler_type(problem, geometry_U, geometry_V)
        rng = np.random.default_rng(0)
        assert not sampler.draw_dual(labels, rng, 3).matrix().any()
        assert not sampler.draw_primal(np.zeros_like(u), rng, 3).matrix().any()


def test_full_sampling_refuses_l2_geometry_in_the_classes():
    problem = make_problem(12, "1x2")
    with pytest.raises(ValueError, match=r"l1 geometry in the classes.*variance"):
        FullSampler(problem, *make_geometries(problem, 3.0))
