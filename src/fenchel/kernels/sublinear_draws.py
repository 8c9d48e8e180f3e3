"""The random draws of the sublinear solver; their laws are in :mod:`fenchel.kernels.sublinear`."""

from __future__ import annotations

import numpy as np
from numba import njit

from fenchel.kernels.sublinear import (
    ALPHA,
    DUAL_USED,
    TILE,
    TRUE,
    W_TAU,
    at,
    block_size,
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
    """The entry in which the running sum passes ``target``, and what of target is left there."""
    last = 0
    for i in range(weights.size):
        if target < weights[i]:
            return i, target
        if weights[i] > 0.0:
            target -= weights[i]
            last = i
    return last, weights[last]  # target was the whole sum, up to rounding


@njit(**inlined)
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


@njit(**inlined)
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


@njit(**inlined)
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
