"""Fixed small problems, whose optimum other solvers know (see ``reference``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Instance:
    """A problem as a user would state it; ``y`` holds column numbers 0..k-1."""

    name: str
    X: Any
    y: np.ndarray
    k: int
    lam: float
    weights: np.ndarray | None = None
    penalty_factor: np.ndarray | None = None
    radius: float | None = None
    penalty: str = "l1"
    cost: np.ndarray | None = None
    positive: bool = False

    def arguments(self) -> dict[str, Any]:
        """Keywords of ``fenchel.solve`` besides X, y and the loss."""
        return {
            "lam": self.lam,
            "radius": self.radius,
            "sample_weight": self.weights,
            "penalty_factor": self.penalty_factor,
            "classes": np.arange(self.k),
            "penalty": self.penalty,
            "positive": self.positive,
        }

    def check_arguments(self) -> dict[str, Any]:
        """Keywords of ``checker.check`` besides X, y and the loss."""
        return {
            "lam": self.lam,
            "radius": self.radius,
            "weights": self.weights,
            "penalty_factor": self.penalty_factor,
            "penalty": self.penalty,
            "cost": self.cost,
            "positive": self.positive,
        }


def _data(
    seed: int, n: int, d: int, k: int, noise: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Gaussian features, labels from a sparse linear model; every class below k has a chance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    U = np.zeros((d, k))
    U[rng.integers(0, d, 2 * k), np.arange(2 * k) % k] = rng.standard_normal(2 * k) * 2
    y = (X @ U + noise * rng.standard_normal((n, k))).argmax(axis=1)
    return X, y, rng


def _binary_tall() -> Instance:
    X, y, _ = _data(1, 40, 6, 2)
    return Instance("binary-tall", X, y, 2, 0.05)


def _binary_wide() -> Instance:
    X, y, _ = _data(2, 12, 30, 2)
    return Instance("binary-wide", X, y, 2, 0.1)


def _three_classes() -> Instance:
    X, y, _ = _data(3, 30, 8, 3)
    return Instance("three-classes", X, y, 3, 0.03)


def _wide() -> Instance:
    X, y, _ = _data(4, 15, 40, 5)
    return Instance("wide", X, y, 5, 0.05)


def _sparse() -> Instance:
    X, y, rng = _data(5, 40, 20, 4)
    X[rng.random(X.shape) < 0.8] = 0.0
    return Instance("sparse", sp.csr_array(X), y, 4, 0.02)


def _sparse_wide() -> Instance:
    X, y, rng = _data(6, 20, 50, 6)
    X[rng.random(X.shape) < 0.85] = 0.0
    return Instance("sparse-wide", sp.csr_array(X), y, 6, 0.02)


def _weighted() -> Instance:
    X, y, rng = _data(7, 30, 10, 4)
    weights = rng.integers(0, 5, 30).astype(float)
    return Instance("weighted", X, y, 4, 0.04, weights=weights)


def _penalty_factors() -> Instance:
    X, y, rng = _data(8, 30, 10, 4)
    return Instance("penalty-factors", X, y, 4, 0.04, penalty_factor=rng.uniform(0.3, 3.0, 10))


def _absent_class() -> Instance:
    X, y, rng = _data(9, 25, 10, 5)
    return Instance(
        "absent-class", X, np.where(y == 2, 3, y), 5, 0.03, weights=rng.uniform(0.5, 2.0, 25)
    )


def _heavy_tails() -> Instance:
    X, y, rng = _data(10, 30, 8, 3)
    X = np.clip(rng.standard_t(1.5, X.shape), -50, 50) + 0.5 * X
    return Instance("heavy-tails", X, y, 3, 0.2)


def _duplicated_rows() -> Instance:
    X, y, _ = _data(11, 12, 6, 3)
    return Instance("duplicated-rows", np.repeat(X, 3, axis=0), np.repeat(y, 3), 3, 0.05)


def _odd_columns() -> Instance:
    X, y, _ = _data(12, 24, 8, 3)
    X[:, 2], X[:, 5] = 1.0, 0.0
    return Instance("constant-and-empty-columns", X, y, 3, 0.04)


def _many_classes() -> Instance:
    X, y, _ = _data(13, 40, 12, 20)
    return Instance("twenty-classes", X, y, 20, 0.01)


def _fifty_classes() -> Instance:
    X, y, _ = _data(14, 30, 10, 50)
    return Instance("fifty-classes", X, y, 50, 0.01)


def _ball() -> Instance:
    return replace(_three_classes(), name="ball", radius=2.0, lam=0.01)


def _wide_ball() -> Instance:
    instance = _sparse_wide()
    return replace(instance, name="ball-weighted-sparse", radius=3.0, lam=0.0,
                   weights=np.linspace(0.0, 2.0, 20))  # fmt: skip


def _group() -> Instance:
    X, y, rng = _data(15, 25, 10, 4)
    return Instance("group", X, y, 4, 0.08, penalty="group",
                    penalty_factor=rng.uniform(0.5, 2.0, 10))  # fmt: skip


def _positive() -> Instance:
    return replace(_weighted(), name="positive", lam=0.02, positive=True)


def _positive_sparse() -> Instance:
    instance = _sparse_wide()
    factor = np.linspace(0.5, 1.5, instance.X.shape[1])
    return replace(instance, name="positive-sparse", positive=True, penalty_factor=factor)


def _positive_ball() -> Instance:
    return replace(_ball(), name="positive-ball", positive=True)


def _positive_group() -> Instance:
    return replace(_group(), name="positive-group", positive=True, lam=0.05)


INSTANCES = [
    make()
    for make in (
        _binary_tall, _binary_wide, _three_classes, _wide, _sparse, _sparse_wide, _weighted,
        _penalty_factors, _absent_class, _heavy_tails, _duplicated_rows, _odd_columns,
        _many_classes, _fifty_classes, _ball, _wide_ball, _group,
        _positive, _positive_sparse, _positive_ball, _positive_group,
    )
]  # fmt: skip

BY_NAME = {instance.name: instance for instance in INSTANCES}
LOSS_NAMES = ("hinge", "softmax", "sparsemax")


def with_cost(instance: Instance, seed: int = 0) -> Instance:
    """The same data with prices of mistakes other than one (hinge only)."""
    cost = np.random.default_rng(seed).uniform(0.2, 3.0, (instance.k, instance.k))
    np.fill_diagonal(cost, 0.0)
    return replace(instance, name=f"{instance.name}-cost", cost=cost)
