"""What every loss can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np


class Loss(ABC):
    """A Fenchel-Young loss (eq:fenchel-loss)::

        loss(z, y) = max over v in the simplex of  <v - y, z> - f(v, y)

    with f(., y) convex and f(y, y) = 0. Every method acts on whole matrices: ``Z`` and ``V`` are
    (n, k), ``y`` holds the n column numbers of the true classes.
    """

    name: ClassVar[str]

    #: True where f is affine in v, so that the remainder of th:md-deterministic vanishes.
    affine: bool = False

    #: True where f is strongly convex in v, so that the loss is differentiable in z.
    smooth: bool = False

    #: True where the maximising v is differentiable in z as well, with ``curvature`` as derivative.
    twice_differentiable: bool = False

    #: True where classes act on the others by one number alone, their ``joint_score``.
    joins: bool = False

    #: True where f(v, y) is another function of v for another y.
    by_label: bool = False

    @property
    def alike(self) -> bool:
        """Whether wrong classes of equal scores have equal v, in steps from equal centres."""
        return False

    def check_classes(self, k: int) -> None:  # noqa: B027 (most losses fit any k)
        """Raise where the loss does not fit k classes."""

    @abstractmethod
    def value(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every row, (n,)."""

    @abstractmethod
    def argmax(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The maximising v of every row, (n, k)."""

    def value_and_argmax(self, Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, for a loss whose two share the work."""
        return self.value(Z, y), self.argmax(Z, y)

    def evaluate(self, Z: np.ndarray, y: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The loss of every row; the maximising v are written into V."""
        losses, V[...] = self.value_and_argmax(Z, y)
        return losses

    @abstractmethod
    def f(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(v, y) of every row, (n,)."""

    @abstractmethod
    def prox_entropy(self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        """``argmax_v <v, z> - f(v, y) - KL(v, v0) / eta`` on the simplex, row by row."""

    @abstractmethod
    def prox_euclidean(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        """``argmax_v <v, z> - f(v, y) - ||v - v0||^2 / (2 eta)`` on the simplex, row by row."""

    def smoothed(
        self, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray, V: np.ndarray
    ) -> np.ndarray:
        """``max_v <v - y, z> - f(v, y) - ||v - v0||^2 / (2 eta)`` on the simplex, row by row.

        The maximising v are written into V, whose support on entry may be where the search begins.
        """
        V[...] = self.prox_euclidean(V0, Z, eta, y)
        losses = np.einsum("il,il->i", V, Z) - true_class(Z, y) - self.f(V, y)
        difference = V - V0
        losses -= np.einsum("il,il->i", difference, difference) / (2 * eta)
        return losses

    def risk_by_class(
        self, Zt: np.ndarray, y: np.ndarray, weights: np.ndarray, Vt: np.ndarray
    ) -> float:
        """``weights @ value`` for scores by class, (k, n), and the maximising v into Vt."""
        losses, V = self.value_and_argmax(np.ascontiguousarray(Zt.T), y)
        Vt[...] = V.T
        return float(weights @ losses)

    def smoothed_by_class(
        self,
        V0t: np.ndarray,
        Zt: np.ndarray,
        eta: float,
        y: np.ndarray,
        weights: np.ndarray,
        Vt: np.ndarray,
    ) -> float:
        """The same for ``smoothed``."""
        V0, Z, V = (np.ascontiguousarray(A.T) for A in (V0t, Zt, Vt))
        losses = self.smoothed(V0, Z, eta, y, V)
        Vt[...] = V.T
        return float(weights @ losses)

    def curvature(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        """The h of every row for which ``diag(h) - h h^T / sum(h)`` is the Hessian in z.

        At the point z whose maximising v is given: of the loss itself where it is smooth, else, in
        units of eta, of the loss smoothed by ``||v - v0||^2 / (2 eta)``. The default is exact where
        f is affine, and otherwise an upper bound.
        """
        return np.where(V > 0.0, 1.0, 0.0)

    def support(self, V: np.ndarray, eta: float, y: np.ndarray) -> np.ndarray:
        """``curvature`` of a loss that is not smooth, in two bytes an entry where f is affine."""
        if not self.affine:
            return self.curvature(V, eta, y)
        return (V > 0.0).astype(np.uint16)

    def joint_score(self, Z: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The score of one class that stands for the given ones, (n,), where the loss ``joins``."""
        raise NotImplementedError

    def remainder(self, k: int) -> float:
        """``max_y f(1/k, y) - min_v f(v, y)``, the r of th:md-deterministic (0 where f is affine).

        ``min_v f(v, y)`` is ``-loss(0, y)``, since <v - y, 0> = 0.
        """
        if self.affine:
            return 0.0
        y = np.arange(k)
        f_center = self.f(np.full((k, k), 1.0 / k), y)
        return float((f_center + self.value(np.zeros((k, k)), y)).max())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def true_class(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``A[i, y_i]`` for every row i."""
    return A[np.arange(y.size), y]
