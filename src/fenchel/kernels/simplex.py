"""Steps on rows of the probability simplex."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fenchel.kernels.exp import exp_bounded

#: The entropy geometry lives in the relative interior: an entry that would fall below this (its
#: logarithm is -690) is held there, so that it can come back and its logarithm stays finite.
SMALLEST = 1e-300

#: Below this exponent a factor would be smaller than SMALLEST anyway.
LOWEST = -700.0

#: Entries of a row whose largest is looked at before each of them is.
STRIDE = 32


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def _largest(a: np.ndarray, first: int, last: int) -> float:
    top = a[first]
    for l in range(first, last):
        top = a[l] if a[l] > top else top
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def project_rows(A: np.ndarray, out: np.ndarray) -> None:
    """Euclidean projection of each row of A onto the simplex.

    The largest entry is taken off first, which changes nothing but the rounding: among large
    entries the 1 that the row must sum to would be lost. The threshold is the largest
    ``(sum_S a - 1) / |S|`` over all sets S of entries. One pass over the row keeps a set whose
    value grows with every entry that it takes in (Condat 2016); few entries are ever above it.
    Then entries below the threshold leave until none is left (Michelot).
    """
    n, k = A.shape
    above, aside = np.empty(k), np.empty(k)
    for i in range(n):
        top = _largest(A[i], 0, k)
        threshold = -np.inf
        active = waiting = 0
        for first in range(0, k, STRIDE):
            last = min(first + STRIDE, k)
            if not _largest(A[i], first, last) - top > threshold:
                continue
            for l in range(first, last):
                a = A[i, l] - top
                if not a > threshold:
                    continue
                threshold = (active * threshold + a) / (active + 1) if active else a - 1.0
                if threshold <= a - 1.0:  # a alone is worth more than a together with the set
                    for s in range(active):
                        aside[waiting + s] = above[s]
                    waiting += active
                    active = 0
                    threshold = a - 1.0
                above[active] = a
                active += 1
        for s in range(waiting):
            if aside[s] > threshold:
                above[active] = aside[s]
                active += 1
                threshold += (aside[s] - threshold) / active
        while True:
            total = 0.0
            count = 0
            for s in range(active):
                if above[s] > threshold:
                    above[count] = above[s]
                    total += above[s]
                    count += 1
            threshold = (total - 1.0) / count
            if count >= active:
                break
            active = count
        for l in range(k):
            v = A[i, l] - top - threshold
            out[i, l] = v if v > 0.0 else 0.0  # unlike max(), this vectorises


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def multiply_rows(V: np.ndarray, Z: np.ndarray, power: float, eta: float, out: np.ndarray) -> None:
    """``out(i,:)`` proportional to ``V(i,:)^power * exp(eta Z(i,:))``, rows summing to one.

    With power 1 this is UpdatesForVSVM; with another power it is the step of the softmax loss.
    """
    n, k = V.shape
    for i in range(n):
        top = -math.inf
        if power == 1.0:
            for l in range(k):
                top = max(top, Z[i, l])
            for l in range(k):
                out[i, l] = V[i, l] * exp_bounded(max(eta * (Z[i, l] - top), LOWEST))
        else:
            for l in range(k):
                out[i, l] = power * math.log(V[i, l]) + eta * Z[i, l]
                top = max(top, out[i, l])
            for l in range(k):
                out[i, l] = exp_bounded(max(out[i, l] - top, LOWEST))
        total = 0.0
        for l in range(k):
            total += out[i, l]
        scale = 1.0 / total
        for l in range(k):
            out[i, l] = max(out[i, l] * scale, SMALLEST)
