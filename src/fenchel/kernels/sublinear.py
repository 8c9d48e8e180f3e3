"""The lazy state of the sublinear solver (alg:main) and the pieces that do not read X.

The iterates and what is stored for them
----------------------------------------
The two halves of the doubled U see opposite gradients, so their multipliers are inverse to each
other, and one array serves both::

    U1(i,l) = alpha E(i,l),   U2(i,l) = alpha / E(i,l),   U = U1 - U2
    V(j,l)  = beta_j W(j,l) for l != y_j,   V(j,y_j) = vy_j, a vector of its own

A class that no draw has touched has E = 1 and W = 1 and is not stored. Sums of past iterates are
kept as (sum so far) = S + (E - 1/E) A, with A the sum of the alphas since the last flush, so that
S changes only where E does; likewise for V with the vector B of sums of beta.

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
E and W stay within [1e-150, 1e150]; an entry held at a bound is 150 orders of magnitude away from
an untouched one. Nothing overflows or reaches 0 then, whatever the step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from fenchel.kernels.exp import exp

TILE = 64
#: Fields of ``State.rows``: beta, V(j, y_j) and its sum, the sum B of the betas since the last
#: flush, the bound on the rounding error of the row sum in units of 1e-16, weight_j tau_j, y_j.
FIELDS = 7
BETA, TRUE, TRUE_SUM, B, ERROR, W_TAU, LABEL = (TILE * f for f in range(FIELDS))
#: Positions in ``State.count``.
(
    T,
    PRIMAL_USED,
    DUAL_USED,
    PRIMAL_FLUSHED,
    DUAL_FLUSHED,
    FLUSHES,
    RENORMALISED,
    ROWS_RENORMALISED,
) = range(8)
#: Positions in ``State.scalar``.
ALPHA, A = range(2)

LOW, HIGH = 1e-150, 1e150
#: Exponents are cut here: e^680 already leads from one bound of the range to the other.
MAX_EXPONENT = 680.0
#: A row is renormalised when the bound on its error reaches this many units of 1e-16, and sums of
#: iterates are flushed when they exceed the present scale by this factor.
WORN = 1e6

# Sums may be reordered, or no loop with a sum would vectorise. It is stated everywhere, because
# a compiled function without flags of its own takes over those of its first caller.
FAST = {"contract", "reassoc", "nsz", "arcp"}
options = {"cache": True, "nogil": True, "fastmath": FAST, "error_model": "numpy"}


class State(NamedTuple):
    """Everything that changes, and the constants of the data, as arrays only."""

    rng: np.ndarray  # (2,) uint64: key and counter
    count: np.ndarray  # (8,) int64
    scalar: np.ndarray  # (2,)
    # primal: slots of touched classes
    slot: np.ndarray  # (k,) slot of a class, or -1
    primal: np.ndarray  # (capacity, 2 * padded d): tiles of E and S
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
    block: np.ndarray  # (blocks, n): sums of W over blocks of slots
    rows: np.ndarray  # (tiles * FIELDS * TILE,)
    flushed: np.ndarray  # (n,): the sum of the betas before the last flush
    tile_rho: np.ndarray  # (tiles,): sums of weight tau (1 - V(j, y_j))
    tau: np.ndarray  # (n,) largest entry of a row of X
    column_max: np.ndarray  # (d,) largest entry of a column of X
    y: np.ndarray  # (n,) class codes


@njit(**options)
def uniform(rng):
    """The next number in [0, 1): a counter, mixed (splitmix64)."""
    rng[1] += np.uint64(1)
    z = rng[0] + rng[1] * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(**options)
def pick(weights, target):
    """The entry in which the running sum passes ``target``, and what of target is left there."""
    last = 0
    for i in range(weights.size):
        if target < weights[i]:
            return i, target
        if weights[i] > 0.0:
            target -= weights[i]
            last = i
    return last, weights[last]  # target was the whole sum, up to rounding


@njit(**options)
def total(weights):
    s = 0.0
    for i in range(weights.size):
        s += weights[i]
    return s


@njit(**options)
def at(field, j):
    """Where element j of a field of ``rows`` lies."""
    return (j // TILE) * (FIELDS * TILE) + field + j % TILE


@njit(**options)
def in_class(i):
    """Where element i of E or W lies in the row of its class; S is TILE further."""
    return (i // TILE) * (2 * TILE) + i % TILE


# -- draws ---------------------------------------------------------------------------------------


@njit(**options)
def draw_row(s):
    """j ~ weight tau rho, and the total of weight tau rho; rho_j = 2 - 2 V(j, y_j)."""
    half = total(s.tile_rho)
    b, target = pick(s.tile_rho, uniform(s.rng) * half)
    n = s.y.size
    j = b * TILE
    for i in range(b * TILE, min(n, (b + 1) * TILE)):
        weight = s.rows[at(W_TAU, i)] * (1.0 - s.rows[at(TRUE, i)])
        if weight > 0.0:
            j = i
            if target < weight:
                break
            target -= weight
    return j, 2.0 * half


@njit(**options)
def draw_class_of_row(s, j):
    """l ~ |V(j,:) - Y(j,:)| and the sign of that entry."""
    u = uniform(s.rng)
    if u < 0.5:
        return s.y[j], -1.0
    used, k = s.count[DUAL_USED], s.order.size
    mine = s.place[s.y[j]]
    free = k - used - (1 if mine >= used else 0)
    size, column = block_size(k), in_class(j)
    blocks = (used + size - 1) // size
    mass = float(free)
    for b in range(blocks):
        mass += max(s.block[b, j], 0.0)
    target = (2.0 * u - 1.0) * mass
    last = -1
    for b in range(blocks):
        weight = s.block[b, j]
        if target < weight:
            for c in range(b * size, min(used, (b + 1) * size)):
                weight = s.dual[c, column]
                if weight > 0.0:
                    last = c
                    if target < weight:
                        break
                    target -= weight
            return s.order[last], 1.0
        if weight > 0.0:
            target -= weight
            last = min(used, (b + 1) * size) - 1
    if free == 0:
        return s.order[last], 1.0
    p = used + min(int(target), free - 1)
    if mine >= used and p >= mine:
        p += 1
    return s.order[p], 1.0


@njit(**options)
def draw_entry(s):
    """(i, l) ~ sigma_i U(i,l) over both halves, the sign of the half, and the total."""
    whole = total(s.group_sigma)
    g, target = pick(s.group_sigma, uniform(s.rng) * whole)
    size = block_size(s.slot.size)
    l, _ = pick(s.class_sigma[g * size : (g + 1) * size], target)
    l += g * size
    slot, u = s.slot[l], uniform(s.rng)
    tiles = s.sigma_untouched if slot < 0 else s.tile_sigma[slot]
    b, target = pick(tiles, u * total(tiles))
    i, sign = b * TILE, 1.0
    for c in range(b * TILE, min(s.sigma.size, (b + 1) * TILE)):
        e = 1.0 if slot < 0 else s.primal[slot, in_class(c)]
        plus, minus = s.sigma[c] * e, s.sigma[c] / e
        if plus + minus > 0.0:
            i = c
            sign = 1.0 if target < plus else -1.0
            if target < plus + minus:
                break
            target -= plus + minus
    return i, l, sign, s.scalar[ALPHA] * whole


@njit(**options)
def block_size(k):
    return int(np.ceil(np.sqrt(k)))


# -- the primal side -----------------------------------------------------------------------------


@njit(**options)
def primal_slot(s, l):
    """The slot of class l, made on its first touch."""
    slot = s.slot[l]
    if slot < 0:
        slot = s.count[PRIMAL_USED]
        s.count[PRIMAL_USED] += 1
        s.slot[l] = slot
        row = s.primal[slot]
        for b in range(row.size // (2 * TILE)):
            for i in range(TILE):
                row[2 * b * TILE + i] = 1.0
                row[(2 * b + 1) * TILE + i] = 0.0
            s.tile_sigma[slot, b] = s.sigma_untouched[b]
            s.tile_mass[slot, b] = 2.0 * min(TILE, s.sigma.size - b * TILE)
    return slot


@njit(**options)
def scale_primal(s, l, slot, shrink, radius):
    """The rest of UpdatePrimal once E(:,l) has changed: nu scales alpha, and with it all of U."""
    s.class_sigma[l] = total(s.tile_sigma[slot])
    s.class_mass[l] = total(s.tile_mass[slot])
    size = block_size(s.slot.size)
    g = l // size
    s.group_sigma[g] = total(s.class_sigma[g * size : (g + 1) * size])
    s.group_mass[g] = total(s.class_mass[g * size : (g + 1) * size])
    s.scalar[ALPHA] = max(LOW * LOW, min(s.scalar[ALPHA] * shrink, radius / total(s.group_mass)))


@njit(**options)
def flush_primal(s):
    """Book the sums of past iterates in S and start A afresh."""
    for slot in range(s.count[PRIMAL_USED]):
        row = s.primal[slot]
        for b in range(row.size // (2 * TILE)):
            p = row[2 * b * TILE : 2 * (b + 1) * TILE]
            for i in range(TILE):
                p[TILE + i] += (p[i] - 1.0 / p[i]) * s.scalar[A]
    s.scalar[A] = 0.0
    s.count[PRIMAL_FLUSHED] = s.count[T]
    s.count[FLUSHES] += 1


# -- the dual side -------------------------------------------------------------------------------


@njit(**options)
def dual_slot(s, l):
    """The slot of class l, made on its first touch."""
    if s.place[l] >= s.count[DUAL_USED]:
        slot = s.count[DUAL_USED]
        s.count[DUAL_USED] += 1
        other, p = s.order[slot], s.place[l]
        s.order[slot], s.order[p] = l, other
        s.place[l], s.place[other] = slot, p
        size = block_size(s.order.size)
        b = slot // size
        fresh = slot == b * size
        for j in range(s.y.size):
            w = 0.0 if s.y[j] == l else 1.0  # the true class is kept elsewhere
            s.dual[slot, in_class(j)] = w
            s.dual[slot, in_class(j) + TILE] = w * s.flushed[j]
            s.block[b, j] = w + (0.0 if fresh else s.block[b, j])
    return s.place[l]


@njit(forceinline=True, **options)
def row_step(beta, true, b, error, gain, factor):
    """UpdateDual for one row: ``gain`` is the mass that the drawn class gains before the rows are
    divided by chi (line alg:line-chi), ``factor`` what the true class is multiplied by.

    An error in the row sum grows by 1/chi, as what is left of the row does.
    """
    chi = max(1.0 + gain + true * (factor - 1.0), 1e-16)
    scale = 1.0 / chi
    b += beta
    beta = max(beta * scale, LOW * 1e-50)
    true = max(true * factor * scale, LOW * LOW)
    error = error * scale + 1.0
    return beta, true, b, error, (error > WORN) | (b > WORN * beta)


@njit(**options)
def mend_rows(s, worn):
    """Renormalise the rows that row_step found worn."""
    n = s.y.size
    if worn > 1 + n // 16:
        renormalise(s)
    elif worn > 0:
        for j in range(n):
            if s.rows[at(ERROR, j)] > WORN or s.rows[at(B, j)] > WORN * s.rows[at(BETA, j)]:
                renormalise_row(s, j)


@njit(**options)
def untouched_classes(s, j):
    """How many classes of row j, its own left out, are not stored."""
    used = s.count[DUAL_USED]
    return s.order.size - used - (1 if s.place[s.y[j]] >= used else 0)


@njit(**options)
def set_row(s, j, mass):
    """Divide row j by its sum, given the sum of its W, and start its sums of betas afresh."""
    beta, true = s.rows[at(BETA, j)], s.rows[at(TRUE, j)]
    scale = 1.0 / (true + beta * mass)
    s.rows[at(BETA, j)] = max(beta * scale, LOW * 1e-50)
    s.rows[at(TRUE, j)] = max(true * scale, LOW * LOW)
    s.rows[at(ERROR, j)] = 1.0
    s.flushed[j] += s.rows[at(B, j)]
    s.rows[at(B, j)] = 0.0


@njit(**options)
def renormalise_row(s, j):
    """Recompute everything that is kept up by increments in row j."""
    used, size, column = s.count[DUAL_USED], block_size(s.order.size), in_class(j)
    b = s.rows[at(B, j)]
    mass = float(untouched_classes(s, j))
    for start in range(0, used, size):
        part = 0.0
        for slot in range(start, min(used, start + size)):
            part += s.dual[slot, column]
            s.dual[slot, column + TILE] += s.dual[slot, column] * b
        s.block[start // size, j] = part
        mass += part
    set_row(s, j, mass)
    sum_tile_rho(s, j // TILE)
    s.count[ROWS_RENORMALISED] += 1


@njit(**options)
def renormalise(s):
    """The same for all rows, class by class."""
    n, used, size = s.y.size, s.count[DUAL_USED], block_size(s.order.size)
    s.block[: (used + size - 1) // size] = 0.0
    for slot in range(used):
        for b in range((n + TILE - 1) // TILE):
            width = min(TILE, n - b * TILE)
            p = s.dual[slot, 2 * b * TILE : 2 * (b + 1) * TILE]
            betas = s.rows[b * FIELDS * TILE + B : b * FIELDS * TILE + B + TILE]
            q = s.block[slot // size, b * TILE : b * TILE + width]
            for j in range(width):
                q[j] += p[j]
                p[TILE + j] += p[j] * betas[j]
    for j in range(n):
        mass = float(untouched_classes(s, j))
        for b in range((used + size - 1) // size):
            mass += s.block[b, j]
        set_row(s, j, mass)
    for b in range((n + TILE - 1) // TILE):
        sum_tile_rho(s, b)
    s.count[DUAL_FLUSHED] = s.count[T]
    s.count[RENORMALISED] += 1


@njit(**options)
def sum_tile_rho(s, b):
    weight = 0.0
    for j in range(b * TILE, min(s.y.size, (b + 1) * TILE)):
        weight += s.rows[at(W_TAU, j)] * (1.0 - s.rows[at(TRUE, j)])
    s.tile_rho[b] = weight


@njit(**options)
def upkeep(s):
    """Once in so many iterations, at a small share of their cost, recompute and flush everything."""
    t = s.count[T]
    if t - s.count[PRIMAL_FLUSHED] >= period(s.count[PRIMAL_USED]) or s.scalar[A] > (
        WORN * s.scalar[ALPHA]
    ):
        flush_primal(s)
    if t - s.count[DUAL_FLUSHED] >= period(s.count[DUAL_USED]):
        renormalise(s)


@njit(**options)
def period(used):
    return min(max(1000, 8 * used), 200_000)


@njit(**options)
def cut(c, largest):
    """c, limited so that |c x| <= MAX_EXPONENT for |x| <= largest."""
    limit = MAX_EXPONENT / largest
    return min(max(c, -limit), limit)


@njit(**options)
def decay(exponent):
    """e^-exponent, cut as all exponents are."""
    return exp(-min(exponent, MAX_EXPONENT))
