"""The hinge loss, also smoothed around a centre: row by row, so that nothing else is stored."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import floats, larger
from fenchel.kernels.simplex import largest, threshold_of, value_of


@helper(fastmath={"nsz", "reassoc"})
def _top(z: np.ndarray) -> float:
    """The largest entry, -inf for none and NaN where there is one."""
    top, unordered = -np.inf, 0.0
    for l in range(z.size):
        top = z[l] if z[l] > top else top
        unordered += 1.0 if z[l] != z[l] else 0.0
    return np.nan if unordered > 0.0 else top


@kernel()
def hinge(Z: np.ndarray, y: np.ndarray, losses: np.ndarray) -> None:
    """``max_l z_l + [l != y] - z_y`` for every row."""
    for i in range(Z.shape[0]):
        true = Z[i, y[i]]
        low, high = _top(Z[i, : y[i]]), _top(Z[i, y[i] + 1 :])
        other = 1.0 + (low if low > high or low != low else high)
        losses[i] = (true if other <= true else other) - true


@helper(fastmath={"nsz", "contract"})
def _raise(z: np.ndarray, v0: np.ndarray, eta: float, out: np.ndarray) -> None:
    for l in range(out.size):
        out[l] = v0[l] + eta * (z[l] + 1.0)


@helper(fastmath={"nsz", "reassoc", "contract"})
def _inner(v: np.ndarray, z: np.ndarray, v0: np.ndarray) -> tuple[float, float]:
    """``<v, z>`` and ``||v - v0||^2``."""
    inner = square = 0.0
    for l in range(v.size):
        inner += v[l] * z[l]
        square += (v[l] - v0[l]) * (v[l] - v0[l])
    return inner, square


@helper(fastmath={"nsz", "reassoc", "contract"})
def _alone(z: np.ndarray, v0: np.ndarray, eta: float, y: int) -> tuple[bool, float]:
    """Whether the true class gets all of the mass, and ``||v0||^2``.

    It does where all others are lower by one or more, which a NaN is not.
    """
    least = v0[y] + eta * z[y] - 1.0
    lower = square = 0.0
    for l in range(z.size):
        lower += 1.0 if v0[l] + eta * (z[l] + 1.0) <= least else 0.0
        square += v0[l] * v0[l]
    return lower == z.size - 1, square


@kernel(error_model="numpy")
def smoothed_hinge(
    V0: np.ndarray,
    Z: np.ndarray,
    eta: float,
    y: np.ndarray,
    times: float,
    V: np.ndarray,
    losses: np.ndarray,
) -> None:
    """``max_v <v - y, z> + 1 - v_y - ||v - v0||^2 / (2 eta)`` on the simplex, and its v.

    That v is the projection of ``v0 + eta (z + 1 - y)``: the label itself in most rows, which one
    pass tells. In the others the search for the threshold begins with the support that V has on
    entry, which is often close (see ``project_rows``).

    The last column stands for so many ``times`` equal ones, none of them the true class if they are
    more than one.
    """
    n, k = Z.shape
    a, above, more = floats(k), floats(k), times - 1.0
    for i in range(n):
        z, v0, v = Z[i], V0[i], V[i]
        alone, square = _alone(z, v0, eta, y[i])
        square += more * v0[-1] * v0[-1]
        if alone:
            for l in range(k):
                v[l] = 0.0
            v[y[i]] = 1.0
            losses[i] = -(square - 2.0 * v0[y[i]] + 1.0) / (2.0 * eta)
            continue
        _raise(z, v0, eta, a)
        a[y[i]] -= eta
        top = largest(a)
        threshold = threshold_of(a, top, larger(-1.0, value_of(a, v, top, times)), times, above)
        for l in range(k):
            new = a[l] - top - threshold
            v[l] = new if new > 0.0 else 0.0
        inner, square = _inner(v, z, v0)
        inner += more * v[-1] * z[-1]
        square += more * (v[-1] - v0[-1]) * (v[-1] - v0[-1])
        losses[i] = inner - z[y[i]] + 1.0 - v[y[i]] - square / (2.0 * eta)
