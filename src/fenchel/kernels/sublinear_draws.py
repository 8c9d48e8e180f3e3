"""The random draws of the sublinear solver; their laws are in :mod:`fenchel.kernels.sublinear`."""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel.kernels.sublinear import (
    ALPHA,
    DUAL_USED,
    FIELDS,
    SIZE,
    TILE,
    TRUE,
    W_TAU,
    in_class,
    inlined,
    total,
)


@njit(**inlined)
def uniform(rng):
    """The next number in [0, 1): a counter, mixed (splitmix64)."""
    rng[1] += np.uint64(1)
    z = rng[0] + rng[1] * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@njit(**inlined)
def pick(weights, target):
    """The entry in which the running sum passes ``target``, and what of target is left there.

    Eights first: a subtraction waits for the one before it, the sums of eight do not.
    """
    size, start = weights.size, 0
    while start + 8 <= size:
        w = weights[start : start + 8]
        eight = ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]))
        if target < eight:
            break
        target -= eight
        start += 8
    for i in range(start, size):
        if target < weights[i]:
            return i, target
        target -= weights[i]
    last = size - 1  # target was the whole sum, up to rounding
    while last > 0 and weights[last] <= 0.0:
        last -= 1
    return last, weights[last]


@njit(**inlined)
def draw_row(s):
    """j ~ weight tau rho, and the total of weight tau rho; rho_j = 2 - 2 V(j, y_j)."""
    half = total(s.tile_rho)
    b, target = pick(s.tile_rho, uniform(s.rng) * half)
    r = s.rows[b * FIELDS * TILE : (b + 1) * FIELDS * TILE]
    for i in range(TILE):
        s.law[i] = r[W_TAU + i] * (1.0 - r[TRUE + i])  # 0 in the padding
    j, _ = pick(s.law[:TILE], target)
    return b * TILE + j, 2.0 * half


@njit(**inlined)
def draw_class_of_row(s, j):
    """l ~ |V(j,:) - Y(j,:)| and the sign of that entry."""
    u = uniform(s.rng)
    if u < 0.5:
        return s.y[j], -1.0
    used, size, column = s.count[DUAL_USED], s.count[SIZE], in_class(j)
    mine, w_free = s.place[s.y[j]], s.free[j]
    free = s.order.size - used - (1 if mine >= used else 0)
    blocks = (used + size - 1) // size
    mass = free * w_free
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
    p = used + min(int(target / w_free), free - 1)
    if mine >= used and p >= mine:
        p += 1
    return s.order[p], 1.0


@njit(**inlined)
def draw_entry(s):
    """(i, l) ~ sigma_i U(i,l) over both halves, the sign of the half, and the total."""
    whole = total(s.group_sigma)
    g, target = pick(s.group_sigma, uniform(s.rng) * whole)
    size = s.count[SIZE]
    l, _ = pick(s.class_sigma[g * size : (g + 1) * size], target)
    l += g * size
    slot, u = s.slot[l], uniform(s.rng)
    tiles = s.sigma_untouched if slot < 0 else s.tile_sigma[slot]
    b, target = pick(tiles, u * total(tiles))
    width = min(TILE, s.sigma.size - b * TILE)
    sigma = s.sigma[b * TILE : b * TILE + width]
    if slot < 0:
        for c in range(width):
            s.law[c] = 2.0 * sigma[c]
    else:
        E = s.primal[slot, 2 * b * TILE : 2 * b * TILE + width]
        for c in range(width):
            s.law[c] = sigma[c] * (E[c] + 1.0 / E[c])
    c, target = pick(s.law[:width], target)
    i = b * TILE + c
    e = 1.0 if slot < 0 else s.primal[slot, in_class(i)]
    sign = 1.0 if target < s.sigma[i] * e else -1.0
    return i, l, sign, s.scalar[ALPHA] * whole
