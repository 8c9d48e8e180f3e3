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
from fenchel.kernels.exp import exp, exp_bounded
from fenchel.kernels.simplex import SMALLEST

#: E stays in this range: products of two of its entries neither overflow nor vanish.
LOW, HIGH = 1e-150, 1e150
#: Exponents are cut here: e^680 leads from one bound of the range to the other.
MAX_EXPONENT = 680.0

# Sums and extrema may be reordered, or the loops would not vectorise; nothing here is ever nan.
options = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp", "nnan"},
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
        if ci == 0.0:
            for l in range(k):
                S[i, l] += w * (E[i, l] - 1.0 / E[i, l])
            continue
        total, smallest, largest = 0.0, HIGH, LOW
        for l in range(k):
            e = E[i, l]
            new = min(max(e * exp_bounded(-ci * g[l]), LOW), HIGH)
            both = 1.0 / (e * new)  # one division for 1/e and 1/new
            S[i, l] += w * (e - both * new)
            E[i, l] = new
            total += new + both * e
            smallest = min(smallest, new)
            largest = max(largest, new)
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
        if power == 1.0:
            for l in range(k):
                s[l] += weight * v[l]
            if ci != 0.0:
                for l in range(k):
                    v[l] *= exp_bounded(ci * h[l])
            v[y[i]] *= true_factor
            for l in range(k):
                total += v[l]
        else:
            top = -np.inf
            for l in range(k):
                s[l] += weight * v[l]
                v[l] = power * log_positive(v[l]) + ci * h[l]
                top = max(top, v[l])
            for l in range(k):
                v[l] = exp(v[l] - top)
                total += v[l]
        scale = 1.0 / total
        for l in range(k):
            v[l] = max(v[l] * scale, SMALLEST)
