"""What a user gives for a loss: a function and its derivative, looked at before they are used.

A derivative that is another one's understates the loss, and so every gap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.losses.tabulated import NODES

ScalarFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Entries below this are no part of the support, and a derivative may be constant there: who writes
#: an entropy takes ``log(maximum(v, 1e-300))``.
NO_MASS = 1e-30

#: Where the size of a derivative is looked at that may be minus infinity at 0.
SOME = 0.01

#: Roundings that phi and its derivative, as somebody writes them, may be off by.
OFF = 1000 * np.finfo(np.float64).eps


def tabulate(phi: ScalarFunction, derivative: ScalarFunction, is_true: float) -> np.ndarray:
    """phi' at ``NODES``; what is no convex function with its derivative is refused."""
    g = _evaluated("derivative", derivative, is_true)
    value = _evaluated("phi", phi, is_true)
    where = "the true class" if is_true else "a wrong class"
    finite = np.isfinite(value) & np.isfinite(g)
    finite[0] = np.isfinite(value[0]) and g[0] < np.inf  # an entropy rises from 0 vertically
    if not finite.all():
        v = NODES[~finite][0]
        raise ValueError(
            f"phi and derivative must be finite on [0, 1], but for a derivative of minus infinity "
            f"at 0; at v = {v:.3g}, of {where}, they are {value[~finite][0]} and {g[~finite][0]}"
        )
    there = np.flatnonzero(NODES >= NO_MASS)
    _check_derivative(NODES[there], value[there], g[there], where)
    return g


def _check_derivative(v: np.ndarray, value: np.ndarray, g: np.ndarray, where: str) -> None:
    """Refuse a g that decreases, or that is no derivative of what has this value at v."""
    g_rounding = OFF * (np.abs(g[v > SOME]).max() + np.abs(g[1:]))
    falls = np.diff(g) < -g_rounding
    if falls.any():
        c = int(np.argmax(falls))
        raise ValueError(
            f"derivative must not decrease, as phi is convex; from v = {v[c]:.4g} to "
            f"{v[c + 1]:.4g}, of {where}, it goes from {g[c]:.8g} to {g[c + 1]:.8g}"
        )
    length, rise = np.diff(v), np.diff(value)
    slack = OFF * np.abs(value).max() + g_rounding * length
    wrong = (rise < g[:-1] * length - slack) | (rise > g[1:] * length + slack)
    if wrong.any():
        c = int(np.argmax(np.where(wrong, length, 0.0)))
        raise ValueError(
            f"derivative is not that of phi: from v = {v[c]:.4g} to {v[c + 1]:.4g}, of {where}, "
            f"phi rises by {rise[c] / length[c]:.8g} times the way, and the derivative is between "
            f"{g[c]:.8g} and {g[c + 1]:.8g}"
        )


def _evaluated(name: str, function: ScalarFunction, is_true: float) -> np.ndarray:
    """A function of the user at ``NODES``, in a row of a matrix as all its arguments will be."""
    if not callable(function):
        raise TypeError(f"{name} must be a function of two arrays, found {function!r}.")
    v = NODES[None, :]
    true = np.broadcast_to(is_true, v.shape)
    try:
        with np.errstate(all="ignore"):
            found = function(v, true)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{name} must be a function of two arrays, v and is_true, and leave them as they are; "
            f"called with such it failed: {error}"
        ) from error
    kind = np.asarray(found).dtype
    if kind.kind not in "fiub" or isinstance(found, list | tuple):
        raise ValueError(
            f"{name} must make an array of real numbers, found {type(found).__name__} of {kind}."
        )
    if np.shape(found) not in (v.shape, ()):
        raise ValueError(
            f"{name} must act on arrays elementwise; of arrays of shape {v.shape} it makes one "
            f"of shape {np.shape(found)}"
        )
    return np.broadcast_to(np.asarray(found, dtype=np.float64), v.shape)[0]
