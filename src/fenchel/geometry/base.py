"""What every geometry can do (sec:norms-and-potentials)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fenchel.geometry.norms import MixedNorm
from fenchel.losses.base import Loss
from fenchel.problem import Problem


class Geometry(ABC):
    """A norm, a potential that is 1-strongly convex in it, and its Bregman divergence."""

    name: ClassVar[str]
    norm_type: ClassVar[MixedNorm]

    @abstractmethod
    def norm(self, x: np.ndarray) -> float:
        """The norm of a difference of points."""

    @abstractmethod
    def dual_norm(self, g: np.ndarray) -> float:
        """The dual norm of a gradient."""

    @abstractmethod
    def potential(self, x: np.ndarray) -> float:
        """The potential phi(x)."""

    @abstractmethod
    def bregman(self, x: np.ndarray, x0: np.ndarray) -> float:
        """``phi(x) - phi(x0) - <grad phi(x0), x - x0>``."""

    def local_square(self, x: np.ndarray, g: np.ndarray) -> float:
        """What a gradient g at x costs in the regret: at most its squared dual norm.

        Entropy geometries have the far smaller local norm, in which an entry of g counts only as
        much as x has mass there.
        """
        return self.dual_norm(g) ** 2

    @property
    @abstractmethod
    def omega(self) -> float:
        """``max phi - min phi`` over the feasible set (def:omega-radius)."""

    @property
    @abstractmethod
    def squared_radius(self) -> float:
        """The squared norm that bounds the feasible set."""

    @property
    def omega_bound(self) -> float:
        """The Omega of step sizes and bounds: eq:omegas-vs-radii-lower asks for Omega >= radius^2.

        That is the paper's Omega itself, but for tiny cases such as two classes (log 2 < 1).
        """
        return max(self.omega, self.squared_radius)

    @abstractmethod
    def center(self) -> np.ndarray:
        """The minimiser of the potential, where mirror descent starts (eq:init-full)."""


class PrimalGeometry(Geometry):
    """The geometry of U inside the ball of radius R.

    A point may be stored in another form than (d, k), such as the two halves of the doubled
    problem: ``coef`` gives the coefficients, ``from_coef`` an interior point near them. Where
    coefficients must not be negative, the ball is cut to those that are not.
    """

    def __init__(self, problem: Problem, radius: float) -> None:
        self.shape = (problem.d, problem.k)
        self.radius = radius
        self.penalties = problem.lam * problem.penalty_factor
        self.positive = problem.positive

    @property
    def squared_radius(self) -> float:
        return self.radius**2

    @abstractmethod
    def step(self, x0: np.ndarray, S: np.ndarray, eta: float) -> np.ndarray:
        """``argmin_x <S, coef(x)> + penalty(x) + D(x, x0) / eta`` in the ball; S is (d, k)."""

    def coef(self, x: np.ndarray) -> np.ndarray:
        """The coefficients U (d, k) of a point."""
        return x

    def from_coef(self, U: np.ndarray) -> np.ndarray:
        """A point with coefficients U, or close to them where U is on the border."""
        U = np.maximum(U, 0.0) if self.positive else U
        total = self.norm(U)
        return U * (self.radius / total) if total > self.radius else U.copy()

    @abstractmethod
    def lipschitz(self, problem: Problem) -> float:
        """``sup ||X U||`` over ``||U|| <= 1``, in the dual norm of V's geometry (th:lip)."""


class DualGeometry(Geometry):
    """The geometry of V, one simplex a sample.

    With the problem's ``weights`` w: ``phi(V) = sum_i w_i phi(v_i)`` and
    ``||V||^2 = sum_i w_i ||v_i||^2``; gradients Z pair as ``sum_i w_i <v_i, z_i>``. For uniform
    weights these are the paper's potential and squared norm divided by n, so that ``omega`` here
    is the paper's Omega_V / n, and no step depends on the weights.
    """

    def __init__(self, problem: Problem) -> None:
        self.shape = (problem.n, problem.k)
        self.weights = problem.weights

    @property
    def squared_radius(self) -> float:
        return 1.0

    def norm(self, x: np.ndarray) -> float:
        return self.norm_type(x, self.weights)

    def dual_norm(self, g: np.ndarray) -> float:
        return self.norm_type.dual(g, self.weights)

    def center(self) -> np.ndarray:
        return np.full(self.shape, 1.0 / self.shape[1])

    @abstractmethod
    def step(
        self, loss: Loss, V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray
    ) -> np.ndarray:
        """``argmax_V <V, Z> - F(V) - D(V, V0) / eta``."""

    def from_dual(self, V: np.ndarray) -> np.ndarray:
        """An interior point near V."""
        return V.copy()
