"""An iteration of partial sampling in one sweep over U and one over V.

The estimates are rank-one, so no (d, k) or (n, k) gradient is formed. U1 and U2 see opposite
gradients and the same penalty: ``U1 = alpha_i E`` and ``U2 = alpha_i / E`` are kept as one array E
and one scale for each feature, and one exponential serves both. The running sums of the iterates
are part of the same sweep.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fenchel.kernels.exp import SMALL, exp, exp_bounded, exp_multiples, exp_small
from fenchel.kernels.simplex import SMALLEST

#: E stays in this range: products of two of its entries neither overflow nor vanish.
LOW, HIGH = 1e-150, 1e150
#: Exponents are cut here: e^680 leads from one bound of the range to the other.
MAX_EXPONENT = 680.0
LOG_SMALLEST = math.log(SMALLEST)

# Sums may be reordered, or the loops would not vectorise. For the same reason rows are taken as
# slices, and extrema have loops of their own, in functions that promise that there is no nan.
options = {
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "error_model": "numpy",
}


@njit(cache=True, nogil=True, fastmath=True)
def extrema(a):
    """The least and the largest entry."""
    least, largest = a[0], a[0]
    for l in range(a.size):
        least = min(least, a[l])
        largest = max(largest, a[l])
    return least, largest


@njit(**options)
def largest_entry(a):
    """The largest absolute entry."""
    least, largest = extrema(a)
    return max(-least, largest)


@njit(**options)
def split(g, c, x):
    """g without its few entries whose exponents ``c x_i g_l`` may be large, and where those are.

    Most classes of a row of V - Y or of U have little mass, and a short polynomial does for them.
    """
    bound, few = SMALL / max(abs(c) * largest_entry(x), 1e-300), max(1, g.size // 16)
    rest, where = g.copy(), np.flatnonzero(np.abs(g) > bound)
    if where.size > few:
        where = where[:0]
    rest[where] = 0.0
    return rest, where, largest_entry(rest)


@njit(**options)
def exponentials(c, g, rest, where, largest, out):
    """out_l = e^(c g_l)."""
    exp_multiples(c, rest, largest, out)
    for p in range(where.size):
        out[where[p]] = exp_bounded(c * g[where[p]])


@njit(**options)
def draw_sample(w_tau, true, law, u):
    """j ~ weight tau max_l |V - Y|(j,l), which is 1 - V(j, y_j), or -1; and the total."""
    for j in range(law.size):
        law[j] = w_tau[j] * max(1.0 - true[j], 0.0)
    # not in the loop above, which is vectorised only where the arrays lie 128 bytes apart: with few
    # samples the order of the sum, and so its last bit, would depend on where they lie
    total = 0.0
    for j in range(law.size):
        total += law[j]
    return find(law, u * total), total


@njit(**options)
def draw_feature(sigma, alpha, low, high, law, u):
    """i ~ sigma max_l [U1; U2](i,l), or -1; and the total."""
    d, total = sigma.size, 0.0
    for i in range(d):
        scale = sigma[i] * alpha[i]
        law[i], law[d + i] = scale * high[i], scale / low[i]
        total += law[i] + law[d + i]
    return find(law, u * total), total


@njit(**options)
def find(law, target):
    """Where the running sum of the law passes ``target``; -1 where the law is zero throughout."""
    last = -1
    for i in range(law.size):
        if law[i] > 0.0:
            last = i
            if target < law[i]:
                break
            target -= law[i]
    return last


@njit(**options)
def scale_primal(alpha, mass, penalties, rate, radius):
    """The rest of UpdatesForU: the penalty, and the ball."""
    total = 0.0
    for i in range(alpha.size):
        alpha[i] = max(alpha[i] * exp(-rate * penalties[i]), LOW)
        total += alpha[i] * mass[i]
    if total > radius:
        alpha *= radius / total


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
    ratio = np.empty(k)
    rest, where, rest_max = split(g, c, x)
    for i in range(d):
        ci, w = c * x[i], weights[i]
        e_row, s_row = E[i], S[i]
        if ci == 0.0:
            for l in range(k):
                s_row[l] += w * (e_row[l] - 1.0 / e_row[l])
            continue
        total = 0.0
        exponentials(-ci, g, rest, where, rest_max, ratio)
        for l in range(k):
            e = e_row[l]
            new = min(max(e * ratio[l], LOW), HIGH)
            both = 1.0 / (e * new)  # one division for 1/e and 1/new
            s_row[l] += w * (e - both * new)
            e_row[l] = new
            total += new + both * e
        mass[i] = total
        low[i], high[i] = extrema(e_row)


@njit(**options)
def multiply_dual(
    V: np.ndarray,
    S: np.ndarray,
    x: np.ndarray,
    h: np.ndarray,
    c: float,
    true_factor: float,
    weight: float,
    y: np.ndarray,
    v_true: np.ndarray,
) -> None:
    """``S += weight V``, then the dual step along ``x h^T``: rows ~ ``V exp(c x_i h)``, where the
    hinge loss multiplies the true class by ``true_factor`` (UpdatesForVSVM).

    ``v_true`` becomes the V(j, y_j).
    """
    n, k = V.shape
    ratio = np.empty(k)
    rest, where, rest_max = split(h, c, x)
    for i in range(n):
        v, s = V[i], S[i]
        true = v[y[i]]
        v[y[i]] = true * true_factor
        s[y[i]] += weight * true * (1.0 - true_factor)  # S gets the iterate before its step
        # |c x h| <= MAX_EXPONENT and v <= 1: no exponent is out of range, so no maximum is needed
        exponentials(c * x[i], h, rest, where, rest_max, ratio)
        total = 0.0
        for l in range(k):
            a = v[l]
            s[l] += weight * a
            a *= ratio[l]
            v[l] = a
            total += a
        scale = 1.0 / total
        for l in range(k):
            v[l] = max(v[l] * scale, SMALLEST)
        v_true[i] = v[y[i]]


@njit(**options)
def multiply_dual_power(
    V: np.ndarray,
    log_V: np.ndarray,
    S: np.ndarray,
    x: np.ndarray,
    h: np.ndarray,
    c: float,
    power: float,
    weight: float,
    y: np.ndarray,
    v_true: np.ndarray,
) -> None:
    """The same for the softmax loss: rows ~ ``V^power exp(c x_i h)``.

    The logarithms of V are kept beside it, so that none is taken, and a short polynomial does
    where the step is short: ``V^power = V exp((power - 1) log V)``.
    """
    n, k = V.shape
    h_max = largest_entry(h)
    for i in range(n):
        ci = c * x[i]
        v, log_v, s = V[i], log_V[i], S[i]
        least, _ = extrema(log_v)
        total = 0.0
        if (power - 1.0) * least + abs(ci) * h_max <= SMALL:
            for l in range(k):
                a, logarithm = v[l], log_v[l]
                s[l] += weight * a
                change = (power - 1.0) * logarithm + ci * h[l]
                log_v[l] = logarithm + change
                a *= exp_small(change)
                v[l] = a
                total += a
        else:
            for l in range(k):
                s[l] += weight * v[l]
                logarithm = max(power * log_v[l] + ci * h[l], -700.0)
                log_v[l] = logarithm
                a = exp_bounded(logarithm)
                v[l] = a
                total += a
        scale, shift = 1.0 / total, math.log(total)
        for l in range(k):
            v[l] = max(v[l] * scale, SMALLEST)
            log_v[l] = max(log_v[l] - shift, LOG_SMALLEST)
        v_true[i] = v[y[i]]
