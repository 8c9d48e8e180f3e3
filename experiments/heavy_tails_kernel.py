"""Mirror descent for the hinge loss with exact or sampled products, and any change to the laws.

Written plainly for small problems: it is what lets ``heavy_tails.py`` run hundreds of experiments.
tests/test_experiments_theory.py compares it with the solvers of the package.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EXACT, PARTIAL, FULL = 0, 1, 2

#: Multiplicative steps cannot leave zero.
SMALLEST = 1e-290


@njit(cache=True)
def smd_iterations(
    X, y, k, w, margins, penalties, R, columns, rows, rate_U, rate_V, T, scheme, mix, cap, rng
):  # type: ignore[no-untyped-def]
    """The averages of U^0 .. U^{T-1} and V^0 .. V^{T-1} of (MD) or (SMD).

    ``columns`` are the root mean squares of the features, ``rows`` the largest entries of the
    samples, ``margins`` those of the hinge loss. Both estimates are made at the same (U, V).
    """
    n, d = X.shape
    U = np.full((2 * d, k), R / (2 * d * k))
    V = np.full((n, k), 1.0 / k)
    U_sum, V_sum = np.zeros((d, k)), np.zeros((n, k))
    S, Z, W = np.zeros((d, k)), np.zeros((n, k)), np.zeros((n, k))
    w_rows, both_columns = w * rows, np.concatenate((columns, columns))
    law_U, law_V = np.zeros((2 * d, k)), np.zeros((n, k))
    for _ in range(T):
        U_sum += U[:d] - U[d:]
        V_sum += V
        W[:] = V
        for j in range(n):
            W[j, y[j]] -= 1.0
        if scheme == EXACT:
            S[:] = X.T @ (W * w.reshape(-1, 1))
            Z[:] = X @ (U[:d] - U[d:])
        else:
            fill_law(law_V, W, w_rows, scheme, mix, cap)
            j, drawn = draw(law_V, rng)
            for l in range(k):
                c = w[j] * W[j, l] / law_V[j, drawn] if scheme == PARTIAL or l == drawn else 0.0
                for i in range(d):
                    S[i, l] = c * X[j, i]
            fill_law(law_U, U, both_columns, scheme, mix, cap)
            i, drawn = draw(law_U, rng)
            sign = 1.0 if i < d else -1.0
            for l in range(k):
                c = sign * U[i, l] / law_U[i, drawn] if scheme == PARTIAL or l == drawn else 0.0
                for j in range(n):
                    Z[j, l] = c * X[j, i % d]
        # UpdatesForU: the Hessian of the potential is R / U
        total = 0.0
        for i in range(d):
            shrink = np.exp(-rate_U / R * penalties[i])
            for l in range(k):
                grow = np.exp(min(50.0, max(-50.0, -rate_U / R * S[i, l])))
                U[i, l] = max(SMALLEST, U[i, l] * grow * shrink)
                U[d + i, l] = max(SMALLEST, U[d + i, l] / grow * shrink)
                total += U[i, l] + U[d + i, l]
        if total > R:
            U *= R / total
        # UpdatesForVSVM
        for j in range(n):
            largest = -np.inf
            for l in range(k):
                if l != y[j]:
                    Z[j, l] += margins[j]
                largest = max(largest, Z[j, l])
            total = 0.0
            for l in range(k):
                factor = np.exp(max(-500.0, rate_V * (Z[j, l] - largest)))
                V[j, l] = max(SMALLEST, V[j, l] * factor)
                total += V[j, l]
            for l in range(k):
                V[j, l] /= total
    return U_sum / T, V_sum / T


@njit(cache=True)
def fill_law(law, A, sizes, scheme, mix, cap):  # type: ignore[no-untyped-def]
    """Probabilities ~ sizes_i |A_il| (full), or ~ sizes_i max_l |A_il| in the first column."""
    n, k = law.shape
    used = k if scheme == FULL else 1
    total = 0.0
    for i in range(n):
        largest = 0.0
        for l in range(k):
            size = abs(A[i, l])
            largest = max(largest, size)
            law[i, l] = sizes[i] * size if scheme == FULL else 0.0
            total += law[i, l]
        if scheme == PARTIAL:
            law[i, 0] = sizes[i] * largest
            total += law[i, 0]
    clipped = 0.0
    for i in range(n):
        for l in range(used):
            mixed = (1.0 - mix) * law[i, l] / total + mix / (n * used)
            law[i, l] = min(cap / (n * used), mixed)
            clipped += law[i, l]
    for i in range(n):
        for l in range(used):
            law[i, l] /= clipped


@njit(cache=True)
def draw(law, rng):  # type: ignore[no-untyped-def]
    """A position drawn from the law."""
    left = rng.random()
    last = (0, 0)
    for i in range(law.shape[0]):
        for l in range(law.shape[1]):
            if law[i, l] > 0.0:
                last = (i, l)
                left -= law[i, l]
                if left < 0.0:
                    return last
    return last
