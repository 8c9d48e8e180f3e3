"""Steps on one class at a time: the blocks of the Hessian, and a problem with l1 penalty in each.

Entries of U are sorted by class; those between ``bounds[t]`` and ``bounds[t + 1]`` are of one
class, and their block of the Hessian is stored from ``offset[t]`` on.
"""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import kernel
from fenchel.kernels.curvature import residual_of
from fenchel.kernels.gram import weighted_products
from fenchel.kernels.l1_newton import shrunk
from fenchel.kernels.primitives import empty, floats, larger, smaller, square, zeros
from fenchel.kernels.simplex import SMALLEST

#: Rows that are transposed together.
BLOCK = 32


@kernel()
def lasting(p):
    """How much more than ``p (1 - p)`` the curvature of a logistic loss is on a long way upwards.

    For a probability p < 1/2 that is to grow: the bound of Jaakkola and Jordan for ways of any
    length, ``tanh(z/2) / (2 z)`` at the log-odds z of p. Above 1/2 the curvature only falls.
    """
    if p > 0.499:
        return 1.0
    return abs(1.0 - 2.0 * p) / (2.0 * abs(math.log(p / (1.0 - p))) * p * (1.0 - p))


@kernel()
def one_over_row_sums(H, out):
    """``out_i = 1 / sum_l h_il``, or 0 for a row without any."""
    for i in range(H.shape[0]):
        total = 0.0
        for l in range(H.shape[1]):
            total += H[i, l]
        out[i] = 1.0 / total if total > 0.0 else 0.0


@kernel()
def curved_rows(H, flat):
    """The row sums, and the rows with more than the part ``flat`` of theirs beside the largest."""
    sums, rows, count = floats(H.shape[0]), empty(H.shape[0], np.int64), 0
    for i in range(H.shape[0]):
        total = top = 0.0
        for h in H[i]:
            total += h
            top = larger(top, h)
        sums[i], rows[count] = total, i
        count += total - top > flat * total
    return sums, rows[:count]


@kernel()
def class_curvature(H, part, scale, y, weights, classes, least, lasts, out):
    """``out[t, i] = scale weights_i (h_il - h_il^2 / sum_m h_im)`` for class l = ``classes[t]``.

    That is the diagonal of the Hessian in the scores, times ``lasting`` for the true class if it
    ``lasts``: from uniform probabilities of many classes a step would be far too long. To it comes
    ``least`` times its mean over the samples: a class may be certain of nearly all of them.
    ``part`` is as from :func:`one_over_row_sums`.
    """
    n, k = H.shape
    place = empty(k, np.int64)
    for l in range(k):
        place[l] = -1
    for t in range(classes.size):
        place[classes[t]] = t
    for start in range(0, n, BLOCK):  # blocks, because H is read by rows and out written by columns
        stop = smaller(start + BLOCK, n)
        for t in range(classes.size):
            l = classes[t]
            for i in range(start, stop):
                out[t, i] = scale * weights[i] * H[i, l] * (1.0 - H[i, l] * part[i])
    for i in range(n):
        t, p = place[y[i]], H[i, y[i]] * part[i]
        if lasts and t >= 0 and part[i] > 0.0:
            p = larger(p, SMALLEST)
            out[t, i] = scale * weights[i] * p * (1.0 - p) / part[i] * lasting(p)
    for t in range(classes.size):
        mean = 0.0
        for i in range(n):
            mean += out[t, i]
        for i in range(n):
            out[t, i] += least * mean * weights[i]


@kernel()
def small_blocks(x, starts, bounds, curvature, limit, offset, out):
    """The blocks ``M diag(curvature[t]) M^T`` of up to ``limit`` rows, M the features of a class.

    Those are what x holds from ``starts`` on.
    """
    for t in range(bounds.size - 1):
        low, high = bounds[t], bounds[t + 1]
        if high - low <= limit:
            K = square(out, offset[t], high - low)
            weighted_products(x, starts[low:high], curvature[t], K)


@kernel()
def weighted_columns(Xt, feature, part, code, scale, start, out):
    """``out_e = scale_e part[code_e] Xt[feature_e]`` for samples from ``start`` on."""
    for e in range(feature.size):
        x, p, row = Xt[feature[e], start:], part[code[e], start:], out[e]
        for i in range(row.size):
            row[i] = scale[e] * p[i] * x[i]


@kernel()
def widen(single, unit, room):
    """The lower triangle of a matrix from single to double precision, times ``unit_e unit_f``.

    ``single`` is the first half of the room that it takes then: from the end on, no entry is
    written before what was there is read.
    """
    size = unit.size
    for e in range(size - 1, -1, -1):
        for f in range(e, -1, -1):
            room[e * size + f] = single[e * size + f] * (unit[e] * unit[f])


@kernel()
def add_blocks(H, blocks, offset, bounds):
    """Add the blocks to H, of which the lower triangle is given, and fill in the upper one."""
    for t in range(bounds.size - 1):
        low, size = bounds[t], bounds[t + 1] - bounds[t]
        K = square(blocks, offset[t], size)
        for a in range(size):
            for b in range(a + 1):
                H[low + a, low + b] += K[a, b]
    for a in range(H.shape[0]):
        for b in range(a):
            H[b, a] = H[a, b]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def class_steps(blocks, offset, bounds, scale, g, u, penalty, below, sweeps, tol, s):
    """Minimise ``<g, s> + scale/2 s^T K s + penalty |u + s|``, K the block of every class.

    Coordinate descent: at most ``sweeps`` passes over a class, or until its steps are ``tol`` times
    those of the first pass. ``below`` is the penalty of negative values. Returns ``s^T K s``.
    """
    slope = floats(g.size)
    quadratic = 0.0
    for t in range(bounds.size - 1):
        low, size = bounds[t], bounds[t + 1] - bounds[t]
        K = square(blocks, offset[t], size)
        for a in range(size):
            slope[a] = g[low + a]
            s[low + a] = 0.0
        first = 0.0
        for n_sweep in range(sweeps):
            largest = 0.0
            for a in range(size):
                e = low + a
                h = scale * K[a, a]
                old = u[e] + s[e]
                if h <= 0.0 or (old == 0.0 and -penalty[e] <= slope[a] <= below[e]):
                    continue
                new = shrunk(old - slope[a] / h, penalty[e] / h, below[e] / h)
                if new != old:
                    s[e] = new - u[e]
                    change = scale * (new - old)
                    for b in range(size):
                        slope[b] += change * K[a, b]
                    largest = larger(largest, abs(new - old) * h)
            if n_sweep == 0:
                first = largest
            if largest <= tol * first:
                break
        for a in range(size):
            quadratic += s[low + a] * (slope[a] - g[low + a])
    return quadratic / scale


@kernel()
def sparse_diagonals(indptr, indices, data, feature, bounds, curvature, out):
    """The diagonals of the blocks of columns in CSC form."""
    for t in range(bounds.size - 1):
        h = curvature[t]
        for e in range(bounds[t], bounds[t + 1]):
            out[e] = 0.0
            for q in range(indptr[feature[e]], indptr[feature[e] + 1]):
                out[e] += data[q] * data[q] * h[indices[q]]


@kernel()
def sparse_class_steps(
    indptr, indices, data, feature, bounds, curvature, diagonal, added,
    scale, g, u, penalty, below, sweeps, tol, s,
):  # fmt: skip
    """The same for X in CSC form: ``K s = M D`` with ``D = diag(curvature[t]) M^T s`` kept instead.

    A block of sparse columns has far more products than the columns have entries. ``diagonal`` is
    that of the blocks, in which ``added`` comes to that of the columns.
    """
    D = zeros(curvature.shape[1], np.float64)
    quadratic = 0.0
    for t in range(bounds.size - 1):
        low, high, h = bounds[t], bounds[t + 1], curvature[t]
        for e in range(low, high):
            s[e] = 0.0
        first = 0.0
        for n_sweep in range(sweeps):
            largest = 0.0
            for e in range(low, high):
                if diagonal[e] <= 0.0:
                    continue
                begin, end = indptr[feature[e]], indptr[feature[e] + 1]
                old, slope = u[e] + s[e], added[e] * s[e]
                for q in range(begin, end):
                    slope += data[q] * D[indices[q]]
                slope = g[e] + scale * slope
                if old == 0.0 and -penalty[e] <= slope <= below[e]:
                    continue
                c = scale * diagonal[e]
                new = shrunk(old - slope / c, penalty[e] / c, below[e] / c)
                if new != old:
                    s[e] = new - u[e]
                    for q in range(begin, end):
                        D[indices[q]] += data[q] * h[indices[q]] * (new - old)
                    largest = larger(largest, abs(new - old) * c)
            if n_sweep == 0:
                first = largest
            if largest <= tol * first:
                break
        for e in range(low, high):
            if s[e] != 0.0:
                quadratic += added[e] * s[e] * s[e]
                for q in range(indptr[feature[e]], indptr[feature[e] + 1]):
                    quadratic += s[e] * data[q] * D[indices[q]]
        for e in range(low, high):
            for q in range(indptr[feature[e]], indptr[feature[e] + 1]):
                D[indices[q]] = 0.0
    return quadratic


@kernel(fastmath={"reassoc", "contract", "nsz"})
def products_at(Xt, Rt, feature, klass, out):
    """``out[e] = <Xt[j], Rt[l]>`` for every entry e = (j, l)."""
    for e in range(feature.size):
        x, r = Xt[feature[e]], Rt[klass[e]]
        total = 0.0
        for i in range(x.size):
            total += x[i] * r[i]
        out[e] = total


@kernel()
def sparse_products_at(indptr, indices, data, V, y, weights, feature, klass, out):
    """``out[e] = <X(:,j), diag(weights) (V - Y)(:,l)>`` for every entry, X in CSC form."""
    for e in range(feature.size):
        j, l = feature[e], klass[e]
        total = 0.0
        for q in range(indptr[j], indptr[j + 1]):
            i = indices[q]
            total += data[q] * weights[i] * (V[i, l] - (1.0 if y[i] == l else 0.0))
        out[e] = total


@kernel()
def add_sparse_product(indptr, indices, data, feature, klass, s, Z):
    """``Z += X S`` for the matrix S with values s at the entries, X in CSC form."""
    for e in range(feature.size):
        if s[e] != 0.0:
            for q in range(indptr[feature[e]], indptr[feature[e] + 1]):
                Z[indices[q], klass[e]] += s[e] * data[q]


@kernel()
def dense_residual(
    V: np.ndarray, y: np.ndarray, weights: np.ndarray, start: int, R: np.ndarray
) -> None:
    """``R = diag(weights) (V - Y)`` in as many classes as R has, from ``start`` on."""
    n, width = R.shape
    for i in range(n):
        w = weights[i]
        for l in range(width):
            R[i, l] = w * V[i, start + l]
        if start <= y[i] < start + width:
            R[i, y[i] - start] -= w


@kernel()
def linearise(V, H, D):
    """``D <- V + H D - H <H, D> / sum(H)``, row by row; returns how many rows had to be repaired.

    The rows of V sum to one, and so do the new ones. Where some entries would be negative, they
    become zero, and the rest is divided by its sum.
    """
    n, k = V.shape
    repaired = 0
    for i in range(n):
        total, mean = 0.0, 0.0
        for l in range(k):
            total += H[i, l]
            mean += H[i, l] * D[i, l]
        mean = mean / total if total > 0.0 else 0.0
        total, negative = 0.0, False
        for l in range(k):
            D[i, l] = V[i, l] + H[i, l] * (D[i, l] - mean)
            if D[i, l] < 0.0:
                D[i, l], negative = 0.0, True
            total += D[i, l]
        if negative:
            repaired += 1
            for l in range(k):
                D[i, l] /= total
    return repaired


@kernel(fastmath={"nsz", "reassoc"})
def same(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether all numbers are the same; no row is read behind the first that differs."""
    for i in range(A.shape[0]):
        a, b, different = A[i], B[i], 0.0
        for l in range(a.size):
            different += 0.0 if a[l] == b[l] else 1.0
        if different > 0.0:
            return False
    return True


@kernel()
def n_residuals(V: np.ndarray, y: np.ndarray) -> int:
    """How many entries of ``V - Y`` are not zero."""
    n, k = V.shape
    count = 0
    for i in range(n):
        for l in range(k):
            count += V[i, l] != 0.0
        true = V[i, y[i]]
        count += (true == 0.0) - (true == 1.0)
    return count


@kernel(fastmath={"contract", "nsz"})
def add_row_products(
    X: np.ndarray, V: np.ndarray, y: np.ndarray, weights: np.ndarray, G: np.ndarray
) -> None:
    """``G += (V - Y)^T diag(weights) X``, (k, d): for a V that is the label itself in most rows."""
    n, k = V.shape
    index, value = empty(k, np.int64), floats(k)
    for i in range(n):
        if V[i, y[i]] == 1.0:  # then what else there may be is rounding
            continue
        for s in range(residual_of(V[i], y[i], index, value)):
            x, g, r = X[i], G[index[s]], weights[i] * value[s]
            for j in range(x.size):
                g[j] += r * x[j]
