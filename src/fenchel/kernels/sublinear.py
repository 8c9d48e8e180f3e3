"""The lazy state of the sublinear solver (alg:main) and the pieces that do not read X.

The iterates and what is stored for them
----------------------------------------
The two halves of the doubled U see opposite gradients, so their multipliers are inverse to each
other, and one array serves both::

    U1(i,l) = alpha E(i,l),   U2(i,l) = alpha / E(i,l),   U = U1 - U2
    V(j,l)  = beta_j W(j,l) for l != y_j,   V(j,y_j) = vy_j, a vector of its own

A class that no draw has touched has E = 1 and W = 1 and is not stored. The sum of all iterates up
to the present one is S + (E - 1/E) (A - base_l) for U, with A the sum of the alphas and base_l its
value when class l was last booked, so that S changes only with E; for V it is S + W B_j, with the
sum B_j of the betas since row j was last booked.

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
E and W stay within [1e-150, 1e150], so that nothing overflows or reaches 0, whatever the step. As
a run goes on, alpha and beta fall and the E and W of active entries rise, without end. When alpha
has fallen 110 orders of magnitude it is raised to 40 below where it began, active entries are
divided by the same factor, and those that fell further than that are held there; the same for the
rows of V. It is the exact algorithm but for entries below 1e-40, which find back sooner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fenchel.kernels.exp import exp

TILE = 64
#: Fields of ``State.rows``: beta, V(j, y_j) and its sum, the sum B of the betas since the last
#: flush, the bound on the rounding error of the row sum in units of 1e-16, weight_j tau_j, y_j.
FIELDS = 7
BETA, TRUE, TRUE_SUM, B, ERROR, W_TAU, LABEL = (TILE * f for f in range(FIELDS))
#: Positions in ``State.count``.
T, PRIMAL_USED, DUAL_USED, PRIMAL_FLUSHED, DUAL_FLUSHED = range(5)
FLUSHES, RENORMALISED, ROWS_RENORMALISED, RAISED, ROWS_RAISED = range(5, 10)
#: Positions in ``State.scalar``; the last is the alpha of the start.
ALPHA, A, ALPHA_0 = range(3)

LOW, HIGH = 1e-150, 1e150
#: alpha (against its start) and beta are raised to HELD when they fall below FALLEN.
FALLEN, HELD = 1e-110, 1e-40
#: Exponents are cut here: e^680 already leads from one bound of the range to the other.
MAX_EXPONENT = 680.0
#: A row is renormalised when the bound on its error reaches this many units of 1e-16, and sums of
#: iterates are booked when they exceed the present scale by this factor.
WORN = 1e6
#: A row or class is booked before an exponent larger than this, because S + W B would not survive
#: the jump of W.
JUMP = 7.0

# Sums may be reordered, or no loop with a sum would vectorise. It is stated everywhere, because
# a compiled function without flags of its own takes over those of its first caller.
FAST = {"contract", "reassoc", "nsz", "arcp"}
options: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": FAST, "error_model": "numpy"}
# For what the loop calls at one place only: handing over a state of 26 arrays costs more than most
# of these functions do.
inlined = options | {"forceinline": True}


class State(NamedTuple):
    """Everything that changes, and the constants of the data, as arrays only."""

    rng: np.ndarray  # (2,) uint64: key and counter
    count: np.ndarray  # (10,) int64
    scalar: np.ndarray  # (3,)
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
    block: np.ndarray  # (blocks, n): sums of W over blocks of slots
    rows: np.ndarray  # (tiles * FIELDS * TILE,)
    flushed: np.ndarray  # (n,): the sum of the betas before the last flush
    tile_rho: np.ndarray  # (tiles,): sums of weight tau (1 - V(j, y_j))
    tau: np.ndarray  # (n,) largest entry of a row of X
    column_max: np.ndarray  # (d,) largest entry of a column of X
    y: np.ndarray  # (n,) class codes


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


@njit(**inlined)
def block_size(k):
    return int(np.ceil(np.sqrt(k)))


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
    size = block_size(s.slot.size)
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
    size = block_size(s.slot.size)
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
        size = block_size(s.order.size)
        b = slot // size
        if slot == b * size:
            s.block[b] = 0.0
        s.dual[slot] = 0.0
        for j in range(s.y.size):
            if s.y[j] != l:  # the true class is kept elsewhere
                s.dual[slot, in_class(j)] = 1.0
                s.dual[slot, in_class(j) + TILE] = s.flushed[j]
                s.block[b, j] += 1.0
    return s.place[l]


@njit(**inlined)
def row_step(beta, true, b, error, gain, factor):
    """UpdateDual for one row: ``gain`` is the mass that the drawn class gains before the rows are
    divided by chi (line alg:line-chi), ``factor`` what the true class is multiplied by.

    An error in the row sum grows by 1/chi, as what is left of the row does. A sum of betas too
    large to take up the new one is returned negative. Last comes whether the row is worn.
    """
    chi = max(1.0 + gain + true * (factor - 1.0), 1e-16)
    scale = 1.0 / chi
    beta = max(beta * scale, LOW * 1e-50)
    b = b + beta if b <= WORN * beta else -b
    true = max(true * factor * scale, LOW * LOW)
    error = error * scale + 1.0
    return beta, true, b, error, (error > WORN) | (b < 0.0) | (beta < FALLEN)


@njit(**inlined)
def mend_rows(s, worn):
    """Renormalise the rows that row_step found worn."""
    n = s.y.size
    if worn > 1 + n // 16:
        renormalise(s)
    elif worn > 0:
        for j in range(n):
            if (
                s.rows[at(ERROR, j)] > WORN
                or s.rows[at(B, j)] < 0.0
                or s.rows[at(BETA, j)] < FALLEN
            ):
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
    beta = max(beta * scale, LOW * 1e-50)
    s.rows[at(BETA, j)] = beta
    s.rows[at(TRUE, j)] = max(true * scale, LOW * LOW)
    s.rows[at(ERROR, j)] = 1.0
    b = s.rows[at(B, j)]
    s.flushed[j] += abs(b)
    s.rows[at(B, j)] = beta if b < 0.0 else 0.0


@njit(**options)
def renormalise_row(s, j):
    """Recompute everything that is kept up by increments in row j."""
    used, size, column = s.count[DUAL_USED], block_size(s.order.size), in_class(j)
    b, beta = abs(s.rows[at(B, j)]), s.rows[at(BETA, j)]
    factor = 1.0
    if beta < FALLEN:
        factor = HELD / beta
        s.rows[at(BETA, j)] = HELD
        s.count[ROWS_RAISED] += 1
    mass = float(untouched_classes(s, j))
    for start in range(0, used, size):
        part = 0.0
        for slot in range(start, min(used, start + size)):
            w = s.dual[slot, column]
            s.dual[slot, column + TILE] += w * b
            w = max(w / factor, min(w, 1.0))
            s.dual[slot, column] = w
            part += w
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
                p[TILE + j] += p[j] * abs(betas[j])
    for j in range(n):
        mass = float(untouched_classes(s, j))
        for b in range((used + size - 1) // size):
            mass += s.block[b, j]
        set_row(s, j, mass)
        if s.rows[at(BETA, j)] < FALLEN:
            renormalise_row(s, j)
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
    return min(max(1000, 8 * used), 200_000)


@njit(**inlined)
def cut(c, largest):
    """c, limited so that |c x| <= MAX_EXPONENT for |x| <= largest."""
    limit = MAX_EXPONENT / largest
    return min(max(c, -limit), limit)


@njit(**inlined)
def decay(exponent):
    """e^-exponent, cut as all exponents are."""
    return exp(-min(exponent, MAX_EXPONENT))
