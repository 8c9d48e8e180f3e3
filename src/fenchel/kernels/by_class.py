"""Losses, scores and gradients of dense data by class: (k, n) arrays, one row a class.

A step on single classes changes a few coefficients of each. With the scores of a class side by
side, what it adds to them and the gradients that it asks for are streams along columns of X, and a
loss works on many samples at once, whatever the number of classes.
"""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.class_blocks import lasting
from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.entropy import log_positive
from fenchel.kernels.exp import exp
from fenchel.kernels.primitives import empty, floats, larger, smaller, zeros
from fenchel.kernels.simplex import SMALLEST

#: Samples that are worked on together: their values for ten classes stay in the first cache.
TOGETHER = 256


@kernel(fastmath={"contract", "nsz"})
def add_columns(Xt, feature, klass, s, Zt):
    """``Zt[l] += s_e Xt[j]`` for every entry e = (j, l)."""
    for e in range(feature.size):
        if s[e] != 0.0:
            x, z, c = Xt[feature[e]], Zt[klass[e]], s[e]
            for i in range(x.size):
                z[i] += c * x[i]


def dense_product(Xt, feature, klass, s, k):
    """``X S`` for the matrix S with values s at the entries, (n, k)."""
    Zt = np.zeros((k, Xt.shape[1]))
    add_columns(Xt, feature, klass, s, Zt)
    return np.ascontiguousarray(Zt.T)


@kernel(fastmath={"contract", "nsz", "reassoc"})
def gradient_by_class(Xt, Vt, y, weights, feature, classes, bounds, out):
    """``out[e] = <Xt[j], weights (Vt - Yt)[l]>`` for every entry; those of a class lie together."""
    residual = floats(y.size)
    for t in range(classes.size):
        l = classes[t]
        v = Vt[l]
        for i in range(residual.size):
            residual[i] = weights[i] * (v[i] - (1.0 if y[i] == l else 0.0))
        for e in range(bounds[t], bounds[t + 1]):
            x = Xt[feature[e]]
            total = 0.0
            for i in range(residual.size):
                total += x[i] * residual[i]
            out[e] = total


@kernel()
def curvature_by_class(Ht, scale, y, weights, classes, least, lasts, out):
    """The same as ``class_blocks.class_curvature`` for an h by class."""
    k, n = Ht.shape
    part = zeros(n, np.float64)  # the sums over the classes, then one over them
    place = empty(k, np.int64)
    for l in range(k):
        place[l] = -1
    for t in range(classes.size):
        place[classes[t]] = t
    for l in range(k):
        h = Ht[l]
        for i in range(n):
            part[i] += h[i]
    for i in range(n):
        part[i] = 1.0 / part[i] if part[i] > 0.0 else 0.0
    for t in range(classes.size):
        h, row = Ht[classes[t]], out[t]
        for i in range(n):
            row[i] = scale * weights[i] * h[i] * (1.0 - h[i] * part[i])
    if lasts:
        for i in range(n):
            t = place[y[i]]
            if t >= 0 and part[i] > 0.0:
                p = larger(Ht[y[i], i] * part[i], SMALLEST)
                out[t, i] = scale * weights[i] * p * (1.0 - p) / part[i] * lasting(p)
    for t in range(classes.size):
        row = out[t]
        mean = 0.0
        for i in range(n):
            mean += row[i]
        for i in range(n):
            row[i] += least * mean * weights[i]


@helper(fastmath={"contract", "nsz"})
def _tops(Zt, start, top):
    """The largest entry over the classes, of as many samples as ``top`` has."""
    for i in range(top.size):
        top[i] = -np.inf
    for l in range(Zt.shape[0]):
        z = Zt[l, start : start + top.size]
        for i in range(top.size):
            top[i] = z[i] if z[i] > top[i] else top[i]


@kernel(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def softmax_by_class(Zt, y, weights, Vt):
    """``sum_i weights_i (log sum_l exp z_il - z_i,y(i))``, and ``V = exp(Z)`` of sums one."""
    k, n = Zt.shape
    tops, totals = floats(TOGETHER), floats(TOGETHER)
    value = finite = 0.0
    for start in range(0, n, TOGETHER):
        size = smaller(TOGETHER, n - start)
        top, total, w = tops[:size], totals[:size], weights[start : start + size]
        _tops(Zt, start, top)
        for i in range(size):
            total[i] = 0.0
        for l in range(k):
            z, v = Zt[l, start : start + size], Vt[l, start : start + size]
            for i in range(size):
                e = exp(z[i] - top[i])
                v[i] = e
                total[i] += e
        for i in range(size):
            value += w[i] * log_positive(total[i])
            finite += total[i]
            total[i] = 1.0 / total[i]
        for i in range(size):
            value += w[i] * (top[i] - Zt[y[start + i], start + i])
        for l in range(k):
            v = Vt[l, start : start + size]
            for i in range(size):
                v[i] *= total[i]
    return value if math.isfinite(finite) else np.nan  # the logarithm takes no notice of a NaN


@kernel(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def smoothed_hinge_by_class(V0t, Zt, eta, y, weights, Vt):
    """``sum_i weights_i max_v <v - y, z> + 1 - v_y - ||v - v0||^2 / (2 eta)``, and its v.

    That v is the projection of ``a = v0 + eta (z + 1 - y)`` onto the simplex: ``a`` less a
    threshold, where that is positive. The threshold is the largest ``(sum_S a - 1) / |S|`` over all
    sets S of classes: from all classes those below the value leave until none does (Michelot).
    """
    k, n = Zt.shape
    tops, thresholds = floats(TOGETHER), floats(TOGETHER)
    sums, counts = floats(TOGETHER), floats(TOGETHER)
    value = 0.0
    for start in range(0, n, TOGETHER):
        size = smaller(TOGETHER, n - start)
        stop = start + size
        top, threshold, w = tops[:size], thresholds[:size], weights[start:stop]
        total, count = sums[:size], counts[:size]
        for l in range(k):
            z, v0, v = Zt[l, start:stop], V0t[l, start:stop], Vt[l, start:stop]
            for i in range(size):
                v[i] = v0[i] + eta * (z[i] + 1.0)
        for i in range(size):
            Vt[y[start + i], start + i] -= eta
        _tops(Vt, start, top)
        for i in range(size):
            threshold[i] = -1.0  # relative to the top, which is no smaller than its own value
        moved = True
        while moved:
            for i in range(size):
                total[i], count[i] = -1.0, 0.0
            for l in range(k):
                v = Vt[l, start:stop]
                for i in range(size):
                    a = v[i] - top[i]
                    total[i] += a if a > threshold[i] else 0.0
                    count[i] += 1.0 if a > threshold[i] else 0.0
            rise = 0.0
            for i in range(size):
                new = total[i] / count[i]
                rise += 1.0 if new > threshold[i] else 0.0
                threshold[i] = new if new > threshold[i] else threshold[i]
            moved = rise > 0.0
        for i in range(size):
            total[i] = 0.0
        for l in range(k):
            z, v0, v = Zt[l, start:stop], V0t[l, start:stop], Vt[l, start:stop]
            for i in range(size):
                new = v[i] - top[i] - threshold[i]
                new = new if new > 0.0 else 0.0
                total[i] += new * z[i] - (new - v0[i]) * (new - v0[i]) / (2.0 * eta)
                v[i] = new
        for i in range(size):
            true = Vt[y[start + i], start + i]
            value += w[i] * (total[i] + 1.0 - true - Zt[y[start + i], start + i])
    return value
