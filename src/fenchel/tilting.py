"""The dual point next to a given one, in relative entropy, that satisfies equalities.

With the columns of Q for the free features the equalities are ``Q^T diag(w) (V - Y) = 0``, and the
nearest such V in relative entropy has the form ``V(i,l) exp((Q B)(i,l)) / sum``: what is zero stays
zero, and nothing becomes negative. B minimises the convex::

    phi(B) = sum_i w_i { log sum_l V(i,l) exp((Q B)(i,l)) - (Q B)(i,y_i) }

a softmax regression on the free features alone, whose gradient is what is left of the equalities.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import scipy

from fenchel.losses.base import true_class

Size = float | np.ndarray

#: Newton steps at the most: where scores separate a class some of V goes to zero, by a factor of e
#: at each of them. With fewer than the second number it is not tried.
STEPS, LEAST_STEPS = 200, 4

#: What may be left of the equalities, and where there is nothing left to gain.
ENOUGH, ROUNDING = 3e-13, 1e-15

#: No step is longer than this in an exponent, and none is given up before it is shorter than this.
LONGEST, SHORTEST = 300.0, 1e-3

#: What is added to the diagonal of a Hessian, in parts of its largest entry, until it has factors.
RIDGES = 1e-13, 1e-11, 1e-9, 1e-7

#: Rows of the Hessian: with more it is not tried.
MOST_ROWS = 2000

#: Rows of V are handled so many numbers at a time.
CHUNK = 1 << 21


def tilted(
    V: np.ndarray, Q: np.ndarray, w: np.ndarray, y: np.ndarray, work: int, sizes: Size = 1.0
) -> np.ndarray | None:
    """The V described above; None where none is found, or where it would take too long.

    Parameters
    ----------
    V : (n, k) array
        With rows in the simplex. Not changed.
    Q : (n, r) array
        With ``Q^T diag(w) Q = I``.
    w, y : (n,) arrays
        The weights, and the true classes.
    work : int
        The multiplications that it may take.
    sizes : (r, 1) array
        What is left of an equality counts so many times: of features that are nearly the same, the
        difference is a column of Q like others, and mostly rounding.
    """
    k, r = V.shape[1], Q.shape[1]
    open_ = (V > 0.0).sum(axis=1) > 1  # no other row can change
    steps = min(STEPS, work // max(1, int(open_.sum()) * (k * r) ** 2))
    if k * r > MOST_ROWS or steps < LEAST_STEPS:
        return None
    rest = residual(V[~open_], Q[~open_], w[~open_], y[~open_])
    W, Q, w, y = V[open_], Q[open_], w[open_], y[open_]
    left = np.inf
    for _ in range(steps):
        gradient = rest + residual(W, Q, w, y)
        each = np.abs(sizes * gradient).max(axis=1, initial=0.0)
        before, left = left, float(each.max(initial=0.0))
        if left <= ROUNDING or (left <= ENOUGH and left > 0.5 * before):
            break
        step, some = np.zeros_like(gradient), each > ROUNDING
        step[some] = _newton(W, Q[:, some], w, gradient[some])
        if not np.isfinite(step).all():
            break
        slopes = float((rest * step).sum()), float((gradient * step).sum())
        found = _along(W, Q @ step, w, y, *slopes)
        if found is None:
            break
        W = found
    if left > ENOUGH:
        return None
    out = np.array(V)
    out[open_] = W
    return out


def residual(V: np.ndarray, Q: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``Q^T diag(w) (V - Y)``, (r, k)."""
    D = w[:, None] * V
    D[np.arange(y.size), y] -= w
    return Q.T @ D


def _newton(V: np.ndarray, Q: np.ndarray, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step: the Hessian has the blocks ``Q^T diag(w (V_l [l=m] - V_l V_m)) Q``.

    On the diagonal 1 - V_l is the sum of the others, which next to a corner is no difference.
    """
    rest = 1.0 - V
    largest = np.arange(V.shape[0]), V.argmax(axis=1)
    others = V.copy()
    others[largest] = 0.0
    rest[largest] = others.sum(axis=1)
    (r, k), n = gradient.shape, V.shape[0]
    H, diagonal = np.zeros((k * r, k * r)), np.zeros((k, r, r))
    rows = max(1, CHUNK // (k * r))
    for i in range(0, n, rows):
        part = slice(i, i + rows)
        root = np.sqrt(w[part])[:, None] * Q[part]
        K = (V[part, :, None] * root[:, None, :]).reshape(-1, k * r)
        H -= K.T @ K
        for l in range(k):
            diagonal[l] += (root * (V[part, l] * rest[part, l])[:, None]).T @ root
    for l in range(k):
        H[l * r : (l + 1) * r, l * r : (l + 1) * r] = diagonal[l]
    scale = float(H.diagonal().max())
    for ridge in RIDGES:  # H has no inverse: constant scores, and closed entries, change nothing
        H.flat[:: k * r + 1] += ridge * scale
        with suppress(np.linalg.LinAlgError):
            factor = scipy.linalg.cho_factor(H, lower=True, check_finite=False)
            return -scipy.linalg.cho_solve(factor, gradient.T.ravel()).reshape(k, r).T
    return -gradient


def _along(
    V: np.ndarray, S: np.ndarray, w: np.ndarray, y: np.ndarray, rest: float, slope: float
) -> np.ndarray | None:
    """V tilted by a part of the scores S for which phi falls; None where none is found.

    ``rest`` is the slope of what the other rows add to phi, ``slope`` that of all of phi.
    """
    S = S - (V * S).sum(axis=1, keepdims=True)  # no longer than it has to be
    true, S = true_class(S, y), np.where(V > 0.0, S, 0.0)
    longest = float(np.abs(S).max(initial=0.0))
    t = min(1.0, LONGEST / longest) if longest > 0.0 else 1.0
    while t * max(longest, 1.0) >= SHORTEST:
        W = V * np.exp(t * S)
        sums = W.sum(axis=1)
        phi = float(w @ (np.log(sums) - t * true)) + t * rest
        if phi <= 1e-4 * t * slope + ROUNDING:
            return W / sums[:, None]
        t *= 0.5
    return None
