"""The certificate: the only place where a duality gap is computed.

For any U, and any V with rows in the simplex, weak duality bounds the optimum from both sides.

Ball problem (MainEquationConstrained, radius R), for the given V::

    dual(V) = -F(V) - R max_j (||G_U(j,:)||_* - lam c_j)_+

Penalised problem (eq:erm, no radius needed): V must satisfy ``||G_U(j,:)||_* <= lam c_j``. It is
moved towards the labels, ``V' = Y + s (V - Y)``, which keeps the rows in the simplex and scales
G_U by s, until that holds; then ``dual(V') = -F(V')``. At s = 0 this is 0, the bound that every
non-negative loss has: with very many features without penalty it may be all there is.

Non-negative coefficients (``positive``): a penalty on U >= 0 alone bounds only the negative part of
G_U, ``||(-G_U(j,:))_+||_* <= lam c_j``, which scales with s as well. U is clipped at zero first.

Intercept: without a penalty its constraint is an equality, every class must have the same mass in V
as in Y. V is mixed with one row q common to all samples, ``V' = (1 - t) V + t 1 q^T``, with the
smallest t for which the q that repairs the masses is a distribution. The labels have these masses
too, so that moving towards them keeps the equality. A few other features without penalty (with
lam = 0 all are) are repaired together with it (:mod:`fenchel.free_features`). An equality holds to
1e-12 of the mean size of its feature: so much times ``||U(j,:)||`` the bound may be off.

Everything is float64 and computed from U and V on the user's data. The one thing that may be known
already is G_U, if :class:`~fenchel.full_gradient.FullGradient` has made it of the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy
import scipy.sparse as sp

from fenchel.equal_columns import EqualColumns, every_column
from fenchel.free_features import ROUNDING, Repair
from fenchel.kernels.labels import toward_labels
from fenchel.problem import Matrix, Problem, dense

#: Rows of V further from the simplex than this are a solver's mistake, not rounding.
SIMPLEX_TOLERANCE = 1e-6

#: V' is pulled inside its constraints by this relative amount, beyond the rounding of G_U.
SAFETY = 1e-13

#: The distance from 1 to the next larger number.
EPS = float(np.finfo(np.float64).eps)

#: V' goes no further than this many times V - Y, whose rounding grows as much.
FARTHEST = 1e3


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum, and the point that they belong to.

    Attributes
    ----------
    U, V : the point: U is inside the ball, V is feasible for the dual of ``problem``.
    primal, dual : float, ``dual <= optimum <= primal``.
    problem : "penalised" or "ball", the problem whose optimum is bounded.
    point : which of the solver's points it describes ("last", "average", "start", ...).
    """

    U: Matrix
    V: Matrix
    primal: float
    dual: float
    problem: str
    point: str

    @property
    def gap(self) -> float:
        """``primal - dual``: U is at most this far from the optimum."""
        return self.primal - self.dual


def certify(problem: Problem, U: Matrix, V: Matrix, point: str = "last") -> Certificate:
    """Certify a point for the user's problem; raise ValueError where V is not a dual point."""
    V, dual = _dual_bound(problem, V)
    U = _feasible_primal(problem, U)
    kind = "penalised" if problem.radius is None else "ball"
    return Certificate(U, V, problem.primal(U), dual, kind, point)


def with_primal_point(problem: Problem, known: Certificate, U: Matrix, point: str) -> Certificate:
    """The certificate of the same dual point with another U: the dual value is known."""
    U = _feasible_primal(problem, U)
    return Certificate(U, known.V, problem.primal(U), known.dual, known.problem, point)


def with_dual_point(problem: Problem, known: Certificate, V: Matrix, point: str) -> Certificate:
    """The certificate of the same U with another dual point: the primal value is known."""
    V, dual = _dual_bound(problem, V)
    return Certificate(known.U, V, known.primal, dual, known.problem, point)


def _dual_bound(problem: Problem, V: Matrix) -> tuple[Matrix, float]:
    """The dual point that is made of V, and the lower bound on the optimum that it gives."""
    V = _onto_simplex(every_column(V) if problem.has_free or problem.intercept else V)
    repair = Repair.of(problem) if problem.radius is None else None
    bounds = problem.lam * problem.penalty_factor
    # an equality holds but for rounding, of which V' has s times as much
    if repair is not None:
        V = repair(V)
        bounds[repair.free] = ROUNDING * repair.sizes
    elif problem.intercept:
        V = _match_masses(problem, V)
        bounds[-1] = ROUNDING
    norms_of = partial(problem.gradient_row_norms, V)
    if isinstance(V, EqualColumns):  # f and the labels ask for one column of those that are equal
        columns, dual = _dual_value(V.small(problem), V.columns, bounds, norms_of)
        return replace(V, columns=columns), dual
    return _dual_value(problem, V, bounds, norms_of)


def _dual_value(
    problem: Problem, V: Matrix, bounds: np.ndarray, norms_of: Callable[[np.ndarray], np.ndarray]
) -> tuple[Matrix, float]:
    """What :func:`_dual_bound` returns, for a V on the simplex and the norms of G_U at it."""
    limit = _simplex_limit(problem, V)
    # norms up to these bind no V' (and no ball's dual value): larger values that do not will do
    norms = norms_of((1 - SAFETY) * bounds / limit)
    if problem.radius is None:
        return _feasible(problem, V, norms, bounds, limit)
    excess = max(0.0, float((norms - bounds).max()))
    return V, -problem.conjugate(V) - problem.radius * excess


def for_smaller_penalty(problem: Problem, known: Certificate, lam: float) -> Certificate:
    """A certificate from that for the same data with a penalty ``lam`` no smaller: no product.

    The risk of U is the same. V has ``||G_U(j,:)||_* <= lam c_j``; moved towards the labels by the
    ratio of the penalties it has what is asked for here.
    """
    s = problem.lam / lam
    V = _toward_labels(problem, known.V.copy(), s)
    size = problem.with_penalty(1.0).penalty(known.U)
    primal = known.primal - (lam - problem.lam) * size
    return Certificate(known.U, V, primal, -problem.conjugate(V), known.problem, "start")


def _feasible_primal(problem: Problem, U: Matrix) -> Matrix:
    """U with the signs, and inside the ball, that the problem asks for."""
    U = _onto_signs(problem, U)
    return U if problem.radius is None else _into_ball(problem, U)


def _onto_signs(problem: Problem, U: Matrix) -> Matrix:
    """Replace negative coefficients by zero where they are not allowed."""
    if not problem.positive:
        return U
    if not sp.issparse(U):
        return np.where((U < 0.0) & problem.nonnegative[:, None], 0.0, U)
    entries = U.tocoo()
    keep = (entries.data > 0.0) | ~problem.nonnegative[entries.coords[0]]
    kept = entries.data[keep], tuple(index[keep] for index in entries.coords)
    return type(U)(sp.coo_array(kept, shape=U.shape))


def _into_ball(problem: Problem, U: Matrix) -> Matrix:
    assert problem.radius is not None
    size = float(problem.row_norms(U).sum())
    return U * (problem.radius / size) if size > problem.radius else U


def _onto_simplex(V: Matrix) -> Matrix:
    """Divide the rows by their sums; refuse what is not close to the simplex. Never V itself.

    Rows that sum to one as far as can be told stay as they are: G_U may be known for them.
    """
    if isinstance(V, EqualColumns):
        values, sums = V.columns, V.sums()
    else:
        values, sums = V.data if sp.issparse(V) else V, _row_sums(V)
    smallest = float(values.min()) if values.size else 0.0
    off = float(np.abs(sums - 1.0).max())
    if not (smallest >= 0.0 and off <= SIMPLEX_TOLERANCE):
        raise ValueError(
            f"V is not a dual point: smallest entry {smallest:g}, row sums off by up to {off:g}."
        )
    one = off <= 0.5 * EPS * V.shape[1]  # no further away than such a sum is off by rounding
    if sp.issparse(V):
        return V.astype(np.float64) if one else sp.diags_array(1 / sums) @ V
    if one:
        values = np.array(values, np.float64, order="C")
    else:
        values = np.divide(values, sums[:, None], order="C")
    return replace(V, columns=values) if isinstance(V, EqualColumns) else values


def _row_sums(V: Matrix) -> np.ndarray:
    return V @ np.ones(V.shape[1])  # of short rows faster than numpy's own


def _match_masses(problem: Problem, V: Matrix) -> Matrix:
    """Give every class the mass that it has in the labels (the constraint of the intercept).

    An array is changed in place: that of :func:`_onto_simplex` is a copy already.
    """
    w = problem.weights
    masses = np.bincount(problem.y, weights=w, minlength=problem.k)
    V = V.toarray() if sp.issparse(V) else V
    if (masses == 0.0).any():
        V[:, masses == 0.0] = 0.0  # a class without samples can have none
        V[_row_sums(V) == 0.0] = masses
    V /= _row_sums(V)[:, None]
    found = w @ V
    used = found > 0.0
    t = max(0.0, float((1.0 - masses[used] / found[used]).max()))
    if t > 0.0:
        q = np.maximum(masses - (1.0 - t) * found, 0.0)
        if q.sum() > 0.0:  # else the masses are there already, but for rounding
            V *= 1.0 - t
            V += t * (q / q.sum())
    return V


def _feasible(
    problem: Problem, V: Matrix, norms: np.ndarray, bounds: np.ndarray, limit: float
) -> tuple[Matrix, float]:
    """The best feasible point on the ray from the labels Y through V, and its dual value.

    ``limit`` is where the ray leaves the simplices.
    """
    active = norms > 0
    with np.errstate(over="ignore"):  # a subnormal norm gives infinity, which is right
        s_max = float((bounds[active] / norms[active]).min()) if active.any() else np.inf
    s_max = min(s_max * (1 - SAFETY), limit)

    def value(s: float) -> float:
        def of(rows: slice) -> float:
            y = problem.y[rows]
            return float(problem.weights[rows] @ problem.loss.f(_mixed(s, V[rows], y), y))

        return -problem.sum_of_rows(of)

    s, dual = s_max, value(s_max)
    if not problem.loss.affine:
        # the concave value may peak earlier: at V itself where that is the solution
        earlier = [0.99 * s_max, *([1.0] if s_max > 1.0 else [])]
        best, at = max((value(t), t) for t in earlier)
        if best > dual:
            found = scipy.optimize.minimize_scalar(
                lambda s: -value(s), bounds=(0.0, s_max), method="bounded"
            )
            dual, s = max((best, at), (-float(found.fun), float(found.x)))
    return _toward_labels(problem, V, s), dual


def _simplex_limit(problem: Problem, V: Matrix) -> float:
    """The largest s (from 1 to FARTHEST) for which ``Y + s (V - Y)`` stays in the simplices."""
    true = np.asarray(V[np.arange(problem.n), problem.y]).ravel()
    farthest = float((1.0 - true).max())
    return float(np.clip((1 - SAFETY) / farthest, 1.0, FARTHEST)) if farthest > 0 else 1.0


def _mixed(s: float, V: Matrix, y: np.ndarray) -> np.ndarray:
    """``Y + s (V - Y)`` for some rows, as a new array."""
    V = dense(V)
    W = np.empty(V.shape)
    toward_labels(V, y, s, W)
    return W


def _toward_labels(problem: Problem, V: Matrix, s: float) -> Matrix:
    """``Y + s (V - Y)``; an array is changed in place, as no second one may fit."""
    if sp.issparse(V):
        rows = np.arange(problem.n)
        Y = sp.csr_array((np.ones(problem.n), (rows, problem.y)), shape=V.shape)
        W = (s * V + (1 - s) * Y).tocsr()
        np.maximum(W.data, 0.0, out=W.data)
        return W
    problem.in_rows(lambda rows: toward_labels(V[rows], problem.y[rows], s, V[rows]))
    return V
