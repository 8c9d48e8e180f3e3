"""The quadratic model of a Newton step with an l1 penalty, minimised over a working set.

Over steps s of the entries e = (j, l) of U, with ``D = X s`` on the positions of
:mod:`fenchel.kernels.curvature`::

    <g, s> + 1/2 sum_p weight_p D_p (D_p - mean_i(p)) + 1/2 sum_e damping_e s_e^2
        + sum_e penalty_e |u_e + s_e|,            mean_i = sum_{p in row i} share_p D_p

with ``below_e`` in place of ``penalty_e`` for negative values: infinite where none is allowed.

Coordinate descent finds which entries are non-zero; on that face the model is quadratic and is
minimised by a direct solve when the face is small, by conjugate gradients preconditioned with the
class blocks of the Hessian when it is not. The loops are in :mod:`fenchel.kernels.l1_newton`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from fenchel.kernels import l1_newton as kernels
from fenchel.threads import one_thread

#: Class blocks of the preconditioner have at most this many entries.
BLOCK = 256

#: Blocks up to this size are inverted in one compiled loop, because there are many of them.
SMALL_BLOCK = 48

#: The Hessian of a small working set is formed when that takes at most so many multiplications.
DENSE_SIZE, DENSE_WORK = 700, 1 << 29

#: The same where X is dense and BLAS does it all.
BLAS_SIZE, BLAS_WORK = 2500, 1 << 35

#: A step on the face is shortened by this factor, as far as the first change of sign.
SHORTER = 0.4

#: Conjugate gradients reduce the slopes to this part as long as entries leave the face.
EARLIER_FACE = 0.1

#: With H at hand: rounds, sweeps of a round, and solves on a face that gets smaller.
ROUNDS, SWEEPS, SOLVES = 20, 3, 5


class Effort(NamedTuple):
    """How much work is put into a model whose Hessian is not formed, and when it is formed.

    Rounds of so many sweeps and at most so many conjugate gradient iterations; the Hessian is
    formed where it costs no more than so many products with it.
    """

    rounds: int
    sweeps: int
    cg: int
    products: float


def minimise_model(
    klass: np.ndarray,
    packed: tuple,
    positions: tuple,
    g: np.ndarray,
    u: np.ndarray,
    penalty: np.ndarray,
    below: np.ndarray,
    damping: np.ndarray,
    tol: float,
    effort: Effort,
) -> tuple[np.ndarray, int]:
    """Minimise the model to ``tol`` in the subgradient, or as far as the limits allow.

    Returns
    -------
    s : the steps.
    n_iter : conjugate gradient iterations made.
    """
    size, row = u.size, positions[0]
    with one_thread():
        if forms_hessian(size, min(_rows(row), row.size // 2)):
            H = hessian(klass, packed, positions, damping)
            return minimise_dense(H, g, u, penalty, below, tol), 0
        return minimise_packed(klass, packed, positions, g, u, penalty, below, damping, tol, effort)


def forms_hessian(size: int, n_rows: int, blas: bool = False) -> bool:
    """Whether the Hessian of so many entries is formed: the faster way where it is small."""
    most, work = (BLAS_SIZE, BLAS_WORK) if blas else (DENSE_SIZE, DENSE_WORK)
    return size <= most and size * size * n_rows <= work


def minimise_dense(
    H: np.ndarray,
    g: np.ndarray,
    u: np.ndarray,
    penalty: np.ndarray,
    below: np.ndarray,
    tol: float,
) -> np.ndarray:
    """Minimise the model with H at hand, where it can be done (nearly) exactly."""
    s = np.zeros(u.size)
    slope = g.copy()  # g + H s
    for _ in range(ROUNDS):
        for _ in range(SWEEPS):
            if kernels.dense_sweep(H, slope, u, s, penalty, below) <= tol:
                return s
        change = _minimise_on_face(H, slope, u + s, penalty, below == 0.0)
        s += change
        slope += H @ change
    return s


def _minimise_on_face(
    H: np.ndarray, slope: np.ndarray, v: np.ndarray, penalty: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The change of v that minimises the model over its non-zeros and what is free of penalty.

    The others keep their signs. Those that would change it are left at zero, one solve after the
    other, before a sweep may take them in again: where H is nearly singular, sweeps in between
    bring back what has just left.
    """
    face = np.flatnonzero((v != 0.0) | free)
    K, now, free = kernels.submatrix(H, face), v[face], free[face]
    slope = slope[face] + penalty[face] * np.sign(now)
    change = np.zeros(v.size)
    for _ in range(SOLVES if face.size else 0):
        moved, product = np.empty(face.size), np.empty(face.size)
        kernels.move_on_face(K, slope, now, _solve(K.copy(), -slope), free, SHORTER, moved, product)
        now += moved
        slope += product
        change[face] = now - v[face]
        kept = np.flatnonzero((now != 0.0) | free)
        if kept.size in (0, face.size):
            break
        face, K, now = face[kept], kernels.submatrix(K, kept), now[kept]
        slope, free = slope[kept], free[kept]
    return change


def _lengths(old: np.ndarray, d: np.ndarray, free: np.ndarray) -> Iterator[float]:
    """Lengths to try for a step on the face, on which entries that change sign stop at zero.

    The last one changes no sign: up to there the model falls. Where H is nearly singular that is
    very short, hence all those between.
    """
    t, last = 1.0, _first_sign_change(old, d, free)
    while t > last:
        yield t
        t *= SHORTER
    yield last


def _solve(K: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``K^-1 b`` by Cholesky, or by elimination where rounding took K's definiteness; K is lost."""
    kept = K.diagonal().copy()
    _, x, info = dposv(K.T, b, overwrite_a=1)  # K is symmetric: its transpose is what LAPACK reads
    if info == 0:
        return x
    K[np.arange(b.size), np.arange(b.size)] = kept  # one triangle is as it was
    K = np.triu(K, 1)
    return np.linalg.solve(K + K.T + np.diag(kept), b)


def minimise_packed(
    klass: np.ndarray,
    packed: tuple,
    positions: tuple,
    g: np.ndarray,
    u: np.ndarray,
    penalty: np.ndarray,
    below: np.ndarray,
    damping: np.ndarray,
    tol: float,
    effort: Effort,
) -> tuple[np.ndarray, int]:
    """The same minimisation without forming H."""
    row, weight, _ = positions
    free = below == 0.0
    s = np.zeros(u.size)
    D, mean = np.zeros(row.size), np.zeros(_rows(row))
    spare = np.empty_like(D), np.empty_like(mean)  # one for all uses: D is as large as the scores
    diagonal = np.empty(u.size)
    kernels.diagonal_of(packed, positions, diagonal)
    n_iter, settled = 0, False
    for n_round in range(1, effort.rounds + 1):
        for _ in range(effort.sweeps):
            change = kernels.sweep(
                packed, positions, diagonal, g, u, penalty, below, damping, s, D, mean
            )
            if change <= tol:
                return s, n_iter
        face = np.flatnonzero((u + s != 0.0) | free)
        old = u[face] + s[face]
        residual = np.empty(face.size)
        kernels.slopes(face, packed, positions, D, mean, residual)
        residual = -(residual + g[face] + damping[face] * s[face] + penalty[face] * np.sign(old))
        largest, close = float(np.abs(residual).max(initial=0.0)), 0.3 * tol
        if largest <= close:
            continue
        if not settled and n_round < effort.rounds:
            close = max(close, EARLIER_FACE * largest)
        d, used = conjugate_gradients(
            face, klass, packed, positions, damping, residual, close, effort.cg, spare
        )
        n_iter += used
        before = kernels.model_value(g, u, penalty, damping, s, row, weight, D, mean)
        for t in _lengths(old, d, free[face]):
            new = _kept_signs(old, t * d, free[face])
            s_new = s.copy()
            s_new[face] = new - u[face]
            spare[0][:], spare[1][:] = D, mean
            kernels.shift(face, new - old, packed, positions, *spare)
            after = kernels.model_value(g, u, penalty, damping, s_new, row, weight, *spare)
            if after <= before:
                s, (D, mean), spare = s_new, spare, (D, mean)
                settled = bool(np.all((new != 0.0) | free[face]))
                break
    return s, n_iter


def conjugate_gradients(
    face: np.ndarray,
    klass: np.ndarray,
    packed: tuple,
    positions: tuple,
    damping: np.ndarray,
    residual: np.ndarray,
    tol: float,
    max_iter: int,
    space: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, int]:
    """Solve ``H d = residual`` on the face to ``tol`` in the largest entry; residual is lost.

    ``space`` is working space: a number for a position, and one for a row.
    """
    solution = np.zeros(face.size)
    z, Hd = np.empty(face.size), np.empty(face.size)
    bounds, inverse = class_blocks(face, klass, packed, positions, damping, space[0])
    kernels.precondition(bounds, inverse, residual, z)
    d = z.copy()
    rz = residual @ z
    n_iter = 0
    while n_iter < max_iter and np.abs(residual).max() > tol:
        kernels.multiply(face, packed, positions, damping, d, *space, Hd)
        dHd = d @ Hd
        if dHd <= 0.0:
            break
        solution += (rz / dHd) * d
        residual -= (rz / dHd) * Hd
        kernels.precondition(bounds, inverse, residual, z)
        rz_new = residual @ z
        d = z + (rz_new / rz) * d
        rz = rz_new
        n_iter += 1
    return solution, n_iter


def hessian(klass: np.ndarray, packed: tuple, positions: tuple, damping: np.ndarray) -> np.ndarray:
    """H as a dense matrix: blocks within the classes, minus one product for the row means."""
    row, weight, share = positions
    number = np.cumsum(np.bincount(row) > 0) - 1  # of the rows in use
    everything = np.arange(klass.size)
    Q = np.zeros((klass.size, number[-1] + 1 if number.size else 0))
    kernels.scatter_by_row(packed, np.sqrt(share * weight), number[row], Q)
    H = -(Q @ Q.T)
    bounds = _class_bounds(klass, klass.size)
    for low, high in pairwise(bounds):
        H[low:high, low:high] += _class_products(everything[low:high], packed, weight.__getitem__)
    H[everything, everything] += damping
    return H


def class_blocks(
    face: np.ndarray,
    klass: np.ndarray,
    packed: tuple,
    positions: tuple,
    damping: np.ndarray,
    space: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Inverses of the blocks of H that belong to one class, one after the other.

    ``space`` is working space, a number for a position.
    """
    _, weight, share = positions
    bounds = _class_bounds(klass[face], BLOCK)
    sizes = np.diff(bounds)
    offset = np.concatenate([[0], np.cumsum(sizes**2)])
    inverse = np.empty(offset[-1])
    space[:] = 0.0
    kernels.small_inverses(
        face, bounds, packed, positions, damping, SMALL_BLOCK, space, inverse, offset
    )

    def curvature(some: slice) -> np.ndarray:  # of all positions it would be one more large array
        return weight[some] * (1.0 - share[some])

    for t in np.flatnonzero(sizes > SMALL_BLOCK):
        members = face[bounds[t] : bounds[t + 1]]
        K = _class_products(members, packed, curvature)
        K[np.arange(members.size), np.arange(members.size)] += damping[members]
        inverse[offset[t] : offset[t + 1]] = np.linalg.inv(K).ravel()
    return bounds, inverse


def _class_products(
    members: np.ndarray, packed: tuple, weight_of: Callable[[slice], np.ndarray]
) -> np.ndarray:
    """``M diag(weight) M^T`` for entries of one class, where M holds their values of X."""
    start, stop, base, position, _ = packed
    begin, end = start[members], stop[members]
    stored = end > begin
    if not stored.any():
        return np.zeros((members.size, members.size))
    # the positions of an entry ascend, and those of a class are neighbours
    first = int(base[members[0]])
    low = first + int(position[begin[stored]].min())
    width = first + int(position[end[stored] - 1].max()) + 1 - low
    weight = weight_of(slice(low, low + width))
    if 5 * int((end - begin).sum()) > members.size * width:
        M = np.zeros((members.size, width))
        kernels.scatter(members, packed, low, M)
        M *= np.sqrt(weight)
        return M @ M.T
    K = np.empty((members.size, members.size))
    kernels.sparse_products(members, packed, weight, low, np.zeros(width), K)
    return K


def _class_bounds(klass: np.ndarray, longest: int) -> np.ndarray:
    """Where runs of one class begin and end, cut into pieces of at most ``longest``."""
    runs = np.concatenate([[0], np.flatnonzero(np.diff(klass)) + 1, [klass.size]])
    if klass.size and np.diff(runs).max() <= longest:
        return runs
    pieces = [np.arange(low, high, longest) for low, high in pairwise(runs)]
    return np.concatenate([*pieces, [klass.size]]).astype(np.int64)


def _first_sign_change(old: np.ndarray, d: np.ndarray, free: np.ndarray) -> float:
    """The largest t <= 1 up to which no entry of ``old + t d`` changes sign that is not free."""
    crossing = ((old + d) * old <= 0.0) & ~free
    return float(min(1.0, (-old[crossing] / d[crossing]).min(initial=1.0)))


def _kept_signs(old: np.ndarray, change: np.ndarray, free: np.ndarray) -> np.ndarray:
    """``old + change``, with zero for the entries that would change sign and are not free to."""
    new = old + change
    return np.where((new * old > 0.0) | free, new, 0.0)


def _rows(row: np.ndarray) -> int:
    return int(row.max()) + 1 if row.size else 1
