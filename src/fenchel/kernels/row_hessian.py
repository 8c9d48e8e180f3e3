"""The Hessian on a working set of dense data, sample by sample.

A sample meets only the entries of classes where its curvature h is positive, and with the hinge
loss these are two or three: their few products cost less than one large product by BLAS.
"""

from __future__ import annotations

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.gram import mirror
from fenchel.kernels.primitives import empty, floats, larger, matrix, smaller, zeros

#: The values of so many samples at a time are gathered.
AT_A_TIME = 128


@helper(fastmath={"nsz", "reassoc"})
def _positive(h: np.ndarray) -> tuple[float, float]:
    """How many entries of a row are positive, and their sum: one alone makes no curvature."""
    count = total = 0.0
    for l in range(h.size):
        count += 1.0 if h[l] > 0.0 else 0.0
        total += h[l]
    return count, total


@helper(fastmath={"nsz", "reassoc"})
def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    different = 0.0
    for l in range(a.size):
        different += 1.0 if a[l] != b[l] else 0.0
    return different > 0.0


@helper(fastmath={"nsz", "reassoc"})
def _met(h: np.ndarray, sizes: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """How many entries belong to the classes of a row, and how many of them are new.

    None where a single class is positive, which makes no curvature.
    """
    count = entries = fresh = 0.0
    for l in range(h.size):
        count += 1.0 if h[l] > 0.0 else 0.0
        entries += sizes[l] if h[l] > 0.0 else 0.0
        fresh += new[l] if h[l] > 0.0 else 0.0
    return (entries, fresh) if count > 1.0 else (-1.0, 0.0)


@kernel()
def row_work(
    h: np.ndarray,
    before: np.ndarray,
    weights: np.ndarray,
    classes: np.ndarray,
    sizes: np.ndarray,
    new: np.ndarray,
) -> tuple[int, float, float, float]:
    """The samples with curvature, the entries that they meet, and what the Hessian for h takes.

    The latter in multiplications: from nothing, and from the Hessian for ``before``, in which of
    the ``sizes[t]`` entries of a class ``new[t]`` are lacking, both as floating-point numbers.
    """
    n_rows, meetings, anew, changed = 0, 0.0, 0.0, 0.0
    of_class, lacking = zeros(h.shape[1], np.float64), zeros(h.shape[1], np.float64)
    for t in range(classes.size):
        of_class[classes[t]], lacking[classes[t]] = sizes[t], new[t]
    for i in range(h.shape[0]):
        if weights[i] == 0.0:
            continue
        entries, fresh = _met(h[i], of_class, lacking)
        if entries >= 0.0:
            n_rows += 1
            meetings += entries
            anew += entries * entries
        if before.shape[0] > 0 and not _differ(h[i], before[i]):
            changed += larger(entries, 0.0) * fresh
            continue
        changed += larger(entries, 0.0) * larger(entries, 0.0)
        if before.shape[0] > 0:
            entries, fresh = _met(before[i], of_class, lacking)
            changed += larger(entries, 0.0) * (entries + fresh)
    return n_rows, meetings, anew, changed


@helper()
def _parts(h: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """``1 / sum(h_i)`` of some samples: zero for those without curvature."""
    parts = zeros(samples.size, np.float64)
    for c in range(samples.size if h.shape[0] > 0 else 0):
        count, total = _positive(h[samples[c]])
        if count > 1.0:
            parts[c] = 1.0 / total
    return parts


@helper()
def _gathered(Xt: np.ndarray, feature: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """The values of some samples for all entries, a row for a sample."""
    x = matrix(samples.size, feature.size)
    for e in range(feature.size):
        column = Xt[feature[e]]
        for c in range(samples.size):
            x[c, e] = column[samples[c]]
    return x


@helper(fastmath={"contract", "nsz"})
def _add_scaled(factor: float, x: np.ndarray, row: np.ndarray) -> None:
    for f in range(x.size):
        row[f] += factor * x[f]


@helper()
def _coupling(h: np.ndarray, part: float, l: int, m: int) -> float:
    """``diag(h) - h h^T / sum(h)`` at (l, m); zero where ``part``, one over the sum, is."""
    own = h[l] if l == m and part > 0.0 else 0.0
    return own - part * h[l] * h[m]


@helper(inline="always")
def _change(
    Xt: np.ndarray,
    h: np.ndarray,
    before: np.ndarray,
    samples: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add what some samples change, to the blocks of H on and below the diagonal.

    One pair of classes after the other: its block stays in the cache.
    """
    x, now, then = _gathered(Xt, feature, samples), _parts(h, samples), _parts(before, samples)
    past = before if before.shape[0] > 0 else h  # then of no part
    mine = empty(samples.size, np.int64)
    for t in range(classes.size):
        count, l = 0, classes[t]
        for c in range(samples.size):
            mine[count] = c
            count += now[c] * h[samples[c], l] > 0.0 or then[c] * past[samples[c], l] > 0.0
        for s in range(t + 1):
            columns, m = slice(bounds[s], bounds[s + 1]), classes[s]
            for c in mine[:count]:
                i = samples[c]
                change = _coupling(h[i], now[c], l, m) - _coupling(past[i], then[c], l, m)
                if change != 0.0:
                    others = x[c, columns]
                    for e in range(bounds[t], bounds[t + 1]):
                        _add_scaled(weights[i] * change * x[c, e], others, H[e, columns])


@kernel()
def change_row_hessian(
    Xt: np.ndarray,
    h: np.ndarray,
    before: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    H: np.ndarray,
) -> None:
    """From the Hessian for ``before``, or from zero where that has no rows, to that for h.

    ``sum_i weights_i (diag(h_i) - h_i h_i^T / sum(h_i)) (x) x_i x_i^T`` on the entries: those of
    ``classes[t]`` are from ``bounds[t]`` to ``bounds[t + 1]``.
    """
    changed = empty(h.shape[0], np.int64)
    count = 0
    for i in range(h.shape[0]):
        if weights[i] != 0.0 and (before.shape[0] == 0 or _differ(h[i], before[i])):
            changed[count] = i
            count += 1
    for start in range(0, count, AT_A_TIME):
        some = changed[start : smaller(start + AT_A_TIME, count)]
        _change(Xt, h, before, some, weights, feature, classes, bounds, H)
    if count > 0:
        mirror(H)


@helper(inline="always")
def _grow(
    Xt: np.ndarray,
    h: np.ndarray,
    samples: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    fresh: np.ndarray,
    at: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add what some samples have in the rows ``fresh`` of H; those of a class begin ``at[t]``."""
    x, parts = _gathered(Xt, feature, samples), _parts(h, samples)
    support = empty(classes.size, np.int64)
    for c in range(samples.size):
        i, count = samples[c], 0
        for t in range(classes.size):
            support[count] = t
            count += h[i, classes[t]] > 0.0
        for t in support[:count]:
            for e in fresh[at[t] : at[t + 1]]:
                own = weights[i] * x[c, e]
                for s in support[: count if own != 0.0 else 0]:
                    columns = slice(bounds[s], bounds[s + 1])
                    factor = own * _coupling(h[i], parts[c], classes[t], classes[s])
                    _add_scaled(factor, x[c, columns], H[e, columns])


@kernel()
def rearrange(room: np.ndarray, before: int, place: np.ndarray) -> None:
    """From a matrix of ``before`` rows to that of the rows and columns ``place``, in one room.

    A negative place is a row and a column of zeros; the others ascend. What stays moves together
    to the front first, then apart from the end on: nothing is written over that is still read.
    """
    size, kept = place.size, 0
    stays = empty(size, np.int64)
    for e in range(size):
        if place[e] >= 0:
            stays[kept] = place[e]
            kept += 1
    for a in range(kept):
        for b in range(kept):
            room[a * kept + b] = room[stays[a] * before + stays[b]]
    a = kept
    for e in range(size - 1, -1, -1):
        b, a = kept, a - (place[e] >= 0)
        for f in range(size - 1, -1, -1):
            b -= place[f] >= 0
            both = place[e] >= 0 and place[f] >= 0
            room[e * size + f] = room[a * kept + b] if both else 0.0


@kernel()
def grow_row_hessian(
    Xt: np.ndarray,
    h: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    fresh: np.ndarray,
    at: np.ndarray,
    H: np.ndarray,
) -> None:
    """The Hessian for h on these entries, from that on those that are not ``fresh``, for the same.

    H is zero in the rows and columns of those that are; those of a class begin ``at[t]``.
    """
    if fresh.size == 0 or h.shape[0] == 0:
        return
    samples = empty(h.shape[0], np.int64)
    count = 0
    for i in range(h.shape[0]):
        if weights[i] != 0.0 and _positive(h[i])[0] > 1.0:
            samples[count] = i
            count += 1
    for start in range(0, count, AT_A_TIME):
        some = samples[start : smaller(start + AT_A_TIME, count)]
        _grow(Xt, h, some, weights, feature, classes, bounds, fresh, at, H)
    for e in fresh:
        for f in range(H.shape[0]):
            H[f, e] = H[e, f]


@kernel(fastmath={"contract", "nsz", "reassoc"})
def grow_dense_hessian(
    Xt: np.ndarray,
    Ht: np.ndarray,
    weights: np.ndarray,
    feature: np.ndarray,
    classes: np.ndarray,
    bounds: np.ndarray,
    fresh: np.ndarray,
    at: np.ndarray,
    H: np.ndarray,
) -> None:
    """The same for an h without many zeros, given by class: ``Ht`` is (k, n).

    Row e = (j, l) of H is ``sum_i weights_i x_ij (diag(h_i) - h_i h_i^T / sum(h_i))_lm x_i``: for
    each class m a vector over the samples, and its products with columns of X.
    """
    part, own, r = floats(weights.size), floats(weights.size), floats(weights.size)
    for i in range(part.size):
        part[i] = 0.0
    for l in range(Ht.shape[0]):
        h = Ht[l]
        for i in range(part.size):
            part[i] += h[i]
    for i in range(part.size):
        part[i] = 1.0 / part[i] if part[i] > 0.0 else 0.0
    for t in range(classes.size):
        h = Ht[classes[t]]
        for e in fresh[at[t] : at[t + 1]]:
            x = Xt[feature[e]]
            for i in range(own.size):
                own[i] = weights[i] * h[i] * x[i]
            for s in range(classes.size):
                g, same = Ht[classes[s]], 1.0 if s == t else 0.0
                for i in range(r.size):
                    r[i] = own[i] * (same - g[i] * part[i])
                for f in range(bounds[s], bounds[s + 1]):
                    z, total = Xt[feature[f]], 0.0
                    for i in range(r.size):
                        total += z[i] * r[i]
                    H[e, f] = H[f, e] = total
