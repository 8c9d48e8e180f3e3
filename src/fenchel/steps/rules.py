"""Step rules that look at nothing but the iteration number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class StepRule(Protocol):
    """gamma_t for t = 0, 1, ..."""

    def __call__(self, t: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """The same step throughout: a theorem's, or the user's."""

    gamma: float

    def __call__(self, t: int) -> float:
        return self.gamma


@dataclass(frozen=True)
class InverseSqrt:
    """``first / sqrt(t + 1)``, the time-varying step of sec:non-stoch."""

    first: float

    def __call__(self, t: int) -> float:
        return self.first / float(np.sqrt(t + 1))
