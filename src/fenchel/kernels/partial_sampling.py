"""An iteration of partial sampling in one sweep over U and one over V.

The estimates are rank-one, so no (d, k) or (n, k) gradient is formed. U1 and U2 see opposite
gradients and the same penalty: ``U1 = alpha_i E`` and ``U2 = alpha_i / E`` are kept as one array E
and one scale for each feature, and one exponential serves both. The running sums of the iterates
are part of the same sweep.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel.kernels.entropy import log_positive
from fenchel.kernels.exp import exp_bounded
from fenchel.kernels.simplex import SMALLEST

#: E stays in this range: products of two of its entries neither overflow nor vanish.
LOW, HIGH = 1e-150, 1e150
#: Exponents are cut here: e^680 leads from one bound of the range to the other.
MAX_EXPONENT = 680.0

# Sums may be reordered, or the loops would not vectorise. For the same reason rows are taken as
# slices, and sums and extrema have loops of their own.
options = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "error_model": "numpy",
}


@njit(**options)
def multiply_primal(
    E: np.ndarray,
    S: np.ndarray,
    x: np.ndarray,
    g: np.ndarray,
    c: float,
    weights: np.ndarray,
    mass: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """``S += weights_i (E - 1/E)``, then ``E *= exp(-c x g^T)`` (UpdatesForU before its scaling).

    ``mass_i`` becomes the sum of E + 1/E in row i, ``low_i`` and ``high_i`` its extrema of E.
    """
    d, k = E.shape
    for i in range(d):
        ci, w = c * x[i], weights[i]
        e_row, s_row = E[i], S[i]
        if ci == 0.0:
            for l in range(k):
                s_row[l] += w * (e_row[l] - 1.0 / e_row[l])
            continue
        total, smallest, largest = 0.0, HIGH, LOW
        for l in range(k):
            e = e_row[l]
            new = min(max(e * exp_bounded(-ci * g[l]), LOW), HIGH)
            both = 1.0 / (e * new)  # one division for 1/e and 1/new
            s_row[l] += w * (e - both * new)
            e_row[l] = new
            total += new + both * e
        for l in range(k):
            smallest = min(smallest, e_row[l])
            largest = max(largest, e_row[l])
        mass[i], low[i], high[i] = total, smallest, largest


@njit(**options)
def multiply_dual(
    V: np.ndarray,
    S: np.ndarray,
    x: np.ndarray,
    h: np.ndarray,
    c: float,
    power: float,
    true_factor: float,
    weight: float,
    y: np.ndarray,
) -> None:
    """``S += weight V``, then the dual step along ``x h^T``: rows ~ ``V^power exp(c x_i h)``.

    The hinge loss has power 1 and multiplies the true class by ``true_factor`` (UpdatesForVSVM).
    """
    n, k = V.shape
    for i in range(n):
        ci = c * x[i]
        v, s = V[i], S[i]
        total = 0.0
        # |c x h| <= MAX_EXPONENT and v <= 1: no exponent is out of range, so no maximum is needed
        if power == 1.0:
            true = v[y[i]]
            v[y[i]] = true * true_factor
            s[y[i]] += weight * true * (1.0 - true_factor)  # S gets the iterate before its step
            for l in range(k):
                a = v[l]
                s[l] += weight * a
                a *= exp_bounded(ci * h[l])
                v[l] = a
                total += a
        else:
            for l in range(k):
                a = v[l]
                s[l] += weight * a
                a = exp_bounded(max(power * log_positive(a) + ci * h[l], -700.0))
                v[l] = a
                total += a
        scale = 1.0 / total
        for l in range(k):
            v[l] = max(v[l] * scale, SMALLEST)
