"""One contract that every loss keeps, and the generic loss against the closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

import separable_losses
from fenchel.losses import LOSSES, Hinge, Loss

SMALLEST = 1e-300

SEPARABLE = {**separable_losses.CLOSED, **separable_losses.OPEN}


def costs(k: int) -> np.ndarray:
    cost = np.random.default_rng(k).uniform(0.1, 2.0, (k, k))
    np.fill_diagonal(cost, 0.0)
    return cost


MAKERS: dict[str, Callable[[int], Loss]] = {
    **{name: (lambda k, loss=loss: loss()) for name, loss in LOSSES.items()},
    "hinge-cost": lambda k: Hinge(costs(k)),
    **{f"separable-{name}": (lambda k, make=make: make()) for name, make in SEPARABLE.items()},
}

every_loss = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
every_k = pytest.mark.parametrize("k", [2, 3, 7])


def draw(k: int, n: int = 6, seed: int = 0, scale: float = 2.0) -> tuple[np.ndarray, ...]:
    """Scores, interior rows of the simplex, labels."""
    rng = np.random.default_rng(seed)
    return (
        scale * rng.standard_normal((n, k)),
        rng.dirichlet(np.ones(k), n),
        rng.integers(0, k, n),
    )


def candidates(k: int, count: int = 300) -> np.ndarray:
    """Points of the simplex: its corners, its centre, and random ones close to every face."""
    rng = np.random.default_rng(1)
    spread = [rng.dirichlet(np.full(k, alpha), count) for alpha in (0.1, 1.0, 10.0)]
    return np.concatenate([np.eye(k), np.full((1, k), 1 / k), *spread])


def f_at(loss: Loss, v: np.ndarray, y: int) -> np.ndarray:
    v = np.atleast_2d(v)
    return loss.f(v, np.full(v.shape[0], y))


def kl(v: np.ndarray, v0: np.ndarray) -> np.ndarray:
    return (v * np.log(np.maximum(v, SMALLEST) / v0) - v + v0).sum(axis=-1)


def half_square(v: np.ndarray, v0: np.ndarray) -> np.ndarray:
    return 0.5 * ((v - v0) ** 2).sum(axis=-1)


@every_loss
@every_k
def test_the_value_is_the_maximum_and_argmax_attains_it(make: Callable, k: int) -> None:
    loss = make(k)
    Z, _, y = draw(k)
    values, V = loss.value(Z, y), loss.argmax(Z, y)
    assert values.shape == (len(y),)
    np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-12)
    assert V.min() >= 0
    points = candidates(k)
    for z, label, value, v in zip(Z, y, values, V, strict=True):
        assert value >= -1e-12
        assert np.all(points @ z - z[label] - f_at(loss, points, label) <= value + 1e-10)
        assert v @ z - z[label] - f_at(loss, v, label)[0] == pytest.approx(value, abs=1e-10)


@every_loss
@every_k
def test_f_is_convex_and_zero_at_the_label(make: Callable, k: int) -> None:
    loss = make(k)
    labels = np.arange(k)
    np.testing.assert_allclose(loss.f(np.eye(k), labels), 0.0, atol=1e-14)
    points = candidates(k, 40)
    middle = 0.5 * (points[:-1] + points[1:])
    for label in labels:
        f = f_at(loss, points, label)
        assert np.all(f_at(loss, middle, label) <= 0.5 * (f[:-1] + f[1:]) + 1e-12)
        if loss.affine:
            np.testing.assert_allclose(
                f_at(loss, middle, label), 0.5 * (f[:-1] + f[1:]), atol=1e-12
            )


@every_loss
@every_k
def test_adding_a_constant_to_the_scores_changes_nothing(make: Callable, k: int) -> None:
    loss = make(k)
    Z, _, y = draw(k)
    np.testing.assert_allclose(loss.value(Z + 5.0, y), loss.value(Z, y), atol=1e-10)


@every_loss
@pytest.mark.parametrize("eta", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("prox", "distance"), [("entropy", kl), ("euclidean", half_square)])
@every_k
def test_the_prox_steps_are_the_best_points(
    make: Callable, k: int, prox: str, distance: Callable, eta: float
) -> None:
    """Against many feasible points, and against the same problem a little off the answer."""
    loss = make(k)
    Z, V0, y = draw(k, seed=k)
    V = getattr(loss, f"prox_{prox}")(V0, Z, eta, y)
    np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-12)
    assert V.min() >= 0
    points = candidates(k)
    for z, v0, label, v in zip(Z, V0, y, V, strict=True):

        def objective(p: np.ndarray, z=z, v0=v0, label=label) -> np.ndarray:
            return p @ z - f_at(loss, p, label) - distance(p, v0) / eta

        best = objective(v[None])[0]
        slack = 1e-9 * max(1.0, 1 / eta)
        assert np.all(objective(points) <= best + slack)
        for share in (1e-1, 1e-3):  # the concave objective must fall in every direction
            assert np.all(objective((1 - share) * v + share * points) <= best + slack)


@pytest.mark.parametrize("name", ["hinge", "softmax", "sparsemax"])
@pytest.mark.parametrize(("prox", "distance"), [("entropy", kl), ("euclidean", half_square)])
def test_the_prox_steps_match_a_general_solver(name: str, prox: str, distance: Callable) -> None:
    k, eta = 3, 0.7
    loss = LOSSES[name]()
    Z, V0, y = draw(k, n=3, seed=5)
    V = getattr(loss, f"prox_{prox}")(V0, Z, eta, y)
    for z, v0, label, v in zip(Z, V0, y, V, strict=True):
        found = minimize(
            lambda p, z=z, v0=v0, label=label: float(
                -p @ z + f_at(loss, p, label)[0] + distance(p, v0) / eta
            ),
            np.full(k, 1 / k),
            method="SLSQP",
            bounds=[(1e-12, 1.0)] * k,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(v, found.x, atol=2e-6)


@pytest.mark.parametrize("name", separable_losses.CLOSED)
@every_k
def test_the_generic_loss_agrees_with_the_closed_form(name: str, k: int) -> None:
    generic, closed = SEPARABLE[name](), LOSSES[name]()
    for seed, scale in enumerate((0.3, 2.0, 8.0)):
        Z, V0, y = draw(k, n=8, seed=seed, scale=scale)
        np.testing.assert_allclose(generic.f(V0, y), closed.f(V0, y), atol=1e-12)
        np.testing.assert_allclose(generic.value(Z, y), closed.value(Z, y), atol=1e-8)
        np.testing.assert_allclose(generic.argmax(Z, y), closed.argmax(Z, y), atol=1e-8)
        for eta in (0.05, 1.0, 20.0):
            for prox in ("prox_entropy", "prox_euclidean"):
                np.testing.assert_allclose(
                    getattr(generic, prox)(V0, Z, eta, y),
                    getattr(closed, prox)(V0, Z, eta, y),
                    atol=1e-8,
                    err_msg=f"{prox}, eta {eta}",
                )


@every_loss
def test_ties_and_equal_scores(make: Callable) -> None:
    loss = make(4)
    y = np.array([0, 1, 2])
    V = loss.argmax(np.zeros((3, 4)), y)
    np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(loss.value(np.zeros((3, 4)), y), -loss.f(V, y), atol=1e-10)


@every_loss
@every_k
def test_the_remainder_is_the_range_of_f_below_the_centre(make: Callable, k: int) -> None:
    """max_y f(1/k, y) - min_v f(v, y), which th:md-deterministic takes as 0 where f is affine."""
    loss = make(k)
    lowest = loss.argmax(np.zeros((k, k)), np.arange(k))
    points = np.concatenate([candidates(k), lowest])
    centre = np.full((1, k), 1 / k)
    found = max(
        float(f_at(loss, centre, label)[0] - f_at(loss, points, label).min()) for label in range(k)
    )
    assert loss.remainder(k) == pytest.approx(0.0 if loss.affine else found, abs=1e-9)


@pytest.mark.parametrize("make", [MAKERS[name] for name in (*LOSSES, "hinge-cost")],
                         ids=[*LOSSES, "hinge-cost"])  # fmt: skip
def test_extreme_scores_stay_finite(make: Callable) -> None:
    loss = make(3)
    y = np.array([0, 1, 2])
    for scale in (1e-300, 1e8, 1e150):
        Z = scale * np.array([[1.0, -1.0, 0.5], [0.0, 0.0, 1.0], [-1.0, 1.0, 1.0]])
        V0 = np.array([[1.0, SMALLEST, SMALLEST], [1 / 3] * 3, [0.5, 0.5, SMALLEST]])
        for V in (loss.argmax(Z, y), loss.prox_entropy(V0, Z, 1.0, y),
                  loss.prox_euclidean(V0, Z, 1.0, y)):  # fmt: skip
            assert np.isfinite(V).all()
            np.testing.assert_allclose(V.sum(axis=1), 1.0, atol=1e-12)
        assert np.isfinite(loss.value(Z, y)).all()


@every_loss
def test_inputs_are_not_changed(make: Callable) -> None:
    loss = make(3)
    arrays = draw(3)
    Z, V0, y = arrays
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    loss.value(Z, y), loss.argmax(Z, y), loss.f(V0, y)
    loss.prox_entropy(V0, Z, 0.5, y), loss.prox_euclidean(V0, Z, 0.5, y)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)
