"""One contract that every geometry keeps; strong convexity and Omega are tested numerically."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from fenchel.geometry.base import DualGeometry, Geometry, PrimalGeometry
from fenchel.geometry.euclidean import l1_ball_threshold
from fenchel.geometry.registry import DUAL, PRIMAL, make_geometries
from fenchel.losses import LOSSES
from instances import BY_NAME, Instance
from support import make_problem

RADIUS = 2.5


def shaped(n: int, d: int, k: int) -> Instance:
    rng = np.random.default_rng(n + 10 * d + 100 * k)
    return Instance(
        "shaped",
        rng.standard_normal((n, d)),
        np.arange(n) % k,
        k,
        0.3,
        weights=rng.uniform(0.2, 2.0, n),
        penalty_factor=rng.uniform(0.0, 2.0, d),
    )


SHAPES = [(4, 1, 2), (3, 2, 2), (5, 3, 4), (6, 12, 3)]


def primal_geometry(name: str, shape: tuple[int, int, int]) -> PrimalGeometry:
    penalty = "group" if name == "1x2" else "l1"
    problem = make_problem(shaped(*shape), penalty=penalty)
    return make_geometries(problem, RADIUS, name)[0]


def dual_geometry(name: str, shape: tuple[int, int, int]) -> DualGeometry:
    return make_geometries(make_problem(shaped(*shape)), RADIUS, None, name)[1]


def members() -> list[Any]:
    return [
        pytest.param(make, name, shape, id=f"{name}-{'x'.join(map(str, shape))}")
        for make, table in ((primal_geometry, PRIMAL), (dual_geometry, DUAL))
        for name in table
        for shape in SHAPES
    ]


every_geometry = pytest.mark.parametrize(("make", "name", "shape"), members())
every_primal = pytest.mark.parametrize("name", PRIMAL)
every_dual = pytest.mark.parametrize("name", DUAL)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def row_norm(geometry: PrimalGeometry, x: np.ndarray) -> float:
    """The norm whose ball of radius R is the feasible set (l1, or 1x2 for whole features)."""
    return float(np.linalg.norm(x, axis=1).sum() if geometry.name == "1x2" else np.abs(x).sum())


def feasible(geometry: Geometry, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Points inside, near the border, near faces and corners."""
    points = []
    shape = geometry.center().shape
    for i in range(count):
        alpha = (0.02, 0.3, 3.0)[i % 3]
        if isinstance(geometry, DualGeometry):
            x = rng.dirichlet(np.full(shape[1], alpha), shape[0])
        else:
            x = rng.dirichlet(np.full(shape[0] * shape[1], alpha)).reshape(shape)
            if geometry.name != "1x1":
                x = x * rng.choice([-1.0, 1.0], shape)
            x *= (RADIUS if i % 2 else RADIUS * rng.random()) / max(row_norm(geometry, x), 1e-300)
        points.append(x)
    return points


def corners(geometry: Geometry) -> list[np.ndarray]:
    shape = geometry.center().shape
    if isinstance(geometry, DualGeometry):
        return [np.eye(shape[1])[np.full(shape[0], l)] for l in range(shape[1])]
    unit = np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    return [np.zeros(shape), *(RADIUS * unit)]


def pair(geometry: Geometry, x: np.ndarray, g: np.ndarray) -> float:
    """<x, g>, which carries the weights in the dual space."""
    if isinstance(geometry, DualGeometry):
        return float(geometry.weights @ (x * g).sum(axis=1))
    return float((x * g).sum())


@every_geometry
def test_the_dual_norm_is_dual(make: Any, name: str, shape: tuple[int, int, int]) -> None:
    geometry = make(name, shape)
    rng = np.random.default_rng(0)
    g = rng.standard_normal(geometry.center().shape)
    claimed = geometry.dual_norm(g)
    best = 0.0
    for _ in range(400):
        x = rng.standard_normal(g.shape) * rng.choice([0.0, 1.0], g.shape)
        if np.any(x):
            best = max(best, abs(pair(geometry, x, g)) / geometry.norm(x))
    assert best <= claimed * (1 + 1e-12)

    # attained: within a row, along the largest entry (l1) or along the row itself (l2); the rows
    # in proportion to their dual norms (l2 outside), or only the longest of them (l1 outside)
    inner_one = geometry.norm_type.q == 1
    x = np.where(np.abs(g) == np.abs(g).max(axis=1, keepdims=True), np.sign(g), 0.0)
    x = x if inner_one else g / np.linalg.norm(g, axis=1, keepdims=True)
    sizes = np.abs(g).max(axis=1) if inner_one else np.linalg.norm(g, axis=1)
    outer_one = geometry.norm_type.p == 1
    x = x * (np.where(sizes == sizes.max(), 1.0, 0.0) if outer_one else sizes)[:, None]
    assert pair(geometry, x, g) / geometry.norm(x) == pytest.approx(claimed)


@every_geometry
def test_the_potential_is_strongly_convex(
    make: Any, name: str, shape: tuple[int, int, int]
) -> None:
    """D(x, x0) >= ||x - x0||^2 / 2, from interior and from almost-border points."""
    geometry = make(name, shape)
    rng = np.random.default_rng(1)
    points = feasible(geometry, rng, 60)
    inner = [0.999 * x + 0.001 * geometry.center() for x in points]
    for x in points + corners(geometry):
        for x0 in [*inner[::4], geometry.center()]:
            needed = 0.5 * geometry.norm(x - x0) ** 2
            assert geometry.bregman(x, x0) >= needed * (1 - 1e-9) - 1e-12


@every_geometry
def test_omega_is_the_range_of_the_potential(
    make: Any, name: str, shape: tuple[int, int, int]
) -> None:
    geometry = make(name, shape)
    rng = np.random.default_rng(2)
    centre = geometry.potential(geometry.center())
    at_corners = [geometry.potential(x) for x in corners(geometry)]
    others = [geometry.potential(x) for x in feasible(geometry, rng, 200)]
    assert centre <= min(at_corners + others) + 1e-12  # the centre minimises
    assert max(others) <= max(at_corners) + 1e-12  # a convex function peaks at a corner
    found = max(at_corners) - centre
    if name == "1x1":  # zero, one more corner of the solid simplex, is above the others by R^2
        found = max(at_corners[1:]) - centre
        assert max(at_corners) == at_corners[0] == 0.0
    assert geometry.omega == pytest.approx(found, rel=1e-12)
    assert geometry.omega_bound >= max(geometry.omega, geometry.squared_radius) * (1 - 1e-12)
    widest = max(geometry.norm(x) for x in corners(geometry) + feasible(geometry, rng, 50))
    assert widest**2 <= geometry.squared_radius * (1 + 1e-9)


@every_geometry
def test_bregman_follows_from_the_potential(
    make: Any, name: str, shape: tuple[int, int, int]
) -> None:
    geometry = make(name, shape)
    rng = np.random.default_rng(3)
    for x, x0 in zip(feasible(geometry, rng, 9), feasible(geometry, rng, 9), strict=True):
        x0 = 0.5 * x0 + 0.5 * (geometry.center() + 0.05)
        h = 1e-6
        forward, backward = x0 + h * (x - x0), x0 - h * (x - x0)
        slope = (geometry.potential(forward) - geometry.potential(backward)) / (2 * h)
        expected = geometry.potential(x) - geometry.potential(x0) - slope
        assert geometry.bregman(x, x0) == pytest.approx(expected, rel=1e-6, abs=1e-7)
        assert geometry.bregman(x0, x0) == pytest.approx(0.0, abs=1e-12)


def primal_objective(
    geometry: PrimalGeometry, x: np.ndarray, x0: np.ndarray, S: np.ndarray, eta: float
) -> float:
    sizes = np.linalg.norm(x, axis=1) if geometry.name == "1x2" else np.abs(x).sum(axis=1)
    if geometry.name == "1x1":
        d = S.shape[0]
        sizes = sizes[:d] + sizes[d:]
    linear = float((S * geometry.coef(x)).sum())
    return linear + float(geometry.penalties @ sizes) + geometry.bregman(x, x0) / eta


@every_primal
@every_shape
@pytest.mark.parametrize("eta", [0.02, 1.0, 50.0])
def test_the_primal_step_is_the_best_point(
    name: str, shape: tuple[int, int, int], eta: float
) -> None:
    geometry = primal_geometry(name, shape)
    rng = np.random.default_rng(4)
    for x0 in (geometry.center(), feasible(geometry, rng, 3)[2] + 0.001):
        x0 = x0 * min(1.0, RADIUS / max(row_norm(geometry, x0), 1e-9))
        S = rng.standard_normal(geometry.shape)
        x = geometry.step(x0, S, eta)
        assert row_norm(geometry, x) <= RADIUS * (1 + 1e-9)
        if name == "1x1":
            assert x.min() >= 0
        best = primal_objective(geometry, x, x0, S, eta)
        slack = 1e-8 * max(1.0, abs(best), 1 / eta)
        for other in feasible(geometry, rng, 60) + corners(geometry):
            for share in (1.0, 0.1, 1e-3):
                candidate = (1 - share) * x + share * other
                assert primal_objective(geometry, candidate, x0, S, eta) >= best - slack


def conic_step(geometry: PrimalGeometry, x0: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
    """The same step by a conic solver."""
    x = cp.Variable(x0.shape)
    d = S.shape[0]
    constraints = []
    if geometry.name == "1x1":
        coef, sizes = x[:d] - x[d:], cp.sum(x[:d] + x[d:], axis=1)
        constraints.append(x >= 0)
        divergence = RADIUS * cp.sum(cp.kl_div(x, x0))
    elif geometry.name == "1x2":
        coef, sizes = x, cp.norm(x, 2, axis=1)
        powers = cp.sum(cp.power(sizes / RADIUS, geometry.p, approx=False))
        divergence = RADIUS**2 / (geometry.p * geometry.c) * powers - cp.sum(
            cp.multiply(geometry.gradient(x0), x)
        )
    else:
        coef, sizes = x, cp.norm(x, 1, axis=1)
        divergence = 0.5 * cp.sum_squares(x - x0)
    constraints.append(cp.sum(sizes) <= RADIUS)
    objective = cp.sum(cp.multiply(S, coef)) + geometry.penalties @ sizes + divergence / eta
    cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    return x.value


@every_primal
@pytest.mark.parametrize("eta", [0.1, 2.0])
def test_the_primal_step_matches_a_conic_solver(name: str, eta: float) -> None:
    geometry = primal_geometry(name, (4, 3, 2))
    rng = np.random.default_rng(5)
    S = 3 * rng.standard_normal(geometry.shape)
    x0 = feasible(geometry, rng, 3)[2] * 0.8 + 0.01
    expected = conic_step(geometry, x0, S, eta)
    np.testing.assert_allclose(geometry.step(x0, S, eta), expected, atol=2e-4)


@every_dual
@every_shape
@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_the_dual_step_is_the_best_point(name: str, shape: tuple[int, int, int], loss: str) -> None:
    geometry = dual_geometry(name, shape)
    rng = np.random.default_rng(6)
    y = np.arange(shape[0]) % shape[2]
    member = LOSSES[loss]()
    for eta in (0.1, 3.0):
        V0 = 0.9 * feasible(geometry, rng, 3)[2] + 0.1 * geometry.center()
        Z = rng.standard_normal(V0.shape)

        def objective(V: np.ndarray, V0=V0, Z=Z, eta=eta) -> float:
            conjugate = float(geometry.weights @ member.f(V, y))
            return pair(geometry, V, Z) - conjugate - geometry.bregman(V, V0) / eta

        V = geometry.step(member, V0, Z, eta, y)
        best = objective(V)
        for other in feasible(geometry, rng, 60) + corners(geometry):
            for share in (1.0, 0.1, 1e-3):
                assert objective((1 - share) * V + share * other) <= best + 1e-10


@every_primal
def test_points_and_coefficients_go_back_and_forth(name: str) -> None:
    geometry = primal_geometry(name, (5, 3, 4))
    U = np.random.default_rng(7).standard_normal(geometry.shape)
    for scale in (0.01, 1.0, 100.0):
        x = geometry.from_coef(scale * U)
        assert row_norm(geometry, x) <= RADIUS * (1 + 1e-12)
        inside = scale * U * min(1.0, RADIUS / row_norm(geometry, scale * U))
        np.testing.assert_allclose(geometry.coef(x), inside, rtol=2e-3)


@every_primal
@pytest.mark.parametrize("instance", ["weighted", "sparse", "duplicated-rows"])
def test_lipschitz_bounds_every_product(name: str, instance: str) -> None:
    """||X U||_* <= L ||U||, and L is attained (th:lip), for V's matching geometry."""
    problem = make_problem(BY_NAME[instance], penalty="group" if name == "1x2" else "l1")
    primal, dual = make_geometries(problem, RADIUS, name, "2x1" if name == "1x1" else "2x2")
    L = primal.lipschitz(problem)
    rng = np.random.default_rng(8)
    X = problem.design.matmul(np.eye(problem.d))
    norm = primal.norm_type
    worst = 0.0
    for j in range(problem.d):  # the extreme points of the 1x1 and 1x2 balls
        U = np.zeros((problem.d, problem.k))
        U[j, j % problem.k] = 1.0
        worst = max(worst, dual.dual_norm(X @ U) / norm(U))
    _, _, Vt = np.linalg.svd(np.sqrt(problem.weights)[:, None] * X)
    U = np.outer(Vt[0], np.eye(problem.k)[0])
    worst = max(worst, dual.dual_norm(X @ U) / norm(U))
    for _ in range(50):
        U = rng.standard_normal((problem.d, problem.k))
        worst = max(worst, dual.dual_norm(X @ U) / norm(U))
    assert worst == pytest.approx(L, rel=1e-9)


def test_the_ball_threshold() -> None:
    rng = np.random.default_rng(9)
    for _ in range(50):
        magnitude = rng.standard_normal(12)
        radius = 3 * rng.random() + 1e-3
        t = l1_ball_threshold(magnitude, radius)
        size = np.maximum(magnitude - t, 0).sum()
        assert t >= 0
        assert size == pytest.approx(min(radius, np.maximum(magnitude, 0).sum()))


def test_unknown_or_unfit_geometries_are_refused() -> None:
    problem = make_problem(BY_NAME["three-classes"])
    with pytest.raises(ValueError, match="primal geometry must be one of"):
        make_geometries(problem, 1.0, "3x3")
    with pytest.raises(ValueError, match="dual geometry must be one of"):
        make_geometries(problem, 1.0, None, "3x3")
    with pytest.raises(ValueError, match="does not fit the penalty"):
        make_geometries(problem, 1.0, "1x2")
