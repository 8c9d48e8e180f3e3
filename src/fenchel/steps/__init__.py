"""Step sizes of mirror descent, one rule a file's worth of lines.

A rule is made once the constants of the problem are known, and then asked for gamma_t.
"""

from __future__ import annotations

import numbers

import numpy as np

from fenchel.steps.online import OnlineStep
from fenchel.steps.rules import Constant, InverseSqrt, StepRule

__all__ = ["Constant", "InverseSqrt", "OnlineStep", "StepRule", "make_step"]


def make_step(step: str | float | None, theory: float, first: float, default: str) -> StepRule:
    """The rule behind a user's ``step``.

    Parameters
    ----------
    step : "theory", "inverse-sqrt", a positive number, or None for ``default``.
    theory : the constant step of the solver's theorem.
    first : the first step of the decreasing rule, gamma_0.
    """
    step = default if step is None else step
    if step == "theory":
        return Constant(theory)
    if step == "inverse-sqrt":
        return InverseSqrt(first)
    if isinstance(step, numbers.Real) and not isinstance(step, bool) and 0 < step < np.inf:
        return Constant(float(step))
    raise ValueError(
        "step must be 'theory', 'inverse-sqrt' or a positive number for this solver, "
        f"found {step!r}."
    )
