"""A plain numpy checker, written from the formulas alone: it imports nothing from the package.

It recomputes the primal value, the dual value and the feasibility of a certificate from arrays::

    P(U) = sum_i w_i loss(x_i^T U, y_i) + lam sum_j c_j ||U(j,:)||
    D(V) = -sum_i w_i f(v_i, y_i)                                     (penalised)
    D(V) = -sum_i w_i f(v_i, y_i) - R max_j (||G(j,:)||_* - lam c_j)_+    (ball)
    G    = X^T diag(w) (V - Y),   feasible (penalised): ||G(j,:)||_* <= lam c_j

Where U >= 0 is asked for, (-G)_+ takes the place of G in the norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: The checker and the package add in different orders.
RELATIVE = 1e-9


@dataclass(frozen=True)
class Bounds:
    """What the checker found."""

    primal: float
    dual: float


def dense(A: Any) -> np.ndarray:
    """A as a new float64 array."""
    return np.array(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64)


def losses(Z: np.ndarray, y: np.ndarray, loss: str, cost: np.ndarray | None = None) -> np.ndarray:
    """The loss of every row of scores."""
    n, k = Z.shape
    true = Z[np.arange(n), y]
    if loss == "hinge":
        cost = 1.0 - np.eye(k) if cost is None else cost
        return (Z + cost[y]).max(axis=1) - true
    if loss == "softmax":
        top = Z.max(axis=1)
        return top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - true
    if loss == "sparsemax":
        V = np.array([project_onto_simplex(z) for z in Z])
        return (V * Z).sum(axis=1) - true - 0.5 * ((V**2).sum(axis=1) - 1.0)
    raise NotImplementedError(loss)


def f_values(V: np.ndarray, y: np.ndarray, loss: str, cost: np.ndarray | None = None) -> np.ndarray:
    """f(v, y) of every row."""
    k = V.shape[1]
    if loss == "hinge":
        cost = 1.0 - np.eye(k) if cost is None else cost
        return -(cost[y] * V).sum(axis=1)
    if loss == "softmax":
        return (V * np.log(np.where(V > 0, V, 1.0))).sum(axis=1)
    if loss == "sparsemax":
        return 0.5 * ((V**2).sum(axis=1) - 1.0)
    raise NotImplementedError(loss)


def project_onto_simplex(z: np.ndarray) -> np.ndarray:
    """Euclidean projection by sorting."""
    ordered = np.sort(z)[::-1]
    candidates = (np.cumsum(ordered) - 1.0) / np.arange(1, z.size + 1)
    threshold = candidates[np.flatnonzero(ordered > candidates)[-1]]
    return np.maximum(z - threshold, 0.0)


def bounds(
    X: Any,
    y: np.ndarray,
    U: Any,
    V: Any,
    *,
    loss: str,
    lam: float,
    weights: np.ndarray | None = None,
    penalty_factor: np.ndarray | None = None,
    radius: float | None = None,
    penalty: str = "l1",
    cost: np.ndarray | None = None,
    positive: bool = False,
) -> Bounds:
    """Recompute both bounds, and assert that U and V are feasible."""
    X, U, V = dense(X), dense(U), dense(V)
    n, d = X.shape
    w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, float) / np.sum(weights)
    c = np.ones(d) if penalty_factor is None else np.asarray(penalty_factor, float)
    assert U.shape == (d, V.shape[1])
    assert V.shape == (n, U.shape[1])
    assert np.isfinite(U).all()
    assert np.isfinite(V).all()
    assert V.min() >= 0.0
    assert np.abs(V.sum(axis=1) - 1.0).max() <= 1e-12

    sizes = np.abs(U).sum(axis=1) if penalty == "l1" else np.sqrt((U**2).sum(axis=1))
    primal = w @ losses(X @ U, y, loss, cost) + lam * (c @ sizes)

    difference = V.copy()
    difference[np.arange(n), y] -= 1.0
    G = X.T @ (w[:, None] * difference)
    if positive:
        assert U.min() >= 0.0
        G = np.minimum(G, 0.0)
    dual_sizes = np.abs(G).max(axis=1) if penalty == "l1" else np.sqrt((G**2).sum(axis=1))
    dual = -(w @ f_values(V, y, loss, cost))
    if radius is None:
        # rounding of G itself, where its terms cancel
        noise = 1e-14 * (np.abs(X).T @ w)
        assert np.all(dual_sizes <= lam * c * (1 + 1e-9) + noise)
    else:
        assert sizes.sum() <= radius * (1 + 1e-12)
        dual -= radius * max(0.0, (dual_sizes - lam * c).max())
    return Bounds(float(primal), float(dual))


def check(result: Any, X: Any, y: np.ndarray, **problem: Any) -> Bounds:
    """Assert that a result reports what its arrays say; return what they say."""
    found = bounds(X, y, result.U, result.V, **problem)
    scale = max(1.0, abs(found.primal), abs(found.dual))
    assert abs(result.primal - found.primal) <= RELATIVE * scale, (result.primal, found.primal)
    assert abs(result.dual - found.dual) <= RELATIVE * scale, (result.dual, found.dual)
    assert result.gap == result.primal - result.dual
    assert found.dual <= found.primal + RELATIVE * scale
    assert result.certifies == ("penalised" if problem.get("radius") is None else "ball")
    return found
