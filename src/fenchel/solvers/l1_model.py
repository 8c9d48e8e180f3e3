"""The quadratic model of a Newton step with an l1 penalty, minimised over a working set.

Over steps s of the entries e = (j, l) of U::

    <g, s> + s^T H s / 2 + sum_e damping_e s_e^2 / 2 + sum_e penalty_e |u_e + s_e|

with ``below_e`` in place of ``penalty_e`` for negative values: infinite where none is allowed.

Coordinate descent finds which entries are non-zero; on that face the model is quadratic and is
minimised by a direct solve when H is at hand, else by conjugate gradients preconditioned with the
class blocks of H: what these need of H is a :class:`Quadratic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from fenchel.kernels import l1_newton as kernels
from fenchel.solvers.face import FaceMatrix

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


class Quadratic(Protocol):
    """``s^T H s / 2`` without its matrix, at a point s.

    ``solve`` is with damping, as is the curvature in ``sweep``; the others are without.
    """

    def begin(self) -> None:
        """Go to s = 0. Room as large as the scores is made here: before, h is still there."""

    def sweep(
        self,
        g: np.ndarray,
        u: np.ndarray,
        penalty: np.ndarray,
        below: np.ndarray,
        s: np.ndarray,
    ) -> float:
        """Pass over all entries by coordinate descent; the largest ``|change| * curvature``."""

    def slopes(self, face: np.ndarray) -> np.ndarray:
        """``H s`` on the face."""

    def solve(
        self, face: np.ndarray, residual: np.ndarray, tol: float, most: int
    ) -> tuple[np.ndarray, int]:
        """d with ``H d = residual`` on the face, to ``tol`` in the largest entry.

        By at most so many conjugate gradient iterations, which are counted; residual is lost.
        """

    def value(self) -> float:
        """``s^T H s / 2``."""

    def value_after(self, face: np.ndarray, change: np.ndarray) -> float:
        """The same after a change on the face."""

    def accept(self) -> None:
        """Make that change."""


def minimise_quadratic(
    quadratic: Quadratic,
    g: np.ndarray,
    u: np.ndarray,
    penalty: np.ndarray,
    below: np.ndarray,
    damping: np.ndarray,
    tol: float,
    effort: Effort,
) -> tuple[np.ndarray, int]:
    """Minimise the model to ``tol`` in the subgradient, or as far as the effort goes.

    Returns
    -------
    s : the steps.
    n_iter : conjugate gradient iterations made.
    """
    free = below == 0.0
    s = np.zeros(u.size)

    def separable(s: np.ndarray) -> float:
        return float((g + 0.5 * damping * s) @ s + penalty @ np.abs(u + s))

    quadratic.begin()
    n_iter, settled = 0, False
    for n_round in range(1, effort.rounds + 1):
        for _ in range(effort.sweeps):
            if quadratic.sweep(g, u, penalty, below, s) <= tol:
                return s, n_iter
        face = np.flatnonzero((u + s != 0.0) | free)
        old = u[face] + s[face]
        residual = quadratic.slopes(face) + g[face] + damping[face] * s[face]
        residual = -(residual + penalty[face] * np.sign(old))
        largest, close = float(np.abs(residual).max(initial=0.0)), 0.3 * tol
        if largest <= close:
            continue
        if not settled and n_round < effort.rounds:
            close = max(close, EARLIER_FACE * largest)
        d, used = quadratic.solve(face, residual, close, effort.cg)
        n_iter += used
        before = quadratic.value() + separable(s)
        for t in _lengths(old, d, free[face]):
            new = kept_signs(old, t * d, free[face])
            s_new = s.copy()
            s_new[face] = new - u[face]
            if quadratic.value_after(face, new - old) + separable(s_new) <= before:
                quadratic.accept()
                s, settled = s_new, bool(np.all((new != 0.0) | free[face]))
                break
    return s, n_iter


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
    room: np.ndarray | None = None,
) -> np.ndarray:
    """Minimise the model with H at hand, where it can be done (nearly) exactly.

    What is solved of H is made in the room, an array as large as H, where one is given.
    """
    s = np.zeros(u.size)
    slope = g.copy()  # g + H s
    for _ in range(ROUNDS):
        for _ in range(SWEEPS):
            if kernels.dense_sweep(H, slope, u, s, penalty, below) <= tol:
                return s
        change = _minimise_on_face(H, slope, u + s, penalty, below == 0.0, room)
        s += change
        slope += H @ change
    return s


def _minimise_on_face(
    H: np.ndarray,
    slope: np.ndarray,
    v: np.ndarray,
    penalty: np.ndarray,
    free: np.ndarray,
    room: np.ndarray | None,
) -> np.ndarray:
    """The change of v that minimises the model over its non-zeros and what is free of penalty.

    The others keep their signs. Those that would change it are left at zero, one solve after the
    other, before a sweep may take them in again: where H is nearly singular, sweeps in between
    bring back what has just left.
    """
    face = np.flatnonzero((v != 0.0) | free)
    now, free = v[face], free[face]
    matrix = FaceMatrix(H, face, room)
    slope = slope[face] + penalty[face] * np.sign(now)
    change = np.zeros(v.size)
    for _ in range(SOLVES if face.size else 0):
        moved, product = matrix.move(slope, now, matrix.solve(-slope), free, SHORTER)
        now += moved
        slope += product
        change[face] = now - v[face]
        kept = np.flatnonzero((now != 0.0) | free)
        if kept.size in (0, face.size):
            break
        matrix.keep(kept)
        face, now, slope, free = face[kept], now[kept], slope[kept], free[kept]
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


def _first_sign_change(old: np.ndarray, d: np.ndarray, free: np.ndarray) -> float:
    """The largest t <= 1 up to which no entry of ``old + t d`` changes sign that is not free."""
    crossing = ((old + d) * old <= 0.0) & ~free
    return float(min(1.0, (-old[crossing] / d[crossing]).min(initial=1.0)))


def kept_signs(old: np.ndarray, change: np.ndarray, free: np.ndarray) -> np.ndarray:
    """``old + change``, with zero for the entries that would change sign and are not free to."""
    new = old + change
    return np.where((new * old > 0.0) | free, new, 0.0)
