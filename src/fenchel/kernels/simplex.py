"""Steps on rows of the probability simplex."""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.exp import exp_bounded
from fenchel.kernels.primitives import floats, larger

#: The entropy geometry lives in the relative interior: an entry that would fall below this (its
#: logarithm is -690) is held there, so that it can come back and its logarithm stays finite.
SMALLEST = 1e-300

#: Below this exponent a factor would be smaller than SMALLEST anyway.
LOWEST = -700.0

#: Entries of a row whose largest is looked at before each of them is.
STRIDE = 32


@helper(fastmath={"nnan", "nsz", "reassoc"})
def largest(a: np.ndarray) -> float:
    """The largest entry."""
    top = a[0]
    for l in range(a.size):  # from 0: numba does not vectorise where an index might be negative
        top = a[l] if a[l] > top else top
    return top


@helper(fastmath={"nsz", "reassoc"})
def value_of(a: np.ndarray, members: np.ndarray, top: float, times: float) -> float:
    """``(sum_S (a - top) - 1) / |S|`` for the S where ``members`` is positive.

    The last entry counts so many ``times``.
    """
    total = count = 0.0
    for l in range(a.size):
        total += a[l] - top if members[l] > 0.0 else 0.0
        count += 1.0 if members[l] > 0.0 else 0.0
    if times > 1.0 and members[-1] > 0.0:
        total += (times - 1.0) * (a[-1] - top)
        count += times - 1.0
    return (total - 1.0) / count if count > 0.0 else -1.0


@helper(error_model="numpy")
def threshold_of(a: np.ndarray, top: float, least: float, times: float, space: np.ndarray) -> float:
    """The threshold of the projection of ``a - top`` onto the simplex, known to be >= ``least``.

    The last entry stands for so many ``times`` equal ones.

    It is the largest ``(sum_S (a - top) - 1) / |S|`` over all sets S of entries, and so no smaller
    than the value of any set. Few entries are above ``least``; then those below their value leave
    until none does (Michelot).
    """
    threshold, count = least, 0
    for first in range(0, a.size, STRIDE):
        some = a[first : first + STRIDE]
        if largest(some) - top > threshold:
            for l in range(some.size):
                if some[l] - top > threshold:
                    space[count] = some[l] - top
                    count += 1
    active, last = count + 1, a[-1] - top
    while count < active:
        active, count = count, 0
        more = times - 1.0 if times > 1.0 and last > threshold else 0.0
        total = more * last if more > 0.0 else 0.0
        for s in range(active):
            total += space[s]
        threshold = (total - 1.0) / (active + more)
        for s in range(active):
            if space[s] > threshold:
                space[count] = space[s]
                count += 1
    return threshold


@helper(error_model="numpy", inline="always")
def project_row(a: np.ndarray, guess: np.ndarray, space: np.ndarray, out: np.ndarray) -> None:
    """Euclidean projection of ``a`` onto the simplex, with the positive entries of ``guess``."""
    top = largest(a)
    least = larger(-1.0, value_of(a, guess, top, 1.0)) if guess.size > 0 else -1.0
    threshold = threshold_of(a, top, least, 1.0, space)
    for l in range(a.size):
        v = a[l] - top - threshold
        out[l] = v if v > 0.0 else 0.0  # unlike max(), this vectorises


@kernel(error_model="numpy")
def project_rows(A: np.ndarray, guess: np.ndarray, out: np.ndarray) -> None:
    """Euclidean projection of each row of A onto the simplex.

    The largest entry is taken off first, which changes nothing but the rounding: among large
    entries the 1 that the row must sum to would be lost. The search for the threshold begins with
    the value of the largest entry alone, -1, or of the positive entries of ``guess``, which is
    often close. ``guess`` may have no rows.
    """
    n, k = A.shape
    above, nothing = floats(k), floats(0)
    for i in range(n):
        project_row(A[i], guess[i] if guess.shape[0] > 0 else nothing, above, out[i])


@kernel(error_model="numpy")
def project_margins(
    V0: np.ndarray, Z: np.ndarray, eta: float, y: np.ndarray, out: np.ndarray
) -> None:
    """The projection of each row of ``V0 + eta (Z + 1 - Y)``, which is in memory row by row."""
    n, k = V0.shape
    a, above = floats(k), floats(k)
    for i in range(n):
        v0, z = V0[i], Z[i]
        for l in range(k):
            a[l] = v0[l] + eta * (z[l] + 1.0)
        a[y[i]] = v0[y[i]] + eta * z[y[i]]
        project_row(a, v0, above, out[i])


@kernel(fastmath={"contract", "reassoc"}, error_model="numpy")
def multiply_rows(V: np.ndarray, Z: np.ndarray, power: float, eta: float, out: np.ndarray) -> None:
    """``out(i,:)`` proportional to ``V(i,:)^power * exp(eta Z(i,:))``, rows summing to one.

    With power 1 this is UpdatesForVSVM; with another power it is the step of the softmax loss.
    """
    n, k = V.shape
    for i in range(n):
        top = -math.inf
        if power == 1.0:
            for l in range(k):
                top = larger(top, Z[i, l])
            for l in range(k):
                out[i, l] = V[i, l] * exp_bounded(larger(eta * (Z[i, l] - top), LOWEST))
        else:
            for l in range(k):
                out[i, l] = power * math.log(V[i, l]) + eta * Z[i, l]
                top = larger(top, out[i, l])
            for l in range(k):
                out[i, l] = exp_bounded(larger(out[i, l] - top, LOWEST))
        total = 0.0
        for l in range(k):
            total += out[i, l]
        scale = 1.0 / total
        for l in range(k):
            out[i, l] = larger(out[i, l] * scale, SMALLEST)
