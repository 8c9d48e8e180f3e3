"""Whether zero coefficients solve the hinge problem beside free features: two linear programs."""

from __future__ import annotations

import numpy as np
import scipy
import scipy.sparse as sp

from fenchel.losses import Hinge
from fenchel.problem import Problem, dense

#: Margins that differ by less, in parts of the largest gain, are the same.
TIE = 1e-9

#: A program with more entries is not solved; one of this size takes a few seconds.
MOST_ENTRIES = 300_000

#: A sum of the square roots of flows that only a class with half of all mass asks for.
LARGEST_SUM = 1e4

#: Of scipy's linprog.
INFEASIBLE = 2

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def gains(problem: Problem) -> np.ndarray:
    """``-f(e_l, y)`` for every label y and class l, (k, k): C(y, l) of the hinge loss."""
    k, eye = problem.k, np.eye(problem.k)
    return np.stack([-problem.loss.f(eye, np.full(k, label)) for label in range(k)])


def constant_scores(problem: Problem) -> tuple[float, np.ndarray]:
    """The smallest mean loss of constant scores b, (k,), and such b; b = 0 without an intercept.

    ``min sum_y m_y xi_y  s.t.  xi_y >= C(y, l) + b_l - b_y``, with the masses m of the labels.
    Where every mistake costs 1 it pays to raise the score of a class with more than half of the
    mass by 1, and no other: the dual moves mass between the classes, and has to leave none where
    it was as far as others have room for it.
    """
    k = problem.k
    masses = np.bincount(problem.y, weights=problem.weights, minlength=k)
    if isinstance(problem.loss, Hinge) and problem.loss.plain:
        heaviest = int(masses.argmax())
        if not problem.intercept or masses[heaviest] <= 0.5:
            return 1.0, np.zeros(k)
        return 2.0 * (1.0 - float(masses[heaviest])), np.eye(k)[heaviest]
    C = gains(problem)
    if not problem.intercept:
        return float(masses @ C.max(axis=1)), np.zeros(k)
    y, l = np.divmod(np.arange(k * k), k)
    eye = np.eye(k)
    found = scipy.optimize.linprog(
        np.r_[np.zeros(k), masses], A_ub=np.hstack([eye[l] - eye[y], -eye[y]]), b_ub=-C.ravel(),
        bounds=[(-k * C.max(), k * C.max())] * k + [(0, None)] * k, options=OPTIONS,
    )  # fmt: skip
    return float(found.fun), found.x[:k]


def shares_of_mistakes(problem: Problem) -> np.ndarray | None:
    """Q (k, k) whose rows ``Q[y]`` are a dual point that the intercept of the hinge loss allows.

    All of a row is on the wrong classes, as it has to be at U = 0 where no class has more than half
    of the mass (None if one has, and without an intercept), and all classes get what they have,
    ``m^T Q = m^T``: G_U is zero for the intercept. Mass ``s_y s_l`` goes from y to l, with
    ``s_y (S - s_y) = m_y`` and S the sum of s.
    """
    if not (problem.intercept and isinstance(problem.loss, Hinge) and problem.loss.plain):
        return None
    m = np.bincount(problem.y, weights=problem.weights, minlength=problem.k)
    heaviest = int(m.argmax())
    if m[heaviest] > 0.5:
        return None
    rest, least = 1.0 - m[heaviest], 2.0 * np.sqrt(m[heaviest])

    def smaller_roots(total: float) -> np.ndarray:
        return 2.0 * m / (total + np.sqrt(np.maximum(total * total - 4.0 * m, 0.0)))

    def excess(total: float) -> float:
        return float(smaller_roots(total).sum()) - total

    def excess_with_larger(total: float) -> float:
        s = smaller_roots(total)
        return float(s.sum()) - 2.0 * float(s[heaviest])

    if excess(least) >= 0.0:
        s = smaller_roots(scipy.optimize.brentq(excess, least, 2.0, xtol=1e-15))
        flow = np.outer(s, s)
    elif excess_with_larger(LARGEST_SUM) > 0.0:
        total = scipy.optimize.brentq(excess_with_larger, least, LARGEST_SUM, xtol=1e-15)
        s = smaller_roots(total)
        s[heaviest] = total - s[heaviest]
        flow = np.outer(s, s)
    else:  # half of the mass: all mistakes of the others go there, and its own to them
        flow = np.zeros((m.size, m.size))
        flow[:, heaviest], flow[heaviest] = m, m * (m[heaviest] / rest)
    np.fill_diagonal(flow, 0.0)
    return flow / np.maximum(flow.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def smallest_bound(problem: Problem, max_time: float = np.inf) -> float | None:
    """``min_V max_{j,l} |G_U(j,l)| / c_j`` over the V that are optimal at constant scores b.

    These have mass where ``C(y,l) + b_l - b_y`` is largest. G_U is zero for the free features; the
    value is infinite where no such V is, and None where the program is too large for its size or
    for ``max_time`` (seconds). It is the ``min t`` of::

        |X^T diag(w) (V - Y)| <= t c  (with ``positive``, its negative part),  V 1 = 1,  V >= 0
    """
    C, (_, b) = gains(problem), constant_scores(problem)
    margins = C + b - b[:, None]
    tie = margins >= margins.max(axis=1, keepdims=True) - TIE * C.max()
    i, l = np.nonzero(tie[problem.y])
    if 2 * problem.d * i.size > MOST_ENTRIES:
        return None
    n, d, k = problem.n, problem.d, problem.k
    X = problem.weights[:, None] * np.asarray(dense(problem.design.X), dtype=np.float64)
    sizes = np.abs(X).sum(axis=0)
    X = X / np.where(sizes > 0.0, sizes, 1.0)  # then G_U is at most one
    c = problem.penalty_factor / np.where(sizes > 0.0, sizes, 1.0)
    unit = float(c.max(initial=0.0)) or 1.0
    rows = l[:, None] * d + np.arange(d)  # of G_U by class
    columns = np.repeat(np.arange(i.size), d)
    G = sp.csc_array((X[i].ravel(), (rows.ravel(), columns)), shape=(k * d, i.size))
    labels = np.zeros((k, d))
    np.add.at(labels, problem.y, X)
    t = -np.tile(c / unit, k)[:, None]
    signed = np.tile(problem.nonnegative, k)
    A = sp.vstack([sp.hstack([-G, t]), sp.hstack([G, t]).tocsr()[~signed]], format="csc")
    found = scipy.optimize.linprog(
        np.r_[np.zeros(i.size), 1.0],
        A_ub=A,
        b_ub=np.r_[-labels.ravel(), labels.ravel()[~signed]],
        A_eq=sp.csc_array((np.ones(i.size), (i, np.arange(i.size))), shape=(n, i.size + 1)),
        b_eq=np.ones(n),
        options=OPTIONS | {"time_limit": max(max_time, 0.0)},
    )
    if found.status == 0:
        return float(found.x[-1] / unit)
    return np.inf if found.status == INFEASIBLE else None
