"""The sparsemax loss, row by row: the projection and its value in one pass."""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.primitives import floats, larger
from fenchel.kernels.simplex import largest, threshold_of, value_of


@helper(fastmath={"nsz", "reassoc", "contract"})
def _inner(v: np.ndarray, z: np.ndarray) -> float:
    """``<v, z> - ||v||^2 / 2``."""
    inner = square = 0.0
    for l in range(v.size):
        inner += v[l] * z[l]
        square += v[l] * v[l]
    return inner - 0.5 * square


@kernel(error_model="numpy")
def sparsemax(Z: np.ndarray, y: np.ndarray, V: np.ndarray, losses: np.ndarray) -> None:
    """``max_v <v - y, z> - (||v||^2 - 1) / 2`` on the simplex, and its v: the projection of z.

    The search for the threshold begins with the support that V has on entry, which is often close.
    """
    n, k = Z.shape
    above = floats(k)
    for i in range(n):
        z, v = Z[i], V[i]
        top = largest(z)
        threshold = threshold_of(z, top, larger(-1.0, value_of(z, v, top, 1.0)), 1.0, above)
        for l in range(k):
            new = z[l] - top - threshold
            v[l] = new if new > 0.0 else 0.0
        losses[i] = _inner(v, z) - z[y[i]] + 0.5
