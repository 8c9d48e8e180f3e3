"""Entries of U that a step works on, and the columns of X that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk, ssyrk

from fenchel.common_part import rows_beside_common
from fenchel.design import Design, SparseDesign
from fenchel.design.dense import by_columns
from fenchel.feature_products import StoredRows, beyond
from fenchel.few_columns import matmul
from fenchel.kernels import by_class, class_blocks, curvature
from fenchel.problem import BLOCK_ENTRIES, Problem
from fenchel.solvers.working_rows import LARGE, WorkingRows
from fenchel.time_limit import leave_in_time

#: A refreshed working set takes in at most this many times the non-zeros, or MIN_NEW entries: far
#: fewer starve sparse text, far more slow down small dense problems. One in SHARE entries of U may
#: always come in: where these are many, the look at all of them is dear.
GROWTH, MIN_NEW, MIN_NEW_SMALL, SHARE = 2, 500, 50, 1 << 13

#: Blocks of the Hessian up to this size are formed in one compiled loop, larger ones by BLAS; and
#: up to the second where so many numbers are the values of a block, which the first cache holds.
SMALL_BLOCK, CACHED_BLOCK, CACHED = 16, 128, 1 << 16

#: The Hessian is formed of so many samples at a time that their values for its entries are as many,
#: but not of fewer than the second: the Hessian is read and written each time.
HESSIAN_ENTRIES, LEAST_SAMPLES = 1 << 16, 128

#: Samples without curvature are left out where at most this part of all has any. The values of X
#: in the others are copied for about so many entries at a time.
WORTH_A_COPY, COPIED_ENTRIES = 0.8, 1 << 16

#: A sample has curvature where more than this part of its h lies outside the largest class.
FLAT = 1e-9

#: A V with more non-zeros than this part of its entries is multiplied as a dense one; with a dense
#: X, where BLAS does it, with more than the second.
MANY, MANY_BLAS = 0.3, 0.05

#: All of G_U is computed where the working set is at least one in so many entries of U.
MOST_LEFT_OUT = 8

#: Scores of dense data change, and residuals are formed, in the classes of the entries alone where
#: these are at most this part of all.
FEW_CLASSES = 0.25

#: Reading one entry of V out of order costs as much as so many in order.
MISSES = 6

#: Values of X are not gathered where they and their positions took more than this many bytes for
#: every sample and class: a value takes the second number of them, a position the third.
MOST_PACKED, VALUE, POSITION = 26, 12, 20

#: A dense X with so many entries is copied by columns as they are asked for.
COLUMN_BY_COLUMN = 1 << 26

#: Where X is sparse, below this part: the dense product skips the features that cannot matter.
FEW = 0.03


def most_new(problem: Problem, nonzeros: int, by_class: int = 0, growth: float = GROWTH) -> int:
    """How many entries a refreshed working set takes in at most: not less than so many a class."""
    return max(first_entries(problem.d, problem.k, by_class), int(growth * nonzeros))


def first_entries(d: int, k: int, by_class: int = 0) -> int:
    """How many entries the first working set has at most."""
    return min(max(MIN_NEW, by_class * k, d * k // SHARE), max(MIN_NEW_SMALL, d * k // 10))


@dataclass
class Entries:
    """Entries (feature, class) of U and their values, sorted by class and then by feature."""

    feature: np.ndarray
    klass: np.ndarray
    u: np.ndarray

    @classmethod
    def empty(cls) -> Entries:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of(cls, U: np.ndarray | sp.sparray) -> Entries:
        """The non-zeros of a matrix."""
        U = sp.csc_array(U)
        U.sum_duplicates()
        klass = np.repeat(np.arange(U.shape[1]), np.diff(U.indptr))
        keep = U.data != 0
        return cls(U.indices[keep].astype(np.int64), klass[keep], U.data[keep].astype(np.float64))

    @property
    def classes(self) -> np.ndarray:
        """The classes that occur."""
        return self.bounds[0]

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes that occur, and where the entries of each begin; the last one is the end."""
        last = np.flatnonzero(np.append(self.klass[1:] != self.klass[:-1], self.klass.size > 0))
        return self.klass[last], np.append(0, last + 1)

    @cached_property
    def code(self) -> np.ndarray:
        """The place of each entry's class among those that occur."""
        return np.repeat(np.arange(self.classes.size), np.diff(self.bounds[1]))

    @cached_property
    def offset(self) -> np.ndarray:
        """Where the block of each class begins, where all have one, and the end."""
        return np.append(0, np.cumsum(np.diff(self.bounds[1]) ** 2))

    @property
    def block_bytes(self) -> int:
        """What the blocks take, and the product that the largest is made of."""
        sizes = np.diff(self.offset)
        return 8 * int(sizes.sum() + sizes.max(initial=0))

    def only(self, which: np.ndarray) -> Entries:
        """Some of the entries, in their order."""
        return Entries(self.feature[which], self.klass[which], self.u[which])

    def matrix(self, values: np.ndarray, shape: tuple[int, int]) -> sp.csc_array:
        """The (d, k) matrix with these values at the entries; zeros are not stored."""
        keep = values != 0
        indptr = np.searchsorted(self.klass[keep], np.arange(shape[1] + 1))
        return sp.csc_array((values[keep], self.feature[keep], indptr), shape=shape)

    def array(self, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """The same as an array."""
        U = np.zeros(shape)
        U[self.feature, self.klass] = values
        return U

    def place_in(self, others: Entries, d: int) -> np.ndarray:
        """Where each entry is among others of U, which has d rows: -1 where it is not."""
        wanted, known = (some.klass * d + some.feature for some in (self, others))
        place = np.searchsorted(known, wanted)
        return np.where(np.append(known, -1)[place] == wanted, place, -1)

    def with_new(self, feature: np.ndarray, klass: np.ndarray) -> Entries:
        """The non-zeros of this set and the given entries, which start at zero."""
        keep = self.u != 0
        u = np.concatenate([self.u[keep], np.zeros(feature.size)])
        feature = np.concatenate([self.feature[keep], feature])
        klass = np.concatenate([self.klass[keep], klass])
        key = klass * (feature.max(initial=0) + 1) + feature
        order = np.argsort(key, kind="stable")  # of two equal entries the non-zero stays first
        first = np.append(True, np.diff(key[order]) != 0)[: u.size]
        order = order[first]
        return Entries(feature[order], klass[order], u[order])


@dataclass
class Columns:
    """Columns of X for the compiled kernels; no kernel is told twice whether X is sparse."""

    data: tuple
    _gradient: Callable[..., Any]
    _csr: sp.csr_array | None = None  # the same X by rows, where it is sparse
    _last: tuple[Entries, WorkingRows] | None = field(default=None, repr=False)
    _lacking: tuple[np.ndarray, np.ndarray] | None = None  # X, and which columns are not copied yet

    @classmethod
    def of(cls, design: Design) -> Columns:
        """The columns of a design; a dense one is copied by columns, a large one bit by bit."""
        if isinstance(design, SparseDesign):
            csc = design.csc
            data: tuple = (csc.indptr, csc.indices, csc.data, design.shape[0])
            return cls(data, curvature.sparse_gradient, design.X)
        X, gradient = design.X, curvature.dense_gradient
        if X.size < COLUMN_BY_COLUMN or X.flags.f_contiguous:
            return cls((by_columns(X),), gradient)
        room = np.empty(X.shape[::-1], X.dtype)  # the system grants a page when it is written
        return cls((room,), gradient, _lacking=(X, np.ones(X.shape[1], bool)))

    def make(self, features: np.ndarray | None = None) -> None:
        """Let these columns be there, or all."""
        if self._lacking is None:
            return
        (Xt,), (X, lacking) = self.data, self._lacking
        new = np.flatnonzero(lacking) if features is None else np.unique(features)
        new = new[lacking[new]]
        lacking[new] = False
        for some in _samples_at_a_time(new.size, X.shape[0], HESSIAN_ENTRIES):
            Xt[new, some] = X[some, new].T

    @property
    def sparse(self) -> bool:
        """Whether X is sparse: ``data`` is (indptr, indices, values, n) then, else (X^T,)."""
        return len(self.data) > 1

    def stored(self, entries: Entries) -> int:
        """How many values of X belong to the entries, each as often as it occurs."""
        if not self.sparse:
            return entries.feature.size * self.data[0].shape[1]
        return int(np.diff(self.data[0])[entries.feature].sum())

    def _by_rows(self, entries: Entries, size: int) -> WorkingRows | None:
        """The rows for these entries, where V has that size; kept until others are asked for."""
        if self._csr is None or size < LARGE:
            return None
        if self._last is None or self._last[0] is not entries:
            self._last = entries, WorkingRows.of(self._csr, entries)
        return self._last[1]

    def add_product(self, Z: np.ndarray, entries: Entries, values: np.ndarray) -> None:
        """``Z += X S`` for the matrix S with the given values at the entries."""
        if (rows := self._by_rows(entries, Z.size)) is not None:
            rows.add_product(Z, values)
        elif self.sparse:
            indptr, indices, data, _ = self.data
            class_blocks.add_sparse_product(
                indptr, indices, data, entries.feature, entries.klass, values, Z
            )
        else:
            self.along(Z, entries, values)(1.0)

    def along(self, Z: np.ndarray, entries: Entries, s: np.ndarray) -> Callable[[float], None]:
        """A function of t that adds ``t X S`` to Z, for the matrix S with values s at the entries.

        A sparse product is made each time: it is far smaller than Z.
        """
        if self.sparse:
            return lambda t: self.add_product(Z, entries, t * s)
        classes, code = entries.classes, entries.code
        if classes.size <= FEW_CLASSES * Z.shape[1] and not self._by_blas(s, Z.shape[1]):
            few = by_class.dense_product(self.data[0], entries.feature, code, s, classes.size)

            def move_few(t: float) -> None:
                Z[:, classes] += t * few

            return move_few
        change = self.product(entries, s, Z.shape[1])

        def move(t: float) -> None:
            np.add(Z, t * change, out=Z)

        return move

    def _by_blas(self, values: np.ndarray, k: int) -> bool:
        """Whether ``X S`` is made with all of S, zeros and all."""
        return bool(16 * np.count_nonzero(values) > self.data[0].shape[0] * k)

    def reads_entries(self, entries: Entries, V: np.ndarray) -> bool:
        """Whether G_U at the entries is better read off V itself than off its non-zeros by class.

        These are found in two passes over V; a reading off V misses the cache.
        """
        if not self.sparse:
            return many(V, MANY_BLAS)
        return V.size >= LARGE or many(V) or MISSES * self.stored(entries) < V.size

    def reads_all(self, entries: Entries, k: int) -> bool:
        """Whether G_U at the entries is better taken from all of it (``Problem.full_gradient``)."""
        return not self.sparse and MOST_LEFT_OUT * entries.u.size > self.data[0].shape[0] * k

    def product(self, entries: Entries, values: np.ndarray, k: int) -> np.ndarray:
        """``X S`` for the matrix S with the given values at the entries, dense (n, k)."""
        if self.sparse:
            Z = np.zeros((self.data[3], k))
            self.add_product(Z, entries, values)
            return Z
        if self._by_blas(values, k):
            self.make()
            return matmul(self.data[0].T, entries.array(values, (self.data[0].shape[0], k)))
        return by_class.dense_product(self.data[0], entries.feature, entries.klass, values, k)

    def gradient_of_dense(self, entries: Entries, problem: Problem, V: np.ndarray) -> np.ndarray:
        """G_U at the entries, for a V without many zeros."""
        if not self.sparse:
            classes, code = entries.classes, entries.code
            if classes.size > FEW_CLASSES * problem.k or self._all_entries(entries, problem.k):
                return self.dense_gradient(entries, problem.residual(V, 0, problem.k))
            out = np.empty(entries.u.size)
            Rt = np.ascontiguousarray(residual_of(problem, V, classes).T)
            class_blocks.products_at(self.data[0], Rt, entries.feature, code, out)
            return out
        if (rows := self._by_rows(entries, V.size)) is not None:
            return rows.gradient(problem, V)
        out = np.empty(entries.u.size)
        indptr, indices, data, _ = self.data
        class_blocks.sparse_products_at(
            indptr,
            indices,
            data,
            V,
            problem.y,
            problem.weights,
            entries.feature,
            entries.klass,
            out,
        )
        return out

    def dense_gradient(self, entries: Entries, R: np.ndarray) -> np.ndarray:
        """G_U at the entries of dense data, for a dense ``R = diag(weights) (V - Y)``."""
        (Xt,) = self.data
        if self._all_entries(entries, R.shape[1]):
            self.make()
            return matmul(Xt, R)[entries.feature, entries.klass]
        out = np.empty(entries.u.size)
        class_blocks.products_at(Xt, np.ascontiguousarray(R.T), entries.feature, entries.klass, out)
        return out

    def _all_entries(self, entries: Entries, k: int) -> bool:
        """Whether BLAS is faster to G_U at all entries of k classes than a loop to those wanted."""
        return bool(4 * entries.u.size > self.data[0].shape[0] * k)

    def blocks(self, entries: Entries, curvature_at: np.ndarray) -> np.ndarray:
        """``M diag(curvature_at[t]) M^T`` for every class t, M its features in dense data."""
        (Xt,), bounds, offset = self.data, entries.bounds[1], entries.offset
        out = np.empty(offset[-1])
        small = max(SMALL_BLOCK, min(CACHED_BLOCK, CACHED // max(1, Xt.shape[1])))
        starts = entries.feature * Xt.shape[1]
        class_blocks.small_blocks(Xt.ravel(), starts, bounds, curvature_at, small, offset, out)
        for t in np.flatnonzero(np.diff(bounds) > small):
            feature, K = entries.feature[bounds[t] : bounds[t + 1]], out[offset[t] : offset[t + 1]]
            K[:] = 0.0
            for some in _samples_at_a_time(feature.size, Xt.shape[1], HESSIAN_ENTRIES):
                M = Xt[feature, some] * np.sqrt(curvature_at[t, some])
                K += (M @ M.T).ravel()
        return out

    def dense_hessian(
        self,
        entries: Entries,
        curvature_at: np.ndarray,
        weights: np.ndarray,
        size: np.ndarray | None = None,
        H: np.ndarray | None = None,
    ) -> np.ndarray:
        """The Hessian on the entries of dense data by BLAS, into H: for an h without many zeros.

        Samples whose h is positive in one class only have no part in it. Where the sizes of the
        features are given, ``sqrt(sum_i weights_i X_ij^2)``, a large product is made in single
        precision.
        """
        Xt, feature, unit = self.data[0], entries.feature, None
        total, rows = class_blocks.curved_rows(curvature_at, FLAT)
        if size is not None:  # features of size one: no square leaves the range of floats
            unit = np.where(size[feature] > 0.0, size[feature], 1.0)
        copied = rows.size <= WORTH_A_COPY * total.size
        if copied:
            used, feature = np.unique(feature, return_inverse=True)
            at_a_time = _samples_at_a_time(used.size, rows.size, COPIED_ENTRIES)
            parts = [rows[some] for some in at_a_time]
        else:
            parts, total = [np.arange(total.size)], np.where(total > 0.0, total, 1.0)
        classes, bounds = entries.bounds
        H = np.empty((feature.size, feature.size)) if H is None else H
        product = _zeros_in(H, unit)
        blocks = np.zeros(entries.offset[-1])
        here = Entries(feature, entries.klass, entries.u)
        for some in parts:
            if copied:
                Xt = np.empty((used.size, some.size), self.data[0].dtype)
                for j, values in zip(used, Xt, strict=True):  # at once it would be two copies
                    np.take(self.data[0][j], some, out=values)
            h = np.ascontiguousarray(curvature_at.T[np.ix_(classes, some)])
            h *= np.sqrt(weights[some] / total[some])
            _subtract_products(Xt, feature, h, entries.code, unit, product)
            h *= np.sqrt(weights[some] * total[some])  # in place: it can be as large as the scores
            blocks += Columns((Xt,), self._gradient).blocks(here, h)
        if unit is not None:
            class_blocks.widen(H.ravel().view(np.float32), unit, H.ravel())
        class_blocks.add_blocks(H, blocks, entries.offset, bounds)
        return H

    def gradient(self, entries: Entries, residual: tuple) -> np.ndarray:
        """G_U at the entries, for ``residual`` as from ``residual_columns``."""
        out = np.empty(entries.u.size)
        self._gradient(*self.data, entries.feature, entries.klass, *residual, out)
        return out

    def pack(self, entries: Entries, h: np.ndarray, weights: np.ndarray) -> tuple[tuple, tuple]:
        """The values of X at the positions of the curvature h, and the positions in use."""
        args = *self.data, entries.feature, entries.klass
        if self.sparse:
            start, position, x, *positions = curvature.sparse_pack(*args, h, weights)
        else:
            pointer, *positions = curvature.curvature_columns(h, weights, entries.classes)
            start, position, x = curvature.dense_pack(*args, pointer, positions[0])
        packed = start[:-1], start[1:], np.zeros(entries.u.size, np.int64), position, x
        return packed, tuple(positions)

    def packs(self, entries: Entries, h: np.ndarray) -> bool:
        """Whether the values of X are gathered; else the entries :meth:`share` those of X itself.

        The classes share an intercept and the frequent features of long rows: where most samples
        have curvature, what is gathered of them can take far more memory than all scores.
        """
        if not self.sparse:  # where the classes share features, what is gathered is larger than X
            return entries.u.size <= self.data[0].shape[0] or not many(h)
        positions, part = h.shape[0] * entries.classes.size, np.count_nonzero(h) / h.size
        packed = part * (VALUE * self.stored(entries) + POSITION * positions)
        return bool(part <= MANY or packed <= MOST_PACKED * positions)

    def share(self, entries: Entries, h: np.ndarray, weights: np.ndarray) -> tuple[tuple, tuple]:
        """The same as :meth:`pack` with a position for every sample, with curvature or not."""
        indptr, indices, x, n = self.data if self.sparse else self._as_sparse()
        classes, code = entries.classes, entries.code
        # int64 as in pack, whatever X has: kernels are compiled once for both
        start, stop = (indptr[entries.feature + e].astype(np.int64) for e in (0, 1))
        packed = start, stop, n * code, indices, x
        return packed, curvature.curvature_everywhere(h, weights, classes)

    def _as_sparse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Dense columns as (indptr, indices, values, n)."""
        (Xt,) = self.data
        d, n = Xt.shape
        return n * np.arange(d + 1), np.tile(np.arange(n, dtype=np.int32), d), Xt.ravel(), n


def _zeros_in(H: np.ndarray, unit: np.ndarray | None) -> np.ndarray:
    """Zeros as BLAS wants them, in the room of H: in single precision where there is a ``unit``."""
    zeros = H.ravel().view(np.float64 if unit is None else np.float32)[: H.size]
    zeros[:] = 0.0
    return zeros.reshape(H.shape).T


def _subtract_products(
    Xt: np.ndarray,
    feature: np.ndarray,
    part: np.ndarray,
    code: np.ndarray,
    unit: np.ndarray | None,
    product: np.ndarray,
) -> None:
    """Subtract ``Q Q^T`` for ``Q_e = part[code_e] * Xt[feature_e] / unit_e``: its lower triangle.

    Some samples at a time: a large Q would be memory that is new to the process, which costs more
    than the product.
    """
    syrk = dsyrk if unit is None else ssyrk
    part_of = np.ones(feature.size) if unit is None else 1.0 / unit
    for some in _samples_at_a_time(feature.size, Xt.shape[1], HESSIAN_ENTRIES):
        Q = np.empty((feature.size, some.stop - some.start), dtype=product.dtype)
        class_blocks.weighted_columns(Xt, feature, part, code, part_of, some.start, Q)
        syrk(-1.0, Q.T, 1.0, product, trans=1, overwrite_c=1)  # in place: it is as BLAS wants it


def _samples_at_a_time(size: int, n: int, entries: int) -> Iterator[slice]:
    """Slices of n samples that have about so many entries at a time, with that size each."""
    width = max(1, LEAST_SAMPLES, entries // max(1, size))
    for start in range(0, n, width):
        yield slice(start, min(start + width, n))


def violators(
    problem: Problem, V: np.ndarray, limit: int, gradient: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The entries with ``|G_U(j,l)| > lam c_j``: the ``limit`` worst of them, and the scale s.

    Where no coefficient may be negative, only ``-G_U`` counts.

    Works through the classes in blocks, so that no (d, k) array is needed, unless it is given.

    Returns
    -------
    feature, klass, excess : the entries and ``|G_U| - lam c_j`` there.
    s : the largest s <= 1 for which ``s |G_U(j,l)| <= lam c_j`` wherever c_j > 0.
    """
    if gradient is not None:
        return _beyond(problem, gradient, limit)
    bound = problem.lam * problem.penalty_factor
    if isinstance(problem.design, SparseDesign):
        args = V, problem.y, problem.weights
        if few(V):
            rows: tuple | None = StoredRows(problem.k, *curvature.residual_rows(*args))
        else:
            rows = rows_beside_common(problem.design, *args)
        if rows is not None:
            csc = problem.design.csc
            feature, klass, excess, scale = beyond(csc, rows, problem.nonnegative, bound)
            return *worst(feature, klass, excess, limit), scale
    width = max(1, BLOCK_ENTRIES // max(problem.d, problem.n))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    scale = 1.0
    dense = isinstance(problem.design, SparseDesign) or many(V, MANY_BLAS)
    common = problem.common_part(V) if dense else None
    for start in range(0, problem.k, width):
        if start > 0:  # where it is one product, what it is for is worth more than its time
            leave_in_time()
        stop = min(start + width, problem.k)
        classes = np.arange(start, stop)
        if dense:
            R = problem.residual(V, start, stop)
        else:
            pointer, row, value = curvature.residual_columns(V, problem.y, problem.weights, classes)
            shape = problem.n, stop - start
            R = sp.csc_array((value, row, pointer[start : stop + 1]), shape=shape)
        if isinstance(problem.design, SparseDesign):
            csc = problem.design.csc
            feature, klass, over, s = beyond(csc, R, problem.nonnegative, bound)
            scale = min(scale, s)
            found.append(worst(feature, klass + start, over, limit))
            continue
        feature, klass, over, s = _beyond(problem, (common or problem.design).rmatmul(R), limit)
        scale = min(scale, s)
        found.append((feature, klass + start, over))
    feature, klass, excess = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return *worst(feature, klass, excess, limit), scale


def _beyond(
    problem: Problem, G: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The worst of what is violated in some classes, and the scale, as from :func:`violators`."""
    part, bound = problem.constrained_part(G), problem.lam * problem.penalty_factor
    largest = part.max(axis=1)
    some = (largest > bound) & (bound > 0.0)
    scale = float((bound[some] / largest[some]).min(initial=1.0))
    part -= bound[:, None]
    excess = part.ravel()
    beyond = np.flatnonzero(excess > 0.0)  # numpy finds places in two dimensions far more slowly
    excess = excess[beyond]
    if beyond.size > limit:  # first, because division takes long
        keep = _largest(excess, limit)
        beyond, excess = beyond[keep], excess[keep]
    return *np.divmod(beyond, part.shape[1]), excess, scale


def few(V: np.ndarray) -> bool:
    """Whether V is better multiplied by its non-zeros, where X is sparse."""
    return bool(np.count_nonzero(V) < FEW * V.size)


def many(V: np.ndarray, most: float = MANY) -> bool:
    """Whether V is better multiplied as a dense matrix."""
    return bool(np.count_nonzero(V) > most * V.size)


def residual_of(problem: Problem, V: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """``diag(weights) (V - Y)`` in some classes, dense."""
    R = problem.weights[:, None] * V[:, classes]
    place = np.full(problem.k, -1)
    place[classes] = np.arange(classes.size)
    mine = np.flatnonzero(place[problem.y] >= 0)
    R[mine, place[problem.y[mine]]] -= problem.weights[mine]
    return R


def worst(
    feature: np.ndarray, klass: np.ndarray, excess: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The so many entries with the largest excess."""
    if excess.size > limit:
        keep = _largest(excess, limit)
        feature, klass, excess = feature[keep], klass[keep], excess[keep]
    return feature, klass, excess


def _largest(values: np.ndarray, limit: int) -> np.ndarray:
    """The places of the so many largest."""
    return np.argpartition(values, values.size - limit)[values.size - limit :]
