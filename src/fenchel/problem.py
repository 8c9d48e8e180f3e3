"""The optimisation problem: data, loss and penalty, and nothing about how to solve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fenchel import validation
from fenchel.class_means import ClassMeans
from fenchel.common_part import CommonPart, dear, rows_beside_common
from fenchel.design import Design, SparseDesign, make_design
from fenchel.design.rows import take_rows
from fenchel.equal_columns import EqualColumns
from fenchel.feature_products import StoredRows, raise_to_largest
from fenchel.full_gradient import FullGradient
from fenchel.geometry.norms import MixedNorm
from fenchel.kernels.class_blocks import dense_residual
from fenchel.losses import Loss, get_loss
from fenchel.threads import Found, each

#: Penalties by name: entrywise l1, or whole features together (the paper's appendix, 1x2).
PENALTIES = {"l1": MixedNorm(1, 1), "group": MixedNorm(1, 2)}

#: Scores (n x k) and gradients (d x k) are formed in blocks of about this many entries.
BLOCK_ENTRIES = 1 << 22

#: Losses are computed of rows with about this many scores at a time, which stay in the cache and in
#: memory that the process has already.
ROW_ENTRIES = 1 << 20

#: The same where threads share the rows, each with working space of its own.
SHARED_ENTRIES = 1 << 17

#: Below this part of non-zeros a product with a sparse matrix is the faster one.
SPARSE = 0.1

#: What a problem has computed and keeps that does not depend on lam.
INDEPENDENT = ("at_zero", "nonnegative", "_repair", "_full_gradient")

#: An ndarray or a scipy sparse array: points of U and V come as either (scipy is not typed).
Matrix: TypeAlias = Any


@dataclass(frozen=True)
class Problem:
    """Penalised empirical risk (eq:erm), and with a radius its constrained form.

    Shapes, layout and scale are stated here and nowhere else:

    - ``X`` is (n, d), one row a sample; ``U`` is (d, k), one column a class; ``V`` is (n, k) with
      rows in the probability simplex; ``y`` holds column numbers.
    - ``weights`` are non-negative and sum to one: uniform weights are the paper's 1/n. A weight is
      a repetition, so everything that the paper divides by n is a ``weights``-average here, and
      the dual space carries the inner product ``<V, Z> = sum_i weights_i <v_i, z_i>``.
    - The objective is a mean for every loss::

          P(U) = sum_i weights_i loss(U^T x_i, y_i) + lam * sum_j penalty_factor_j ||U(j,:)||

      where the row norm is l1 (the paper's problem) or l2 (``norm`` 1x2: whole features).
    - With a ``radius`` R, ``sum_j ||U(j,:)|| <= R`` holds besides (MainEquationConstrained).
    - With ``intercept`` the last column of X is constant one and carries no penalty; the last row
      of U is then the intercept.
    - With ``positive`` no coefficient is negative; the intercept has any sign.

    As a saddle point (eq:erm-saddle), with the gradient field of eq:gradient-field::

        min_U max_V  -F(V) + <V - Y, X U> + penalty(U),   F(V) = sum_i weights_i f(v_i, y_i)
        G_U = X^T diag(weights) (V - Y),                  G_V = -X U
    """

    design: Design
    y: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    loss: Loss
    lam: float
    penalty_factor: np.ndarray
    norm: MixedNorm = PENALTIES["l1"]
    radius: float | None = None
    intercept: bool = False
    positive: bool = False

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        loss: str | Loss = "hinge",
        lam: float,
        radius: float | None = None,
        sample_weight: Any = None,
        penalty_factor: Any = None,
        classes: Any = None,
        penalty: str = "l1",
        fit_intercept: bool = False,
        positive: bool = False,
        rows: np.ndarray | None = None,
    ) -> Problem:
        """Check the user's data and make a problem of it.

        Given ``rows``, these of X are the samples, in their order, and X is an array or in CSR
        form; y and the weights are of the samples.
        """
        ones = validation.check_flag("fit_intercept", fit_intercept)
        if rows is None:
            X = validation.check_design(X)
            X = _append_ones(X) if ones else X
        else:
            X = validation.check_design(take_rows(X, rows, ones))
        n, d = X.shape
        factors = validation.check_penalty_factor(penalty_factor, d - ones)
        if ones:
            if radius is not None:
                raise ValueError(
                    "fit_intercept=True and radius exclude each other, because the intercept has "
                    "no bound: leave radius out, or add a column of ones to X yourself."
                )
            factors = np.append(factors, 0.0)
        codes, labels = validation.check_labels(y, classes, n)
        if not isinstance(penalty, str) or penalty not in PENALTIES:
            raise ValueError(
                f"penalty must be one of {sorted(PENALTIES)}, found {penalty!r}: for another one "
                "use another package, for no penalty lam=0 (alpha=0)."
            )
        loss = get_loss(loss)
        loss.check_classes(labels.size)
        return cls(
            design=make_design(X),
            y=codes,
            classes=labels,
            weights=validation.check_sample_weight(sample_weight, n),
            loss=loss,
            lam=validation.check_number("lam", lam, remedy="give the l1 penalty as a number >= 0"),
            penalty_factor=factors,
            intercept=ones,
            positive=validation.check_flag("positive", positive),
            norm=PENALTIES[penalty],
            radius=None
            if radius is None
            else validation.check_number(
                "radius", radius, positive=True, remedy="leave it None for the penalised problem"
            ),
        )

    @property
    def n(self) -> int:
        return self.design.shape[0]

    @property
    def d(self) -> int:
        return self.design.shape[1]

    @property
    def k(self) -> int:
        return self.classes.size

    @cached_property
    def at_zero(self) -> float:
        """P(0), the scale of ``tol``: 1 for the hinge loss, log k for softmax."""
        total = 0.0
        for rows in self.row_blocks():
            y = self.y[rows]
            total += float(self.weights[rows] @ self.loss.value(np.zeros((y.size, self.k)), y))
        return total

    def dual_at_zero(self) -> np.ndarray:
        """The V that belongs to U = 0, (n, k)."""
        return self.loss.argmax(np.zeros((self.n, self.k)), self.y)

    def with_radius(self, radius: float | None) -> Problem:
        """The same data and penalty with another radius."""
        return replace(self, radius=radius)

    def with_penalty(self, lam: float) -> Problem:
        """The same data with another penalty; what is known and does not depend on it is kept."""
        problem = replace(self, lam=lam)
        kept = {name: self.__dict__[name] for name in INDEPENDENT if name in self.__dict__}
        problem.__dict__.update(kept)
        if (means := self.__dict__.get("class_means")) is not None:
            problem.__dict__["class_means"] = means.with_penalty(lam)
        return problem

    def radius_bound(self) -> float:
        """A radius that contains every solution (rem:radius): ``P(0) / (lam min_j c_j)``.

        No bound follows for an intercept, which gets as much room as all coefficients together.
        The certificate is for the whole penalised problem: were that too little, it would show.
        """
        factors = self.penalty_factor[:-1] if self.intercept else self.penalty_factor
        smallest = self.lam * float(factors.min())
        if self.radius is None and smallest <= 0:
            free = "lam=0 (alpha=0)" if self.lam == 0 else "a zero in penalty_factor"
            remedy = (
                "use solver='primal-dual', which needs none"
                if self.norm.q == 1
                else "give positive ones, or use penalty='l1'"
            )
            raise ValueError(
                f"this solver works inside a ball, and with {free} no radius follows from the "
                f"data: {remedy}, or call fenchel.solve with radius=... (and no intercept)."
            )
        room = 2.0 if self.intercept else 1.0
        radius = room * self.at_zero / smallest if self.radius is None else self.radius
        if radius > validation.LARGEST:
            raise ValueError(
                f"this solver works inside a ball, and radius {radius:g} (P(0) / lam where none is "
                f"given) is beyond {validation.LARGEST:g}: give a smaller radius or a larger lam "
                "(alpha), or scale X up."
            )
        return radius

    @cached_property
    def class_means(self) -> ClassMeans | None:
        """The problem of the class means, where a product with all samples is far dearer."""
        return ClassMeans.of(self)

    @cached_property
    def nonnegative(self) -> np.ndarray:
        """The (d,) mask of features whose coefficients may not be negative."""
        mask = np.full(self.d, self.positive)
        if self.intercept:
            mask[-1] = False
        return mask

    @cached_property
    def has_free(self) -> bool:
        """Whether some feature has no penalty."""
        return bool((self.lam * self.penalty_factor == 0.0).any())

    def constrained_part(self, G: np.ndarray) -> np.ndarray:
        """What the dual constraints bound of G_U: ``|G_U|``, or ``(-G_U)_+`` where U >= 0."""
        if not self.positive:
            return np.abs(G)
        part = np.maximum(-G, 0.0)
        if self.intercept:
            part[-1] = np.abs(G[-1])
        return part

    def penalty(self, U: Matrix) -> float:
        """``lam * sum_j c_j ||U(j,:)||``."""
        return self.lam * float(self.penalty_factor @ self.row_norms(U))

    def row_norms(self, U: Matrix) -> np.ndarray:
        """``||U(j,:)||`` for every feature j; U may be sparse."""
        if not sp.issparse(U):
            return self.norm.rows(U)
        if self.norm.q == 1:
            return np.asarray(abs(U).sum(axis=1)).ravel()
        return np.sqrt(np.asarray(U.multiply(U).sum(axis=1)).ravel())

    def risk(self, U: Matrix) -> float:
        """The weighted mean loss, in blocks of rows so that no (n, k) array is needed."""
        scores = _scorer(U)

        def of(rows: slice) -> float:
            Z = scores(self.design.rows(rows.start, rows.stop))
            return float(self.weights[rows] @ self.loss.value(Z, self.y[rows]))

        if self.design.is_sparse:
            return self.sum_of_rows(of)
        return sum(map(of, self.row_blocks()))  # BLAS has threads of its own

    def primal(self, U: Matrix) -> float:
        """P(U)."""
        return self.risk(U) + self.penalty(U)

    def conjugate(self, V: Matrix) -> float:
        """``F(V) = sum_i weights_i f(v_i, y_i)`` (eq:composite-part-v)."""

        def of(rows: slice) -> float:
            return float(self.weights[rows] @ self.loss.f(dense(V[rows]), self.y[rows]))

        return self.sum_of_rows(of)

    def gradient(self, V: np.ndarray) -> np.ndarray:
        """``G_U = X^T diag(weights) (V - Y)`` (eq:gradient-field), dense (d, k)."""
        W = self.weights[:, None] * V
        W[np.arange(self.n), self.y] -= self.weights
        return self.design.rmatmul(W)

    @cached_property
    def _full_gradient(self) -> FullGradient:
        return FullGradient()

    def full_gradient(self, V: np.ndarray) -> np.ndarray | None:
        """G_U of dense data, (d, k) and not to be written to; None where it would be large."""
        return self._full_gradient.at(self, V)

    def gradient_row_norms(self, V: Matrix, enough: np.ndarray | None = None) -> np.ndarray:
        """Dual norm of every row of G_U, in blocks of classes so that no (d, k) array is needed.

        A norm that is at most ``enough_j`` may be replaced by a larger value that is, too.
        With ``positive`` it is that of the negative part, which is all that a constraint bounds.
        A class without mass in a sparse V and without samples has a zero column, and is left out.
        """
        if isinstance(V, EqualColumns):
            return self._norms_beside_last(V, enough)
        if not sp.issparse(V) and self.class_means is not None:
            T = self.class_means.lowered(V)
            if T is not None:  # the same in all samples of a class, and so is their product
                return self.class_means.problem.gradient_row_norms(T, enough)
        q = self.norm.dual.q
        if not sp.issparse(V) and not dear(self.design, self.k):
            G = self.full_gradient(V)
            if G is not None:
                part = self.constrained_part(G)
                return part.max(axis=1) if np.isinf(q) else np.linalg.norm(part, axis=1)
        classes, columns = np.arange(self.k), V
        if sp.issparse(V):
            columns = V.tocsc()
            classes = np.union1d(np.flatnonzero(np.diff(columns.indptr)), self.y)
        norms = np.zeros(self.d)
        enough = np.full(self.d, -1.0) if enough is None else enough
        few = sp.issparse(V) and V.nnz < SPARSE * self.n * self.k
        if few and np.isinf(q) and isinstance(self.design, SparseDesign):
            self._largest_of_rows(self.design, V.tocsr(), enough, norms)
            return norms
        if np.isinf(q) and isinstance(self.design, SparseDesign) and not sp.issparse(V):
            rows = rows_beside_common(self.design, V, self.y, self.weights)
            if rows is not None:
                raise_to_largest(self.design.csc, rows, self.nonnegative, enough, norms)
                return norms
        width = max(1, BLOCK_ENTRIES // max(self.d, self.n))
        common = None if sp.issparse(V) else self.common_part(V)
        for start in range(0, classes.size, width):
            block = classes[start : start + width]
            if not sp.issparse(V):
                W = self.residual(V, start, start + block.size)
            else:
                mine = np.flatnonzero(np.isin(self.y, block))
                where = mine, np.searchsorted(block, self.y[mine])
                whole = block[-1] - block[0] == block.size - 1
                W = columns[:, block[0] : block[-1] + 1] if whole else columns[:, block]
                if W.nnz < SPARSE * self.n * block.size:
                    labels = sp.csr_array((self.weights[mine], where), shape=W.shape)
                    W = sp.diags_array(self.weights) @ W.tocsr() - labels
                else:
                    W = self.weights[:, None] * W.toarray(order="C")  # the kernel reads rows
                    W[where] -= self.weights[mine]
            if np.isinf(q) and isinstance(self.design, SparseDesign) and not sp.issparse(W):
                raise_to_largest(self.design.csc, W, self.nonnegative, enough, norms)
                continue
            G = self.constrained_part((common or self.design).rmatmul(W))
            if np.isinf(q):
                np.maximum(norms, G.max(axis=1), out=norms)
            else:
                norms = np.hypot(norms, np.linalg.norm(G, axis=1))
        return norms

    def common_part(self, V: np.ndarray) -> CommonPart | None:
        """What most classes of V share, where ``X^T W`` is cheaper with it taken off."""
        return CommonPart.of(self.design, V, self.y, self.weights)

    def _norms_beside_last(self, V: EqualColumns, enough: np.ndarray | None) -> np.ndarray:
        """The norms for columns that classes share: a solver has them for the l1 penalty alone."""
        assert isinstance(self.design, SparseDesign)
        assert np.isinf(self.norm.dual.q)
        norms = np.zeros(self.d)
        enough = np.full(self.d, -1.0) if enough is None else enough
        raise_to_largest(self.design.csc, V.residual(self), self.nonnegative, enough, norms)
        return norms

    def _largest_of_rows(
        self, design: SparseDesign, V: sp.csr_array, enough: np.ndarray, norms: np.ndarray
    ) -> None:
        """Raise the norms to the largest entry in every row of G_U, for a sparse X and V."""
        labels = sp.csr_array((self.weights, self.y, np.arange(self.n + 1)), shape=(self.n, self.k))
        W = sp.diags_array(self.weights) @ V - labels
        rows = W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data
        few = StoredRows(self.k, *rows)
        raise_to_largest(design.csc, few, self.nonnegative, enough, norms)

    def residual(self, V: np.ndarray, start: int, stop: int) -> np.ndarray:
        """``diag(weights) (V - Y)`` in the classes from start to stop, dense."""
        R = np.empty((self.n, stop - start))

        def fill(rows: slice) -> None:
            dense_residual(V[rows], self.y[rows], self.weights[rows], start, R[rows])

        self.in_rows(fill)
        return R

    def row_blocks(self, entries: int = ROW_ENTRIES) -> Iterator[slice]:
        """Slices of rows with so many scores, so that no second (n, k) array is needed."""
        size = max(1, entries // self.k)
        for start in range(0, self.n, size):
            yield slice(start, min(start + size, self.n))

    def in_rows(self, function: Callable[[slice], Found]) -> list[Found]:
        """What a function finds in slices of rows, which threads share, from first to last."""
        return each(function, self.row_blocks(SHARED_ENTRIES), self.n * self.k)

    def sum_of_rows(self, function: Callable[[slice], float]) -> float:
        """The sum of that, added up in the order of the rows."""
        return sum(self.in_rows(function))


def _scorer(U: Matrix) -> Callable[[Design], np.ndarray]:
    """``design -> X @ U``; a sparse U with few classes in use is multiplied as a dense block."""
    if not sp.issparse(U):
        return lambda design: design.matmul(U)
    columns = U.tocsc()
    used = np.flatnonzero(np.diff(columns.indptr))
    block = columns[:, used]
    if block.nnz > 0.1 * block.shape[0] * max(used.size, 1):
        block = block.toarray()

    rows = sp.csr_array(U)

    def scores(design: Design) -> np.ndarray:
        if design.is_sparse and sp.issparse(block):
            return design.matmul(rows)
        Z = np.zeros((design.shape[0], U.shape[1]))
        if used.size:
            Z[:, used] = design.matmul(block)
        return Z

    return scores


def _append_ones(X: Matrix) -> Matrix:
    n = X.shape[0]
    if sp.issparse(X):
        return take_rows(X, np.arange(n), ones=True)
    return np.concatenate([X, np.ones((n, 1), dtype=X.dtype)], axis=1)  # in the order of X


def dense(A: Matrix) -> np.ndarray:
    """A as an array: itself, not a copy, where it is one."""
    return A.toarray() if sp.issparse(A) else A
