"""The quadratic model of a Newton step with an l1 penalty, minimised over a working set.

Over steps s of the entries e = (j, l) of U, with ``D = X s`` on the positions of
:mod:`fenchel.kernels.curvature`::

    <g, s> + 1/2 sum_p weight_p D_p (D_p - mean_i(p)) + 1/2 sum_e damping_e s_e^2
        + sum_e penalty_e |u_e + s_e|,            mean_i = sum_{p in row i} share_p D_p

Coordinate descent finds which entries are non-zero; on that face the model is quadratic and is
minimised by a direct solve when the face is small, by conjugate gradients preconditioned with the
class blocks of the Hessian when it is not.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Class blocks of the preconditioner have at most this many entries.
BLOCK = 256

#: The Hessian of a small working set is formed when that takes at most so many multiplications.
DENSE_SIZE, DENSE_WORK = 700, 1 << 29


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _slope(e, start, position, x, row, weight, D, mean):
    """Entry e of H s, without damping."""
    low, high = start[e], start[e + 1]
    g = 0.0
    if high - low == mean.size:  # every row takes part: no index is needed, and it vectorises
        p = position[low]
        for i in range(mean.size):
            g += x[low + i] * weight[p + i] * (D[p + i] - mean[i])
    else:
        for q in range(low, high):
            p = position[q]
            g += x[q] * weight[p] * (D[p] - mean[row[p]])
    return g


@njit(cache=True, nogil=True)
def _move(e, delta, start, position, x, row, share, D, mean):
    """Keep D and mean up to date when entry e moves by delta."""
    low, high = start[e], start[e + 1]
    if high - low == mean.size:
        p = position[low]
        for i in range(mean.size):
            D[p + i] += x[low + i] * delta
            mean[i] += share[p + i] * x[low + i] * delta
    else:
        for q in range(low, high):
            p = position[q]
            D[p] += x[q] * delta
            mean[row[p]] += share[p] * x[q] * delta


@njit(cache=True, nogil=True)
def _value(g, u, penalty, damping, s, row, weight, D, mean):
    total = 0.0
    for e in range(u.size):
        total += (g[e] + 0.5 * damping[e] * s[e]) * s[e] + penalty[e] * abs(u[e] + s[e])
    for p in range(row.size):
        total += 0.5 * weight[p] * D[p] * (D[p] - mean[row[p]])
    return total


@njit(cache=True, nogil=True)
def _sweep(packed, positions, diagonal, g, u, penalty, damping, s, D, mean):
    """One pass of coordinate descent; returns the largest ``|change| * curvature``."""
    start, position, x = packed
    row, weight, share = positions
    largest = 0.0
    for e in range(u.size):
        a = diagonal[e] + damping[e]
        slope = g[e] + damping[e] * s[e] + _slope(e, start, position, x, row, weight, D, mean)
        old = u[e] + s[e]
        new = old - slope / a
        new = np.sign(new) * max(abs(new) - penalty[e] / a, 0.0)
        if new != old:
            s[e] = new - u[e]
            _move(e, new - old, start, position, x, row, share, D, mean)
            largest = max(largest, abs(new - old) * a)
    return largest


@njit(cache=True, nogil=True)
def _multiply(face, packed, positions, damping, d, D, mean, out):
    """``out = H d`` on the face; D and mean are working space."""
    start, position, x = packed
    row, weight, share = positions
    D[:] = 0.0
    mean[:] = 0.0
    for b in range(face.size):
        _move(face[b], d[b], start, position, x, row, share, D, mean)
    for b in range(face.size):
        e = face[b]
        out[b] = damping[e] * d[b] + _slope(e, start, position, x, row, weight, D, mean)


@njit(cache=True, nogil=True)
def _class_products(members, packed, weight):
    """``M diag(weight) M^T`` for entries of one class, where M holds their packed values of X."""
    start, position, x = packed
    c = members.size
    stored, low, high = 0, weight.size, 0
    for a in range(c):
        e = members[a]
        if start[e + 1] > start[e]:
            stored += start[e + 1] - start[e]
            low = min(low, position[start[e]])
            high = max(high, position[start[e + 1] - 1] + 1)
    if 5 * stored > c * (high - low):
        M = np.zeros((c, max(high - low, 0)))
        for a in range(c):
            for q in range(start[members[a]], start[members[a] + 1]):
                M[a, position[q] - low] = x[q] * np.sqrt(weight[position[q]])
        return M @ M.T
    K = np.empty((c, c))
    column = np.zeros(max(high - low, 0))
    for a in range(c):
        e = members[a]
        for q in range(start[e], start[e + 1]):
            column[position[q] - low] = x[q] * weight[position[q]]
        for b in range(a + 1):
            total = 0.0
            for q in range(start[members[b]], start[members[b] + 1]):
                total += x[q] * column[position[q] - low]
            K[a, b] = total
            K[b, a] = total
        for q in range(start[e], start[e + 1]):
            column[position[q] - low] = 0.0
    return K


@njit(cache=True, nogil=True)
def _class_bounds(klass, longest):
    """Where runs of one class begin and end, cut into pieces of at most ``longest``."""
    bounds = np.zeros(klass.size + 1, np.int64)
    count = 0
    for b in range(1, klass.size + 1):
        if b == klass.size or klass[b] != klass[b - 1] or b - bounds[count] == longest:
            count += 1
            bounds[count] = b
    return bounds[: count + 1]


@njit(cache=True, nogil=True)
def _class_blocks(face, klass, packed, positions, damping):
    """Inverses of the blocks of H that belong to one class, one after the other."""
    _, weight, share = positions
    bounds = _class_bounds(klass[face], BLOCK)
    inverse = np.empty(np.sum(np.diff(bounds) ** 2))
    offset = 0
    curvature = weight * (1.0 - share)
    for t in range(bounds.size - 1):
        members = face[bounds[t] : bounds[t + 1]]
        K = _class_products(members, packed, curvature)
        for a in range(members.size):
            K[a, a] += damping[members[a]]
        inverse[offset : offset + K.size] = np.linalg.inv(K).ravel()
        offset += K.size
    return bounds, inverse


@njit(cache=True, nogil=True)
def _precondition(bounds, inverse, residual, out):
    offset = 0
    for t in range(bounds.size - 1):
        low, high = bounds[t], bounds[t + 1]
        for a in range(low, high):
            total = 0.0
            for b in range(low, high):
                total += inverse[offset + b - low] * residual[b]
            offset += high - low
            out[a] = total


@njit(cache=True, nogil=True)
def _conjugate_gradients(face, klass, packed, positions, damping, residual, D, mean, tol, max_iter):
    """Solve ``H d = residual`` on the face to ``tol`` in the largest entry; residual is lost."""
    m = face.size
    solution = np.zeros(m)
    z = np.empty(m)
    Hd = np.empty(m)
    bounds, inverse = _class_blocks(face, klass, packed, positions, damping)
    _precondition(bounds, inverse, residual, z)
    d = z.copy()
    rz = residual @ z
    n_iter = 0
    while n_iter < max_iter and np.abs(residual).max() > tol:
        _multiply(face, packed, positions, damping, d, D, mean, Hd)
        dHd = d @ Hd
        if dHd <= 0.0:
            break
        solution += (rz / dHd) * d
        residual -= (rz / dHd) * Hd
        _precondition(bounds, inverse, residual, z)
        rz_new = residual @ z
        d = z + (rz_new / rz) * d
        rz = rz_new
        n_iter += 1
    return solution, n_iter


@njit(cache=True, nogil=True)
def _hessian(klass, packed, positions, damping):
    """H as a dense matrix: blocks within the classes, minus one product for the row means."""
    start, position, x = packed
    row, weight, share = positions
    E = klass.size
    number = np.full(row.max() + 1 if row.size else 1, -1, np.int64)
    count = 0
    for p in range(row.size):
        if number[row[p]] < 0:
            number[row[p]] = count
            count += 1
    Q = np.zeros((E, count))
    for e in range(E):
        for q in range(start[e], start[e + 1]):
            p = position[q]
            Q[e, number[row[p]]] = x[q] * np.sqrt(share[p] * weight[p])
    H = -(Q @ Q.T)
    bounds = _class_bounds(klass, E)
    for t in range(bounds.size - 1):
        low, high = bounds[t], bounds[t + 1]
        H[low:high, low:high] += _class_products(np.arange(low, high), packed, weight)
    for e in range(E):
        H[e, e] += damping[e]
    return H


@njit(cache=True, nogil=True)
def _minimise_dense(H, g, u, penalty, tol):
    """Minimise the model with H at hand, where it can be done (nearly) exactly."""
    E = u.size
    s = np.zeros(E)
    slope = g.copy()  # g + H s
    for _ in range(20):
        for _ in range(3):
            largest = 0.0
            for e in range(E):
                old = u[e] + s[e]
                new = old - slope[e] / H[e, e]
                new = np.sign(new) * max(abs(new) - penalty[e] / H[e, e], 0.0)
                if new != old:
                    s[e] = new - u[e]
                    for f in range(E):
                        slope[f] += H[e, f] * (new - old)
                    largest = max(largest, abs(new - old) * H[e, e])
            if largest <= tol:
                return s
        face = np.flatnonzero(u + s)
        if face.size == 0:
            continue
        old = u[face] + s[face]
        H_face = np.empty((face.size, face.size))
        for a in range(face.size):
            for b in range(face.size):
                H_face[a, b] = H[face[a], face[b]]
        d = np.linalg.solve(H_face, -slope[face] - penalty[face] * np.sign(old))
        first = _first_sign_change(old, d)
        before = 0.5 * (s @ (slope + g)) + penalty @ np.abs(u + s)
        for t in (1.0, 0.4, 0.16, first):
            s_new = s.copy()
            for b in range(face.size):
                new = old[b] + t * d[b]
                s_new[face[b]] = (new if new * old[b] > 0.0 else 0.0) - u[face[b]]
            slope_new = g + H @ s_new
            if 0.5 * (s_new @ (slope_new + g)) + penalty @ np.abs(u + s_new) <= before:
                s, slope = s_new, slope_new
                break
    return s


@njit(cache=True, nogil=True)
def _first_sign_change(old, d):
    """The largest t <= 1 up to which no entry of ``old + t d`` changes sign."""
    first = 1.0
    for b in range(old.size):
        if (old[b] + d[b]) * old[b] <= 0.0:
            first = min(first, -old[b] / d[b])
    return first


@njit(cache=True, nogil=True)
def _minimise_packed(klass, packed, positions, g, u, penalty, damping, tol, rounds, sweeps, max_cg):
    """The same minimisation without forming H."""
    start, position, x = packed
    row, weight, share = positions
    E = u.size
    n = row.max() + 1 if row.size else 1
    s = np.zeros(E)
    D, mean = np.zeros(row.size), np.zeros(n)
    D_new, mean_new = np.empty(row.size), np.empty(n)
    diagonal = np.zeros(E)
    for e in range(E):
        for q in range(start[e], start[e + 1]):
            p = position[q]
            diagonal[e] += x[q] * x[q] * weight[p] * (1.0 - share[p])
    n_iter = 0
    for _ in range(rounds):
        for _ in range(sweeps):
            if _sweep(packed, positions, diagonal, g, u, penalty, damping, s, D, mean) <= tol:
                return s, n_iter
        face = np.flatnonzero(u + s)
        m = face.size
        residual = np.empty(m)
        for b in range(m):
            e = face[b]
            slope = g[e] + damping[e] * s[e] + _slope(e, start, position, x, row, weight, D, mean)
            residual[b] = -slope - penalty[e] * np.sign(u[e] + s[e])
        if m == 0 or np.abs(residual).max() <= 0.3 * tol:
            continue
        d, used = _conjugate_gradients(
            face, klass, packed, positions, damping, residual, D_new, mean_new, 0.3 * tol, max_cg
        )
        n_iter += used
        # Entries that would change sign stop at zero. Where that does not lower the model even for
        # shortened steps, go to the first sign change only: up to there the model falls.
        first = _first_sign_change(u[face] + s[face], d)
        before = _value(g, u, penalty, damping, s, row, weight, D, mean)
        for t in (1.0, 0.4, 0.16, first):
            s_new = s.copy()
            D_new[:] = D
            mean_new[:] = mean
            for b in range(m):
                old = u[face[b]] + s[face[b]]
                new = old + t * d[b]
                if new * old <= 0.0:
                    new = 0.0
                s_new[face[b]] = new - u[face[b]]
                _move(face[b], new - old, start, position, x, row, share, D_new, mean_new)
            if _value(g, u, penalty, damping, s_new, row, weight, D_new, mean_new) <= before:
                s[:] = s_new
                D[:] = D_new
                mean[:] = mean_new
                break
    return s, n_iter


@njit(cache=True, nogil=True)
def minimise_model(klass, packed, positions, g, u, penalty, damping, tol, rounds, sweeps, max_cg):
    """Minimise the model to ``tol`` in the subgradient, or as far as the limits allow.

    Returns
    -------
    s : the steps.
    n_iter : conjugate gradient iterations made.
    """
    E, row = u.size, positions[0]
    n = row.max() + 1 if row.size else 1
    if E <= DENSE_SIZE and E * E * min(n, row.size // 2) <= DENSE_WORK:
        H = _hessian(klass, packed, positions, damping)
        return _minimise_dense(H, g, u, penalty, tol), 0
    return _minimise_packed(
        klass, packed, positions, g, u, penalty, damping, tol, rounds, sweeps, max_cg
    )
