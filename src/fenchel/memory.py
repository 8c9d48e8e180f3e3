"""The memory that a fit takes, known before any of it is taken."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.losses import Loss, Sparsemax, get_loss
from fenchel.path import check_scale, largest_penalty
from fenchel.problem import BLOCK_ENTRIES, Matrix, Problem
from fenchel.solvers.l1_model import BLAS_SIZE
from fenchel.solvers.primal_dual import DENSE_ENTRIES
from fenchel.solvers.working_rows import LARGE
from fenchel.solving import solve_problem
from fenchel.validation import check_number

#: What any fit takes: objects, buffers, and what the allocator keeps between the arrays; more with
#: sparse data, of which the arrays come in many sizes.
FLOOR, FLOOR_SPARSE = 5_000_000, 10_000_000

#: Arrays of the size of the scores (n x k) at the peak, in a Newton step: X U, V, the best V; rows,
#: weights and shares of the curvature, the change of X U and a spare one of it. A loss that is not
#: smooth has a centre as well, which a dense X has room for: less is gathered than is allowed for.
#: Counted from what was measured, as are the others here. Rows, weights and shares are two arrays
#: and a half, and only of where a V has curvature: with sparsemax on its support, which is anything
#: from all of the scores (a large penalty) to next to nothing, and this part of it is counted.
SCORE_ARRAYS, CENTRE, CURVATURE, SUPPORT = 8, 1, 2.5, 0.6

#: Arrays of scores with a smooth loss on dense data.
SMOOTH_SCORES = 7

#: Blocks of the gradient (d x k) at the same time; of sparse data only what is beyond its bound is
#: kept.
GRADIENT_BLOCKS = 3

#: Arrays of the size of the scores and of U that the hybrid gradient steps hold together with a
#: check: three points with their products, sums, the last restart and the best point. U is sparse.
HYBRID_SCORES, HYBRID_GRADIENTS = 14, 7

#: X is held by rows and by columns, and what was freed beside them is not all used again. At the
#: start two doubles for a non-zero are there as well, of which the norms of the columns are made,
#: but only so many arrays of scores.
SPARSE_COPIES, DOUBLE, POSITION, NORM_DOUBLES, FIRST_SCORES = 2.3, 8, 4, 2, 3

#: The rows of a sparse X in the features of the working set are copied where scores are many: about
#: this part of X.
WORKING_PART = 0.3

#: Products with a dense X in single precision widen a block of it, and turn that by columns.
WIDENED = 2

#: A dense X in its own order of the rows is made and freed before the work. Up to this size the
#: allocator keeps that: it is room for the work.
KEPT_FREE = 32 << 20

#: The Hessian of a Newton step on dense data has rows for the coefficients that are used and for
#: some that stay zero: so many times as many with the hinge loss, or where hybrid gradient steps
#: come first, which leave many behind; with softmax and sparsemax the fewer the more of all
#: coefficients are used. With softmax it is there together with the part that is solved, otherwise
#: so often: together with the one before.
UNUSED_HINGE, UNUSED_HYBRID, UNUSED_SOFTMAX, UNUSED_SPARSEMAX, HESSIANS = 1.4, 2.5, 1.0, 0.5, 2.2

#: How many coefficients are used is seen in a fit of so many rows that is as rough as this: by more
#: rows more are used, with about this power of their number, and by losses that are less smooth
#: than softmax so many times as many, where most are not used.
LOOK_ROWS, LOOK_TOL, LOOK_ITERATIONS, LOOK_GROWTH, LESS_SMOOTH = 2000, 1e-2, 8, 0.1, 1.2

#: There is no look where the Hessian is at most this part of the rest in any case.
SMALL_PART = 0.1


def estimate_memory(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    *,
    alpha: float = 1e-3,
    alpha_scale: str = "absolute",
) -> int:
    """Bytes that fitting a model adds to those of X and y at the peak, about.

    It is for ``solver="auto"``. Counted are X by rows and by columns, arrays of the size of the
    scores and of the gradient, and the Hessian of a Newton step on dense data, whose size depends
    on the penalty: how many coefficients are used is seen in a rough fit of 2000 rows where it
    matters. Most fits of more than 30 MB take within 20% of it; docs/guide.md has those that do
    not. Less is taken by fits with so large a penalty that nothing is used, by small ones, and on
    dense data by those that use some 2500 coefficients or more, for which there is room for a
    Hessian that may never be formed. What is compiled on the first use of all is not counted.

    Parameters
    ----------
    X : (n, d) array or scipy sparse.
    y : (n,) labels, or the number of classes: the answer is for a small penalty then.
    loss, alpha, alpha_scale : as in :class:`~fenchel.SparseLinearClassifier`.
    """
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions (samples, features), found shape {X.shape}: give the data "
            "that are to be fitted."
        )
    if isinstance(y, int | np.integer):
        k, codes = int(y), None
    else:
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        k = classes.size
    if k < 2:
        raise ValueError(f"y must hold, or be, at least two classes, found {k}: give all labels.")
    size = Size.of(X, k, loss)
    used = np.inf if codes is None else coefficients(size, X, codes, alpha, alpha_scale)
    return size.fit_bytes(used)


def coefficients(size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str) -> float:
    """How many coefficients a fit will use, about: infinity where that does not matter."""
    alpha = check_number("alpha", alpha, remedy="give the l1 penalty as a number >= 0")
    check_scale(scale)
    if size.fit_bytes() <= (1.0 + SMALL_PART) * size.fit_bytes(0.0):
        return np.inf
    return look(X, codes, size.loss, alpha, scale)


def look(X: np.ndarray, codes: np.ndarray, loss: Loss, alpha: float, scale: str) -> float:
    """The coefficients that a fit of dense data will use, about, by one of a few of its rows.

    That is with softmax for any loss, of which the steps are the cheapest.
    """
    n, labels = X.shape[0], np.arange(codes.max() + 1)  # some may have no sample among the rows
    # drawn, because labels often come in turns; by the same seed, so that the answer is the same
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, LOOK_ROWS), replace=False))
    problem = Problem.from_data(
        X[rows], codes[rows], loss="softmax", lam=0.0, classes=labels, fit_intercept=True
    )
    try:
        unit = 1.0 if scale == "absolute" else largest_penalty(replace(problem, loss=loss))
    except ValueError:  # no signal in these rows: nothing is known, and the fit says so if need be
        return np.inf
    problem = problem.with_penalty(alpha * unit)
    U = solve_problem(problem, tol=LOOK_TOL, max_iter=LOOK_ITERATIONS, rng=0).U
    part = (U.nnz if sp.issparse(U) else np.count_nonzero(U)) / (U.shape[0] * U.shape[1])
    more = (n / rows.size) ** LOOK_GROWTH
    more *= 1.0 if loss.twice_differentiable else LESS_SMOOTH
    # those that are used against those that are not: there are never more than all
    return float(U.shape[0] * U.shape[1] * more * part / (1.0 + (more - 1.0) * part))


@dataclass(frozen=True)
class Size:
    """What the memory of a fit depends on."""

    n: int
    d: int
    k: int
    stored: int  # bytes of X beside a column of ones
    nonzeros: int | None  # of a sparse X beside a column of ones
    loss: Loss

    @classmethod
    def of(cls, X: Matrix, k: int, loss: str | Loss) -> Size:
        (n, d), loss = X.shape, get_loss(loss)
        if not sp.issparse(X):
            item = X.dtype.itemsize if X.dtype.kind == "f" else DOUBLE
            return cls(n, d, k, n * (d + 1) * item, None, loss)
        position = X.indices.itemsize if X.format in ("csr", "csc") else POSITION
        return cls(n, d, k, (X.nnz + n) * (DOUBLE + position), X.nnz + n, loss)

    def with_rows(self, n: int) -> Size:
        """The same with so many of the rows."""
        nonzeros = None if self.nonzeros is None else self.nonzeros * n // self.n
        return replace(self, n=n, stored=self.stored * n // self.n, nonzeros=nonzeros)

    def fit_bytes(self, used: float = np.inf) -> int:
        """What a fit takes that uses so many coefficients: by default, as many as it may."""
        n, d, k, loss = self.n, self.d, self.k, self.loss
        scores, gradient = 8 * n * k, 8 * d * k
        if self.nonzeros is not None:
            work: float = SCORE_ARRAYS * scores
            if not loss.smooth:
                work += CENTRE * scores
            elif isinstance(loss, Sparsemax):
                work -= (1.0 - SUPPORT) * CURVATURE * scores
            copies = SPARSE_COPIES + (WORKING_PART if n * k > LARGE else 0.0)
            start = NORM_DOUBLES * DOUBLE * self.nonzeros + FIRST_SCORES * scores
            return FLOOR_SPARSE + int(copies * self.stored + max(work, start))
        work = (SMOOTH_SCORES if loss.smooth else SCORE_ARRAYS) * scores
        work += GRADIENT_BLOCKS * min(gradient, 8 * BLOCK_ENTRIES) + self._hessian(used)
        if self.stored < DOUBLE * n * (d + 1):
            work += WIDENED * DOUBLE * min(n * d, DESIGN_ENTRIES)
        if self._begins_rough:
            work = max(work, HYBRID_SCORES * scores + HYBRID_GRADIENTS * gradient)
        freed = self.stored if self.stored <= KEPT_FREE else 0
        return FLOOR + 2 * self.stored + int(max(work, freed))

    @property
    def _begins_rough(self) -> bool:
        """Whether hybrid gradient steps come first (:class:`.PrimalDual`), for dense data."""
        fits = (self.n + self.d) * self.k <= DENSE_ENTRIES
        return not self.loss.smooth and (self.d + 1) * self.k > self.n and fits

    def _hessian(self, used: float) -> float:
        """Bytes of the Hessian on dense data; a fit uses no more coefficients than samples."""
        size = self.d * self.k
        used = min(used, size, self.n)
        unused = (1.0 - used / size) ** 2
        if self.loss.twice_differentiable:
            rows = min(used * (1.0 + UNUSED_SOFTMAX * unused), BLAS_SIZE)
            return 8 * (rows**2 + min(used, rows) ** 2)
        if self.loss.smooth:
            others = UNUSED_SPARSEMAX * unused
        else:
            others = UNUSED_HYBRID if self._begins_rough else UNUSED_HINGE
        return 8 * HESSIANS * min(used * (1.0 + others), size, BLAS_SIZE) ** 2


def check(X: Matrix, codes: np.ndarray, k: int, loss: str | Loss, alpha: float, scale: str) -> None:
    """Raise MemoryError where a fit cannot fit into the memory that is free."""
    size, free = Size.of(X, k, loss), available_memory()
    if free is None or size.fit_bytes() <= free:  # with any penalty: no need to look
        return
    used = coefficients(size, X, codes, alpha, scale)
    needed = size.fit_bytes(used)
    if needed <= free:
        return
    rows, beyond = 0, size.n  # the most rows that fit are between them
    while beyond - rows > 1:
        middle = (rows + beyond) // 2
        fits = size.with_rows(middle).fit_bytes(used) <= free
        rows, beyond = (middle, beyond) if fits else (rows, middle)
    raise MemoryError(
        f"{size.n} samples and {k} classes need about {needed / 2**30:.3g} GiB, of which "
        f"{8 * SCORE_ARRAYS * size.n * k / 2**30:.3g} GiB are for scores and dual variables, but "
        f"{free / 2**30:.3g} GiB are free: fit at most {rows} of these rows, "
        "or merge rare classes."
    )


def available_memory() -> int | None:
    """Bytes of memory that are free, or None where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
