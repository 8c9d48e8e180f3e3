"""The multiclass hinge loss (eq:loss-hinge)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fenchel.kernels.by_class import smoothed_hinge_by_class
from fenchel.kernels.simplex import multiply_rows, project_margins, project_rows
from fenchel.kernels.smoothed_hinge import hinge, smoothed_hinge
from fenchel.losses.base import Loss, true_class


class Hinge(Loss):
    """``max_l C(y, l) + z_l - z_y``, with f(v, y) = -<C(y,:), v>.

    Parameters
    ----------
    cost : (k, k) array, optional
        ``cost[y, l]`` is the price of answering l where y is true: non-negative, zero on the
        diagonal. Left out, every mistake costs 1, which is the paper's hinge loss with
        f(v, y) = v_y - 1.
    """

    name: ClassVar[str] = "hinge"
    affine = True
    by_label = True

    def __init__(self, cost: Any = None) -> None:
        self.cost = None if cost is None else _check_cost(cost)

    def check_classes(self, k: int) -> None:
        if self.cost is not None and self.cost.shape[0] != k:
            raise ValueError(
                f"cost has {self.cost.shape[0]} class(es) but the data has {k}: give a row and a "
                "column for every class, in the order of classes."
            )

    def margins(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Z + C(y,:), a new array."""
        if self.cost is not None:
            return Z + self.cost[y]
        margins = Z + 1.0
        margins[np.arange(y.size), y] = true_class(Z, y)
        return margins

    @property
    def plain(self) -> bool:
        """Whether every mistake costs 1, which is what the compiled loops know."""
        return self.cost is None and type(self).margins is Hinge.margins

    @property
    def alike(self) -> bool:
        return self.plain

    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not self.plain:
            return self.margins(Z, y).max(axis=1) - true_class(Z, y)
        losses = np.empty(y.size)
        hinge(np.ascontiguousarray(Z, dtype=np.float64), y, losses)
        return losses

    def argmax(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        margins = self.margins(Z, y)
        best = (margins == margins.max(axis=1, keepdims=True)).astype(np.float64)
        return best / best.sum(axis=1, keepdims=True)  # ties share the mass

    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.cost is None:
            return true_class(V, y) - 1.0
        return -np.einsum("il,il->i", self.cost[y], V)

    def prox_entropy(self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        margins = self.margins(Z, y)
        multiply_rows(V0, margins, 1.0, eta, margins)
        return margins

    def prox_euclidean(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        if self.plain:
            out = np.empty(Z.shape)
            V0, Z = (np.ascontiguousarray(A, dtype=np.float64) for A in (V0, Z))
            project_margins(V0, Z, eta, y, out)
            return out
        out = self.margins(Z, y)
        out *= eta
        out += V0
        project_rows(out, V0, out)
        return out

    def smoothed(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray, V: np.ndarray
    ) -> np.ndarray:
        if not self.plain:
            return super().smoothed(V0, Z, eta, y, V)
        losses = np.empty(y.size)
        smoothed_hinge(V0, Z, eta, y, 1.0, V, losses)
        return losses

    def smoothed_by_class(
        self,
        V0t: np.ndarray,
        Zt: np.ndarray,
        eta: float,
        y: np.ndarray,
        weights: np.ndarray,
        Vt: np.ndarray,
    ) -> float:
        if not self.plain:
            return super().smoothed_by_class(V0t, Zt, eta, y, weights, Vt)
        return smoothed_hinge_by_class(V0t, Zt, eta, y, weights, Vt)

    def __repr__(self) -> str:
        return "Hinge()" if self.cost is None else f"Hinge(cost=<{self.cost.shape[0]} classes>)"


class JointHinge(Hinge):
    """The hinge loss where the last column stands for so many ``times`` wrong classes.

    For steps on the scores of some classes alone (:mod:`fenchel.solvers.alike`): the others have
    equal scores, and a centre that is equal too.
    """

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def smoothed(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray, V: np.ndarray
    ) -> np.ndarray:
        losses = np.empty(y.size)
        smoothed_hinge(V0, Z, eta, y, float(self.times), V, losses)
        return losses

    def curvature(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        return self.support(V, eta, y).astype(np.float64)

    def support(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        h = super().support(V, eta, y)
        h[:, -1] *= self.times
        return h


def _check_cost(cost: Any) -> np.ndarray:
    cost = np.array(cost, dtype=np.float64)
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1]:
        raise ValueError(f"cost must be a square matrix, found shape {cost.shape}.")
    if not np.isfinite(cost).all() or (cost < 0).any():
        raise ValueError("cost must be finite and >= 0: shift or clean its entries.")
    if np.diag(cost).any():
        raise ValueError("cost must be zero on the diagonal: a right answer costs nothing.")
    return cost
