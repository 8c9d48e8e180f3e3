"""The settings of the paper's experiments: as printed, and as its authors' program has them.

==================  ======================================  =====================================
what                paper                                   authors
==================  ======================================  =====================================
labels              argmax of x U0 + N(0,1)/sqrt(d),        the same, U0 = I/2 and N(0,1)/sqrt(k)
                    U0 = I
radius R            ||U0||_1 = n                            Figure 1: n/2; Table 1: n
lam                 1e-3                                    Figure 1: 1/n = 1e-3; Table 1: 0
T of Full-SMD       10^(m/2), m = 1 .. 12                   10^(m/2), m = 2 .. 13
step of Full-SMD    eq:md-stochastic-step                   2 / (sqrt(T) (Lip + sqrt(Theta))),
                                                            without logarithms; Table 1: half of it
step of SSM         ||U0||_F / (G sqrt(T)),                 the same with G^2 = mean ||x||^2;
                    G^2 = 2 mean ||x||^2; average           last iterate, no ball
step of Mirror      1 / (2 L sqrt(Omega_U Omega_V))         1 / (L R), without logarithms
Prox
==================  ======================================  =====================================

Mirror Prox: the paper names the step of th:md-deterministic, which falls with the number of
iterations and would undo the O(1/T) that the paper shows; the constant one is the step of its
analysis. Of the authors' program two things are not repeated: it draws from another, less efficient
law than the paper's, and the soft-thresholding of its SSM has no max(0, .).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel.datasets import make_paper
from fenchel.problem import Problem


@dataclass(frozen=True)
class Setting:
    """One instance: the problem inside the ball, and the numbers that steps are made of.

    Attributes
    ----------
    ball : the problem with ``||U||_1 <= R``; ``penalised`` is the same without the ball.
    frobenius : ``||U0||_F``, the distance that the step of SSM counts on.
    """

    ball: Problem
    frobenius: float

    @cached_property
    def penalised(self) -> Problem:
        return self.ball.with_radius(None)

    @cached_property
    def columns(self) -> np.ndarray:
        """``||X(:,i)||_2 / sqrt(n)`` for every feature."""
        return self.ball.design.column_norms(self.ball.weights)

    @property
    def mean_square(self) -> float:
        """The mean of ``||x||_2^2``."""
        return float((self.columns**2).sum())

    @property
    def lipschitz(self) -> float:
        """``L sqrt(Omega_U Omega_V)`` without the logarithms: R times the largest column norm."""
        return self.radius * float(self.columns.max())

    @property
    def radius(self) -> float:
        return self.ball.radius_bound()

    def authors_step(self, iterations: int) -> float:
        """The step of Full-SMD in the authors' program, for Figure 1.

        Their Theta has the sum of the largest entries of the rows where eq:variance-bounds-partial
        has its square divided by n.
        """
        n = self.ball.n
        largest = float(self.columns.max())
        mean = float(self.ball.weights @ self.ball.design.row_max_abs())
        theta = 2.0 * self.radius**2 * (6.0 * largest**2 / n + 2.0 * mean)
        return 2.0 / (np.sqrt(iterations) * (self.lipschitz + np.sqrt(theta)))


@dataclass(frozen=True)
class Configuration:
    """One of the two columns of the table above."""

    name: str
    exponents: range  # the numbers of iterations of Figure 1 are 10^(m/2) for m in it
    table_lam: float
    repetitions: int = 10

    def figure1(self, size: int, seed: int) -> Setting:
        """n = d = k = size, and lam = 1/size: 1e-3 at the size of the paper."""
        data = make_paper(size, variant=self.name, rng=seed)
        problem = Problem.from_data(
            data.X, data.y, lam=1.0 / size, radius=data.radius, classes=data.classes
        )
        return Setting(problem, data.radius / np.sqrt(size))

    def table1(self, size: int, seed: int) -> Setting:
        """The same with the radius and the penalty of Table 1."""
        setting = self.figure1(size, seed)
        ball = replace(setting.ball, lam=self.table_lam, radius=float(size))
        return replace(setting, ball=ball)

    @property
    def iterations(self) -> list[int]:
        """The numbers of iterations of Full-SMD, rounded down."""
        return [int(10 ** (m / 2)) for m in self.exponents]


CONFIGURATIONS = {
    "paper": Configuration("paper", range(1, 13), table_lam=1e-3),
    "authors": Configuration("authors", range(2, 14), table_lam=0.0),
}
