"""The lazy state of the sublinear solver (alg:main) and the pieces that do not read X.

The iterates and what is stored for them
----------------------------------------
The two halves of the doubled U see opposite gradients, so their multipliers are inverse to each
other, and one array serves both::

    U1(i,l) = alpha E(i,l),   U2(i,l) = alpha / E(i,l),   U = U1 - U2
    V(j,l)  = beta_j W(j,l) for l != y_j,   V(j,y_j) = vy_j, a vector of its own

A class that no draw has touched has E = 1 and W = free_j and is not stored; W = 0 marks the true
class. The sum of all iterates up to the present one is S + (E - 1/E) (A - base_l) for U, with A the
sum of the alphas and base_l its value when class l was last booked, so that S changes only with E;
for V it is S + W B_j, with the sum B_j of the betas since row j was last booked. The sum of the
V(j,y_j) follows, since rows sum to one.

Draws
-----
The law of alg:main for (i, l) is proportional to sigma_i U(i,l): the class is drawn first, from the
totals C of the classes, of which one changes in an iteration, then the feature within the class.
For (j, l) the row comes first. Half of |V - Y| in a row is its true class; the others are found
through sums over blocks of about sqrt(k) stored classes.

Layout
------
Vectors that are streamed together lie in one array, in tiles of 64: tile b of an array with F
fields holds field 0 of elements 64b..64b+63, then field 1 of the same elements, and so on. One
pointer with constant offsets is what lets the compiler vectorise loops over eleven vectors.

Range
-----
beta_j stays near 1: when it leaves [1/FAR, FAR], it is multiplied into the W of its row, whose sums
are recomputed on the way. A rounding error in the sum of a row grows as beta does, so that this
also keeps it from growing. Since beta_j cannot change faster than the largest exponents of the
steps, whose sum is kept, the betas are looked at only when that sum exceeds 1. W is V up to FAR,
and stays above 1e-290. alpha falls and the E of active entries rise without end. When alpha has
fallen 120 orders of magnitude it is raised to 60 below where it began, active entries are divided
by the same factor, and those that fell further than that are held there: two arrays of doubles, U1
and U2, would lose the same entries a little later. It is the exact algorithm but for entries of U
below 1e-60, which find back sooner, and those of V below 1e-290.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fenchel.kernels.exp import exp

TILE = 64
#: Fields of ``State.rows``: beta, V(j, y_j), the sum B of the betas since row j was last booked,
#: weight_j tau_j.
FIELDS = 4
BETA, TRUE, B, W_TAU = (TILE * f for f in range(FIELDS))
#: Positions in ``State.count``; the last is the number of classes in a group or block.
T, PRIMAL_USED, DUAL_USED, PRIMAL_FLUSHED, DUAL_FLUSHED = range(5)
FLUSHES, RENORMALISED, ROWS_RENORMALISED, RAISED, SIZE = range(5, 10)
#: Positions in ``State.scalar``: alpha, A, the alpha of the start, the weight of all iterates in
#: the sums (where that of the present one is 1), and how far log beta may have moved since the
#: betas were last looked at.
ALPHA, A, ALPHA_0, TOTAL, MOVED = range(5)

#: E stays within [LOW, HIGH], so that a product of two of its entries is in range.
LOW, HIGH = 1e-150, 1e150
#: alpha, against its start, is raised to HELD when it falls below FALLEN.
FALLEN, HELD = 1e-120, 1e-60
#: The least value of W and of V(j, y_j).
LEAST = 1e-290
#: Rows are renormalised when their beta leaves [1 / FAR, FAR].
FAR = 8.0
#: Exponents are cut here: e^680 already leads from one bound of the range to the other.
MAX_EXPONENT = 680.0
#: Sums of alphas are booked when they exceed the present alpha by this factor.
WORN = 1e6
#: A row or class is booked before an exponent larger than this, because S + W B would not survive
#: the jump of W.
JUMP = 7.0

# Sums may be reordered, or no loop with a sum would vectorise. It is stated everywhere, because
# a compiled function without flags of its own takes over those of its first caller.
FAST = {"contract", "reassoc", "nsz", "arcp"}
options: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": FAST, "error_model": "numpy"}
# For what the loop calls at one place only: handing over a state of 28 arrays costs more than most
# of these functions do.
inlined = options | {"forceinline": True}


class State(NamedTuple):
    """Everything that changes, and the constants of the data, as arrays only."""

    rng: np.ndarray  # (2,) uint64: key and counter
    count: np.ndarray  # (10,) int64
    scalar: np.ndarray  # (5,)
    # primal: slots of touched classes
    slot: np.ndarray  # (k,) slot of a class, or -1
    primal: np.ndarray  # (capacity, 2 * padded d): tiles of E and S
    base: np.ndarray  # (capacity,)
    tile_sigma: np.ndarray  # (capacity, tiles): sums of sigma (E + 1/E)
    tile_mass: np.ndarray  # (capacity, tiles): sums of E + 1/E
    sigma: np.ndarray  # (d,) column norms
    sigma_untouched: np.ndarray  # (tiles,): tile_sigma of an untouched class
    class_sigma: np.ndarray  # (k,)
    class_mass: np.ndarray  # (k,)
    group_sigma: np.ndarray  # (groups,) sums of class_sigma over groups of classes
    group_mass: np.ndarray  # (groups,)
    # dual: order[:used] are the touched classes in the order of their slots
    order: np.ndarray  # (k,)
    place: np.ndarray  # (k,) the inverse of order
    dual: np.ndarray  # (capacity, 2 * padded n): tiles of W and S
    block: np.ndarray  # (blocks, padded n): sums of W over blocks of slots
    rows: np.ndarray  # (tiles * FIELDS * TILE,)
    free: np.ndarray  # (n,): W of a class that is not stored
    flushed: np.ndarray  # (n,): S of a class that is not stored
    tile_rho: np.ndarray  # (tiles,): sums of weight tau (1 - V(j, y_j))
    tau: np.ndarray  # (n,) largest entry of a row of X
    column_max: np.ndarray  # (d,) largest entry of a column of X
    y: np.ndarray  # (n,) class codes
    law: np.ndarray  # (TILE,) work space of the draws


@njit(**inlined)
def total(weights):
    s = 0.0
    for i in range(weights.size):
        s += weights[i]
    return s


@njit(**inlined)
def at(field, j):
    """Where element j of a field of ``rows`` lies."""
    return (j // TILE) * (FIELDS * TILE) + field + j % TILE


@njit(**inlined)
def in_class(i):
    """Where element i of E or W lies in the row of its class; S is TILE further."""
    return (i // TILE) * (2 * TILE) + i % TILE


# -- the primal side -----------------------------------------------------------------------------


@njit(**inlined)
def primal_slot(s, l):
    """The slot of class l, made on its first touch."""
    slot = s.slot[l]
    if slot < 0:
        slot = s.count[PRIMAL_USED]
        s.count[PRIMAL_USED] += 1
        s.slot[l] = slot
        s.base[slot] = s.scalar[A]  # E - 1/E was 0 so far
        row = s.primal[slot]
        for b in range(row.size // (2 * TILE)):
            for i in range(TILE):
                row[2 * b * TILE + i] = 1.0
                row[(2 * b + 1) * TILE + i] = 0.0
            s.tile_sigma[slot, b] = s.sigma_untouched[b]
            s.tile_mass[slot, b] = 2.0 * min(TILE, s.sigma.size - b * TILE)
    return slot


@njit(**inlined)
def scale_primal(s, l, slot, shrink, radius):
    """The rest of UpdatePrimal once E(:,l) has changed: nu scales alpha, and with it all of U."""
    s.class_sigma[l] = total(s.tile_sigma[slot])
    s.class_mass[l] = total(s.tile_mass[slot])
    size = s.count[SIZE]
    g = l // size
    s.group_sigma[g] = total(s.class_sigma[g * size : (g + 1) * size])
    s.group_mass[g] = total(s.class_mass[g * size : (g + 1) * size])
    alpha = max(LOW * LOW, min(s.scalar[ALPHA] * shrink, radius / total(s.group_mass)))
    s.scalar[ALPHA] = alpha
    if s.scalar[A] > WORN * alpha:  # or the sum would lose the new term
        flush_primal(s)
    s.scalar[A] += alpha


@njit(**options)
def book_class(s, slot):
    """Bring S of a class up to the present iterate."""
    since = s.scalar[A] - s.base[slot]
    row = s.primal[slot]
    for b in range(row.size // (2 * TILE)):
        p = row[2 * b * TILE : 2 * (b + 1) * TILE]
        for i in range(TILE):
            p[TILE + i] += (p[i] - 1.0 / p[i]) * since
    s.base[slot] = s.scalar[A]


@njit(**options)
def raise_alpha(s):
    """Bring alpha back into range; entries that are negligible become equal."""
    flush_primal(s)
    factor = HELD * s.scalar[ALPHA_0] / s.scalar[ALPHA]
    for slot in range(s.count[PRIMAL_USED]):
        for i in range(s.sigma.size):
            p = in_class(i)
            e = s.primal[slot, p]
            s.primal[slot, p] = max(e / factor, 1.0) if e > 1.0 else min(e * factor, 1.0)
        for b in range(s.sigma_untouched.size):
            sum_tile(s, slot, b)
    for l in range(s.slot.size):
        if s.slot[l] >= 0:
            s.class_sigma[l] = total(s.tile_sigma[s.slot[l]])
            s.class_mass[l] = total(s.tile_mass[s.slot[l]])
    size = s.count[SIZE]
    for g in range(s.group_mass.size):
        s.group_sigma[g] = total(s.class_sigma[g * size : (g + 1) * size])
        s.group_mass[g] = total(s.class_mass[g * size : (g + 1) * size])
    s.scalar[ALPHA] *= factor
    s.count[RAISED] += 1


@njit(**options)
def sum_tile(s, slot, b):
    """Sum sigma (E + 1/E) and E + 1/E over a tile of a class."""
    row = s.primal[slot]
    sigma_sum, mass = 0.0, 0.0
    for i in range(b * TILE, min(s.sigma.size, (b + 1) * TILE)):
        e = row[in_class(i)]
        both = e + 1.0 / e
        sigma_sum += s.sigma[i] * both
        mass += both
    s.tile_sigma[slot, b] = sigma_sum
    s.tile_mass[slot, b] = mass


@njit(**options)
def flush_primal(s):
    """Book all classes and start A afresh."""
    for slot in range(s.count[PRIMAL_USED]):
        book_class(s, slot)
        s.base[slot] = 0.0
    s.scalar[A] = 0.0
    s.count[PRIMAL_FLUSHED] = s.count[T]
    s.count[FLUSHES] += 1


# -- the dual side -------------------------------------------------------------------------------


@njit(**inlined)
def dual_slot(s, l):
    """The slot of class l, made on its first touch."""
    if s.place[l] >= s.count[DUAL_USED]:
        slot = s.count[DUAL_USED]
        s.count[DUAL_USED] += 1
        other, p = s.order[slot], s.place[l]
        s.order[slot], s.order[p] = l, other
        s.place[l], s.place[other] = slot, p
        b = slot // s.count[SIZE]
        if slot == b * s.count[SIZE]:
            s.block[b] = 0.0
        s.dual[slot] = 0.0
        for j in range(s.y.size):
            if s.y[j] != l:  # the true class is kept elsewhere
                s.dual[slot, in_class(j)] = s.free[j]
                s.dual[slot, in_class(j) + TILE] = s.flushed[j]
                s.block[b, j] += s.free[j]
    return s.place[l]


@njit(**inlined)
def row_step(beta, true, b, gain, factor):
    """UpdateDual for one row: ``gain`` is the mass that the drawn class gains before the rows are
    divided by chi (line alg:line-chi), ``factor`` what the true class is multiplied by."""
    scale = 1.0 / max(1.0 + gain + true * (factor - 1.0), 1e-16)
    beta *= scale
    return beta, max(true * factor * scale, LEAST), b + beta


@njit(**inlined)
def look_at_rows(s, exponent):
    """Renormalise rows whose beta is far from 1; ``exponent`` is the largest of the last step."""
    s.scalar[MOVED] += exponent
    if s.scalar[MOVED] <= 1.0:
        return
    s.scalar[MOVED] = 0.0
    far = 0
    for t in range(s.tile_rho.size):
        beta = s.rows[t * FIELDS * TILE + BETA : t * FIELDS * TILE + BETA + TILE]
        for j in range(TILE):
            far += (beta[j] > FAR) | (beta[j] < 1.0 / FAR)
    if far > 1 + s.y.size // 16:
        renormalise(s)
    elif far > 0:
        for j in range(s.y.size):
            if not 1.0 / FAR <= s.rows[at(BETA, j)] <= FAR:
                renormalise_row(s, j)


@njit(**options)
def free_classes(s, j):
    """How many classes of row j, its own left out, are not stored."""
    used = s.count[DUAL_USED]
    return s.order.size - used - (1 if s.place[s.y[j]] >= used else 0)


@njit(**inlined)
def booked(w, scale):
    """w in a row that is multiplied by ``scale``; 0 stays 0."""
    return max(w * scale, min(w, LEAST))


@njit(**options)
def close_row(s, j, scale):
    """The rest of a renormalisation, once W of row j has been multiplied by beta and ``scale``."""
    true = at(TRUE, j)
    s.rows[true] = max(s.rows[true] * scale, LEAST)
    s.flushed[j] += s.free[j] * s.rows[at(B, j)]
    # at most 1 where there is such a class; where there is none, it must not grow without end
    s.free[j] = min(booked(s.free[j], s.rows[at(BETA, j)] * scale), 1.0)
    s.rows[at(BETA, j)] = 1.0
    s.rows[at(B, j)] = 0.0


@njit(**options)
def renormalise_row(s, j):
    """Book row j, multiply beta into it, and recompute everything that is kept up by increments."""
    used, size, column = s.count[DUAL_USED], s.count[SIZE], in_class(j)
    b, beta = s.rows[at(B, j)], s.rows[at(BETA, j)]
    mass = free_classes(s, j) * s.free[j]
    for slot in range(used):
        w = s.dual[slot, column]
        s.dual[slot, column + TILE] += w * b
        mass += w
    scale = 1.0 / (s.rows[at(TRUE, j)] + beta * mass)
    for start in range(0, used, size):
        part = 0.0
        for slot in range(start, min(used, start + size)):
            w = booked(s.dual[slot, column], beta * scale)
            s.dual[slot, column] = w
            part += w
        s.block[start // size, j] = part
    close_row(s, j, scale)
    sum_tile_rho(s, j // TILE)
    s.count[ROWS_RENORMALISED] += 1


@njit(**options)
def renormalise(s):
    """The same for all rows, class by class."""
    n, used, size, tiles = s.y.size, s.count[DUAL_USED], s.count[SIZE], s.tile_rho.size
    factor = np.zeros(tiles * TILE)
    for j in range(n):
        factor[j] = free_classes(s, j) * s.free[j]
    for slot in range(used):
        for t in range(tiles):
            p = s.dual[slot, 2 * t * TILE : 2 * (t + 1) * TILE]
            r = s.rows[t * FIELDS * TILE : (t + 1) * FIELDS * TILE]
            mass = factor[t * TILE : (t + 1) * TILE]
            for j in range(TILE):
                p[TILE + j] += p[j] * r[B + j]
                mass[j] += p[j]
    for j in range(n):
        beta = s.rows[at(BETA, j)]
        scale = 1.0 / (s.rows[at(TRUE, j)] + beta * factor[j])
        factor[j] = beta * scale
        close_row(s, j, scale)
    s.block[: (used + size - 1) // size] = 0.0
    for slot in range(used):
        for t in range(tiles):
            p = s.dual[slot, 2 * t * TILE : 2 * (t + 1) * TILE]
            q = s.block[slot // size, t * TILE : (t + 1) * TILE]
            f = factor[t * TILE : (t + 1) * TILE]
            for j in range(TILE):
                w = booked(p[j], f[j])
                p[j] = w
                q[j] += w
    for b in range(s.tile_rho.size):
        sum_tile_rho(s, b)
    s.count[DUAL_FLUSHED] = s.count[T]
    s.count[RENORMALISED] += 1


@njit(**options)
def sum_tile_rho(s, b):
    weight = 0.0
    for j in range(b * TILE, min(s.y.size, (b + 1) * TILE)):
        weight += s.rows[at(W_TAU, j)] * (1.0 - s.rows[at(TRUE, j)])
    s.tile_rho[b] = weight


@njit(**inlined)
def upkeep(s):
    """Recompute and flush everything once in a while, at a small share of the cost of all."""
    t = s.count[T]
    if s.scalar[ALPHA] < FALLEN * s.scalar[ALPHA_0]:
        raise_alpha(s)
    if t - s.count[PRIMAL_FLUSHED] >= period(s.count[PRIMAL_USED]):
        flush_primal(s)
    if t - s.count[DUAL_FLUSHED] >= period(s.count[DUAL_USED]):
        renormalise(s)


@njit(**inlined)
def period(used):
    return min(max(1000, 32 * used), 100_000)


@njit(**inlined)
def cut(c, largest):
    """c, limited so that |c x| <= MAX_EXPONENT for |x| <= largest."""
    limit = MAX_EXPONENT / largest
    return min(max(c, -limit), limit)


@njit(**inlined)
def decay(exponent):
    """e^-exponent, cut as all exponents are."""
    return exp(-min(exponent, MAX_EXPONENT))
