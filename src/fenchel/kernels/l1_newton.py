"""The compiled loops of a Newton step with an l1 penalty (:mod:`fenchel.solvers.l1_model`).

Entries e = (j, l) of U have their values of X in ``x[start_e:stop_e]``, at the positions
``base_e + position`` of the same places: packed one after the other, or X itself by columns, which
the classes share. Positions p stand for the (sample, class) pairs with curvature, with
``row``, ``weight`` and ``share`` as from :mod:`fenchel.kernels.curvature`. D and mean are
``X s`` there and its share-weighted mean by row.
"""

from __future__ import annotations

import math

import numpy as np

from fenchel.kernels.compiled import helper, kernel
from fenchel.kernels.gram import mirror
from fenchel.kernels.primitives import floats, larger, smaller, zeros


@helper()
def _sparse_dot(x, position, values):
    """``sum_q x_q values[position_q]``, in this order.

    Sums in any order would be compiled to the processor's own instructions that gather numbers,
    and take twice as long.
    """
    total = 0.0
    for q in range(x.size):
        total += x[q] * values[position[q]]
    return total


@helper()
def _sparse_slope(x, position, row, weight, D, mean):
    """``sum_q x_q weight_p (D_p - mean_i(p))`` at the positions p, in this order as well."""
    total = 0.0
    for q in range(x.size):
        p = position[q]
        total += x[q] * weight[p] * (D[p] - mean[row[p]])
    return total


@helper()
def _sparse_square(x, position, weight, share):
    """``sum_q x_q^2 weight_p (1 - share_p)`` at the positions p, in this order as well."""
    total = 0.0
    for q in range(x.size):
        p = position[q]
        total += x[q] * x[q] * weight[p] * (1.0 - share[p])
    return total


@helper(fastmath={"reassoc", "contract", "nsz"})
def _slope(e, packed, row, weight, D, mean):
    """Entry e of H s, without damping."""
    start, stop, base, position, x = packed
    low, high, first = start[e], stop[e], base[e]
    g = 0.0
    if high - low == mean.size:  # every row takes part: no index is needed, and it vectorises
        first += position[low]
        x, some = x[low:high], slice(first, first + high - low)
        w, D = weight[some], D[some]
        for i in range(mean.size):
            g += x[i] * w[i] * (D[i] - mean[i])
    else:
        some = slice(low, high)
        g = _sparse_slope(x[some], position[some], row[first:], weight[first:], D[first:], mean)
    return g


@helper()
def _move(e, delta, packed, row, share, D, mean):
    """Keep D and mean up to date when entry e moves by delta."""
    start, stop, base, position, x = packed
    low, high, first = start[e], stop[e], base[e]
    if high - low == mean.size:
        first += position[low]
        x, some = x[low:high], slice(first, first + high - low)
        D, part = D[some], share[some]
        for i in range(mean.size):
            D[i] += x[i] * delta
            mean[i] += part[i] * x[i] * delta
    else:
        for q in range(low, high):
            p = first + position[q]
            D[p] += x[q] * delta
            mean[row[p]] += share[p] * x[q] * delta


@kernel()
def half_square(row, weight, D, mean):
    """``sum_p weight_p D_p (D_p - mean_i(p)) / 2``."""
    total = 0.0
    for p in range(row.size):
        total += weight[p] * D[p] * (D[p] - mean[row[p]])
    return 0.5 * total


@helper()
def shrunk(value, above, below):
    """``value`` moved towards zero: by ``above`` where it is positive, else by ``below``."""
    return larger(value - above, 0.0) if value > 0.0 else smaller(value + below, 0.0)


@kernel()
def largest_subgradient(g, u, penalty, below):
    """The largest entry, by size, of the smallest subgradient of ``<g, .> + penalty |.|`` at u.

    ``below`` is the penalty of negative values; not a number where g is not.
    """
    largest = 0.0
    for e in range(u.size):
        if u[e] == 0.0:
            size = larger(-g[e] - penalty[e], g[e] - below[e])
        else:
            size = abs(g[e] + (penalty[e] if u[e] > 0.0 else -penalty[e]))
        if size > largest:
            largest = size
        elif size != size:
            return size
    return largest


@kernel()
def sweep(packed, positions, diagonal, g, u, penalty, below, damping, s, D, mean):
    """One pass of coordinate descent; returns the largest ``|change| * curvature``.

    ``below`` is the penalty of negative values, infinite where there may be none.
    """
    row, weight, share = positions
    largest = 0.0
    for e in range(u.size):
        a = diagonal[e] + damping[e]
        slope = g[e] + damping[e] * s[e] + _slope(e, packed, row, weight, D, mean)
        old = u[e] + s[e]
        new = shrunk(old - slope / a, penalty[e] / a, below[e] / a)
        if new != old:
            s[e] = new - u[e]
            _move(e, new - old, packed, row, share, D, mean)
            largest = larger(largest, abs(new - old) * a)
    return largest


@helper(fastmath={"reassoc", "contract", "nsz"})
def _dot(e, packed, values):
    """The values of X of entry e times those at its positions."""
    start, stop, base, position, x = packed
    low, high, first = start[e], stop[e], base[e]
    total = 0.0
    if high > low and position[high - 1] - position[low] == high - low - 1:
        first += position[low]  # neighbours: no index is needed, and slices vectorise
        x, values = x[low:high], values[first : first + high - low]
        for q in range(x.size):
            total += x[q] * values[q]
    else:
        total = _sparse_dot(x[low:high], position[low:high], values[first:])
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def multiply(face, packed, positions, damping, d, D, mean, out):
    """``out = H d`` on the face; D and mean are working space.

    In dense data an entry's positions are neighbours, and then the loops need no index.
    """
    start, stop, base, position, x = packed
    row, weight, share = positions
    for p in range(D.size):
        D[p] = 0.0
    for i in range(mean.size):
        mean[i] = 0.0
    for b in range(face.size):
        low, high, first = start[face[b]], stop[face[b]], base[face[b]]
        if high > low and position[high - 1] - position[low] == high - low - 1:
            first += position[low]
            column, some = x[low:high], D[first : first + high - low]
            for q in range(column.size):
                some[q] += column[q] * d[b]
        else:
            for q in range(low, high):
                D[first + position[q]] += x[q] * d[b]
    for p in range(D.size):
        mean[row[p]] += share[p] * D[p]
    for p in range(D.size):
        D[p] = weight[p] * (D[p] - mean[row[p]])
    for b in range(face.size):
        out[b] = damping[face[b]] * d[b] + _dot(face[b], packed, D)


@kernel()
def shift(face, change, packed, positions, D, mean):
    """Keep D and mean up to date when the entries of the face move."""
    row, _, share = positions
    for b in range(face.size):
        _move(face[b], change[b], packed, row, share, D, mean)


@kernel()
def slopes(face, packed, positions, D, mean, out):
    """``out = H s`` on the face, without damping, from D and mean."""
    row, weight, _ = positions
    for b in range(face.size):
        out[b] = _slope(face[b], packed, row, weight, D, mean)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def diagonal_of(packed, positions, out):
    """The diagonal of H, without damping."""
    start, stop, base, position, x = packed
    _, weight, share = positions
    for e in range(out.size):
        low, high, first = start[e], stop[e], base[e]
        total = 0.0
        if high > low and position[high - 1] - position[low] == high - low - 1:
            first += position[low]
            some = slice(first, first + high - low)
            column, w, part = x[low:high], weight[some], share[some]
            for q in range(column.size):
                total += column[q] * column[q] * w[q] * (1.0 - part[q])
        else:
            total = _sparse_square(x[low:high], position[low:high], weight[first:], share[first:])
        out[e] = total


@kernel()
def scatter(members, packed, low, M):
    """``M[a, p - low] = x`` at the positions p of entry ``members[a]``."""
    start, stop, base, position, x = packed
    for a in range(members.size):
        e = members[a]
        for q in range(start[e], stop[e]):
            M[a, base[e] + position[q] - low] = x[q]


@kernel()
def scatter_by_row(packed, row, weight, share, number, M):
    """``M[e, number_i] = x sqrt(weight share)`` at the positions of all entries e, in rows i."""
    start, stop, base, position, x = packed
    for e in range(start.size):
        for q in range(start[e], stop[e]):
            p = base[e] + position[q]
            M[e, number[row[p]]] = x[q] * math.sqrt(weight[p] * share[p])


@kernel()
def dense_sweep(H, slope, u, s, penalty, below):
    """One pass of coordinate descent with H at hand; ``slope = g + H s`` is kept up to date."""
    largest = 0.0
    for e in range(u.size):
        old = u[e] + s[e]
        new = shrunk(old - slope[e] / H[e, e], penalty[e] / H[e, e], below[e] / H[e, e])
        if new != old:
            s[e] = new - u[e]
            for f in range(u.size):
                slope[f] += H[e, f] * (new - old)
            largest = larger(largest, abs(new - old) * H[e, e])
    return largest


@kernel()
def submatrix(H, index, out):
    """``out = H[index][:, index]``, for an index that ascends.

    ``out`` may be the first part of H itself: no entry is written before it is read.
    """
    for a in range(index.size):
        row, into = H[index[a]], out[a]
        for b in range(index.size):
            into[b] = row[index[b]]


@kernel()
def put_back(K, diagonal):
    """Make K symmetric again of what is below the diagonal, and of the diagonal that is given."""
    mirror(K)
    for e in range(diagonal.size):
        K[e, e] = diagonal[e]


@kernel(fastmath={"contract", "nsz"})
def leave_out(K, kept):
    """Let the factor R, ``R^T R = K`` from the diagonal on, be right for what is kept of K.

    Without row j of R, those behind it have to make up for ``R_j^T R_j``: a rotation with what is
    left of R_j takes it into one after the other. From the last that leaves to the first.
    """
    size = K.shape[0]
    stays, x = zeros(size, np.int64), floats(size)
    for a in kept:
        stays[a] = 1
    for j in range(size - 1, -1, -1):
        if stays[j] == 1:
            continue
        for i in range(j + 1, size):
            x[i] = K[j, i]
        for k in range(j + 1, size):
            if stays[k] == 0:
                continue
            length = math.sqrt(K[k, k] * K[k, k] + x[k] * x[k])
            c, s = K[k, k] / length, x[k] / length
            K[k, k] = length
            row, rest = K[k, k + 1 :], x[k + 1 :]
            for i in range(row.size):
                a, b = row[i], rest[i]
                row[i] = c * a + s * b
                rest[i] = c * b - s * a


@helper(fastmath={"reassoc", "contract", "nsz"})
def _times_lower(K, diagonal, x, out):
    """``out = K x`` for the symmetric K with this diagonal, of what is below it."""
    for e in range(x.size):
        row, total, own = K[e, :e], diagonal[e] * x[e], x[e]
        for f in range(row.size):
            total += row[f] * x[f]
            out[f] += row[f] * own
        out[e] = total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def move_on_face(K, diagonal, slope, now, d, free, shorter, moved, product):
    """A step t d from ``now`` at which ``<slope, s> + s^T K s / 2`` falls, and K times it.

    Of K what is below the diagonal is read, and the diagonal that is given.

    What would change its sign and is not free to stops at zero. t is 1, or shorter by that factor
    and again, the last one being the first change of a sign: up to there the model falls. Where K
    is nearly singular that is very short, hence all those between.
    """
    last = 1.0
    for e in range(d.size):
        if not free[e] and (now[e] + d[e]) * now[e] <= 0.0:
            last = smaller(last, -now[e] / d[e])
    t = 1.0
    while True:
        t = larger(t, last)
        for e in range(d.size):
            new = now[e] + t * d[e]
            moved[e] = (new if free[e] or new * now[e] > 0.0 else 0.0) - now[e]
        _times_lower(K, diagonal, moved, product)
        model = 0.0
        for e in range(d.size):
            model += (slope[e] + 0.5 * product[e]) * moved[e]
        if model <= 0.0 or t == last:
            return
        t *= shorter
