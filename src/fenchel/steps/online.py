"""A step for sampled gradients that is measured while the run goes on.

The theory step guards against the worst gradients of the whole feasible set, and against each of
them at every iteration. What a sampled gradient really costs is seen in its local norm at the
iterate at hand: an estimate with one column changes one class, which holds a small part of the mass
of U and V. That is some hundreds of times less, and it can be measured from a few draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: No draw may move an iterate by more than this part of the radius (for the entropy geometries:
#: this is the largest exponent of a multiplicative step). Beyond 1 the local norm means nothing. It
#: was chosen on the problem of Figure 1, where runs fall apart between 0.54 and 1.1.
LONGEST = 0.4

#: The first epoch; each epoch ends at twice the iteration at which the one before it ended.
FIRST_EPOCH = 1024

#: Draws from which an epoch's moments are estimated.
DRAWS = 32


@dataclass(frozen=True)
class Moments:
    """Sizes of the sampled gradients at a point, means over some draws.

    Attributes
    ----------
    primal_size, dual_size : how far a draw moves U, relative to the radius, and the row of V that
        it moves furthest, with a rate of one.
    primal_square, dual_square : ``local_square`` of eta at U and of xi at V.
    """

    primal_size: float
    dual_size: float
    primal_square: float
    dual_square: float


class OnlineStep:
    """Rates of U and V that are constant within an epoch, and never grow.

    The rates are ``omega / size``, so that U and V move equally far in one draw, and stay in that
    proportion. With a rate r, T iterations cost at most ``Omega / r + r T square / 2`` on either
    side. ``omega`` minimises the sum of the two at the end of the epoch, and is at most LONGEST.

    Averages have to weigh an iterate by the ``omega`` it was made with.
    """

    def __init__(self, omega_U: float, omega_V: float) -> None:
        self.omega_U, self.omega_V = omega_U, omega_V
        self.scales: tuple[float, float] | None = None
        self.omega = LONGEST
        self.epoch_end = 0

    def due(self, t: int) -> bool:
        """True where iteration t begins an epoch, so that :meth:`measure` is to be called."""
        return t >= self.epoch_end

    def measure(self, moments: Moments) -> None:
        """Set the rates of the epoch to come."""
        self.epoch_end = max(FIRST_EPOCH, 2 * self.epoch_end)
        if self.scales is None:
            self.scales = (_inverse(moments.primal_size), _inverse(moments.dual_size))
        a, b = self.scales
        distance = self.omega_U / a + self.omega_V / b
        noise = 0.5 * self.epoch_end * (a * moments.primal_square + b * moments.dual_square)
        if noise > 0.0:
            self.omega = min(self.omega, float(np.sqrt(distance / noise)))

    def save(self) -> np.ndarray:
        """All that changes, as numbers; :meth:`restore` reads it."""
        return np.array([self.omega, self.epoch_end, *(self.scales or (np.nan, np.nan))])

    def restore(self, numbers: np.ndarray) -> None:
        """Go on where :meth:`save` was called."""
        self.omega, self.epoch_end = float(numbers[0]), int(numbers[1])
        self.scales = None if np.isnan(numbers[2]) else (float(numbers[2]), float(numbers[3]))

    @property
    def rates(self) -> tuple[float, float]:
        """The rates of the steps of U and of V."""
        assert self.scales is not None
        return self.omega * self.scales[0], self.omega * self.scales[1]


def _inverse(size: float) -> float:
    return 1.0 / size if size > 0.0 else 1.0
