"""The compiled loops of :class:`fenchel.solvers.class_quadratic.ClassQuadratic`: dense data.

Entries e = (j, l) are sorted by class; those between ``bounds[t]`` and ``bounds[t + 1]`` are of the
t-th. Row t of W, S, D and R is that class in all samples: ``W = weights_i h_il``,
``S = h_il / sum_m h_im``, ``D = X s``, ``R = W (D - mean)``, and ``mean_i = sum_t S_ti D_ti``. The
block K of the class, ``M diag(W_t (1 - S_t)) M^T`` with the features of its entries for the rows of
M, is stored from ``offset[t]`` on.

A face is a sorted choice of the entries, and ``parts`` are the bounds of its classes.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.block_factors import factorise, precondition
from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.l1_newton import shrunk
from fenchel.kernels.primitives import floats, larger, square, zeros


@helper(fastmath={"reassoc", "contract", "nsz"})
def _add_columns(Xt, feature, values, out):
    """``out += sum_a values_a Xt[feature_a]``, two at a time: what is written is written once."""
    last = values.size - 1
    for a in range(0, last, 2):
        x, z, p, q = Xt[feature[a]], Xt[feature[a + 1]], values[a], values[a + 1]
        for i in range(out.size):
            out[i] += p * x[i] + q * z[i]
    if last % 2 == 0:
        x, p = Xt[feature[last]], values[last]
        for i in range(out.size):
            out[i] += p * x[i]


@helper(fastmath={"reassoc", "contract", "nsz"})
def _products(Xt, feature, r, out):
    """``out_a = <Xt[feature_a], r>``, two at a time: what is read is used twice."""
    last = out.size - 1
    for a in range(0, last, 2):
        x, z, p, q = Xt[feature[a]], Xt[feature[a + 1]], 0.0, 0.0
        for i in range(r.size):
            p += x[i] * r[i]
            q += z[i] * r[i]
        out[a], out[a + 1] = p, q
    if last % 2 == 0:
        x, p = Xt[feature[last]], 0.0
        for i in range(r.size):
            p += x[i] * r[i]
        out[last] = p


@helper(fastmath={"contract", "nsz"})
def _move(Xt, feature, change, part, r, row, mean):
    """Bring a row of D, and mean, up to date when entries of the class move; r is working space."""
    for i in range(r.size):
        r[i] = 0.0
    _add_columns(Xt, feature, change, r)
    for i in range(r.size):
        row[i] += r[i]
        mean[i] += part[i] * r[i]


@helper(fastmath={"contract", "nsz"})
def _curved(w, row, mean, out):
    """``out = w (row - mean)``."""
    for i in range(out.size):
        out[i] = w[i] * (row[i] - mean[i])


@helper(fastmath={"contract", "nsz"})
def _add_means(S, D, mean):
    """``mean += sum_t S_t D_t``."""
    for t in range(S.shape[0]):
        part, row = S[t], D[t]
        for i in range(mean.size):
            mean[i] += part[i] * row[i]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def half_square(W, D, mean):
    """``sum_ti W (D - mean) D / 2``."""
    total = 0.0
    for t in range(W.shape[0]):
        w, row = W[t], D[t]
        for i in range(mean.size):
            total += w[i] * (row[i] - mean[i]) * row[i]
    return 0.5 * total


@kernel()
def sweep(
    Xt, feature, bounds, K, offset, W, S, damping, g, u, penalty, below, s, D, mean
):  # fmt: skip
    """One pass of coordinate descent; returns the largest ``|change| * curvature``.

    Within a class its block does what D and mean would be brought up to date for after each entry.
    ``below`` is the penalty of negative values, infinite where there may be none.
    """
    largest = 0.0
    r = floats(mean.size)
    slope, change = floats(u.size), zeros(u.size, np.float64)
    for t in range(bounds.size - 1):
        low, size = bounds[t], bounds[t + 1] - bounds[t]
        some = slice(low, low + size)
        _curved(W[t], D[t], mean, r)
        _products(Xt, feature[some], r, slope[some])
        block = square(K, offset[t], size)
        moved = False
        for a in range(size):
            e = low + a
            h = block[a, a] + damping[e]
            old = u[e] + s[e]
            at = g[e] + damping[e] * s[e] + slope[e]
            new = shrunk(old - at / h, penalty[e] / h, below[e] / h)
            if new != old:
                moved, change[e] = True, new - old
                s[e] = new - u[e]
                for b in range(size):
                    slope[low + b] += block[a, b] * change[e]
                largest = larger(largest, abs(change[e]) * h)
        if moved:
            _move(Xt, feature[some], change[some], S[t], r, D[t], mean)
    return largest


@kernel()
def shift(Xt, feature, parts, S, change, D, mean):
    """Bring D and mean up to date when the entries of a face move; ``feature`` is theirs."""
    r = floats(mean.size)
    for t in range(parts.size - 1):
        some = slice(parts[t], parts[t + 1])
        _move(Xt, feature[some], change[some], S[t], r, D[t], mean)


@kernel()
def slopes(Xt, feature, parts, W, D, mean, out):
    """``out = H s`` on a face, without damping."""
    r = floats(mean.size)
    for t in range(parts.size - 1):
        some = slice(parts[t], parts[t + 1])
        _curved(W[t], D[t], mean, r)
        _products(Xt, feature[some], r, out[some])


@helper()
def multiply(Xt, feature, parts, W, S, damping, d, D, mean, out):
    """``out = H d`` on a face; D and mean are working space."""
    for i in range(mean.size):
        mean[i] = 0.0
    for t in range(D.shape[0]):
        row = D[t]
        for i in range(row.size):
            row[i] = 0.0
    for t in range(parts.size - 1):
        some = slice(parts[t], parts[t + 1])
        _add_columns(Xt, feature[some], d[some], D[t])
    _add_means(S, D, mean)
    slopes(Xt, feature, parts, W, D, mean, out)
    for b in range(d.size):
        out[b] += damping[b] * d[b]


@kernel()
def face_factors(K, offset, bounds, face, parts, damping, space, factors):
    """Factors of the blocks of a face, with its damping, one after the other.

    ``space`` has room for the largest block.
    """
    start = 0
    for t in range(parts.size - 1):
        size, whole = parts[t + 1] - parts[t], bounds[t + 1] - bounds[t]
        block, own = square(K, offset[t], whole), square(space, 0, size)
        for a in range(size):
            for b in range(a + 1):
                own[a, b] = block[face[parts[t] + a] - bounds[t], face[parts[t] + b] - bounds[t]]
            own[a, a] += damping[parts[t] + a]
        stop = start + size * (size + 1) // 2
        factorise(own, factors[start:stop])
        start = stop


@kernel(fastmath={"reassoc", "contract", "nsz"})
def conjugate_gradients(
    Xt, feature, parts, W, S, damping, factors, residual, tol, most, D, mean, solution
):  # fmt: skip
    """Solve ``H d = residual`` on a face to ``tol`` in the largest entry; residual is lost.

    D and mean are working space, ``factors`` those of the preconditioner. Returns how many
    iterations were made.
    """
    z, Hd, d = floats(residual.size), floats(residual.size), floats(residual.size)
    rz = 0.0
    for n_iter in range(most + 1):
        largest = 0.0
        for b in range(residual.size):
            largest = larger(largest, abs(residual[b]))
        if largest <= tol or n_iter == most:
            break
        precondition(parts, factors, residual, z)
        before, rz = rz, 0.0
        for b in range(residual.size):
            rz += residual[b] * z[b]
        for b in range(residual.size):
            d[b] = z[b] if n_iter == 0 else z[b] + rz / before * d[b]
        multiply(Xt, feature, parts, W, S, damping, d, D, mean, Hd)
        dHd = 0.0
        for b in range(residual.size):
            dHd += d[b] * Hd[b]
        if dHd <= 0.0:
            break
        for b in range(residual.size):
            solution[b] += rz / dHd * d[b]
            residual[b] -= rz / dHd * Hd[b]
    return n_iter
