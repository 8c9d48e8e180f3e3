"""The memory that a fit takes, known before any of it is taken."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.fit_size import DOUBLE, POSITION, SMALL_PART, Seen, Size
from fenchel.free_memory import available_memory
from fenchel.losses import Loss
from fenchel.memory_look import FIT_TOL, Samples, UntilHessian, begun, look, seen_of
from fenchel.path import check_scale
from fenchel.problem import Matrix
from fenchel.samples import BLOCK_ENTRIES as HASHED_ENTRIES
from fenchel.samples import canonical, distinct
from fenchel.traced_memory import Peak, kernels_and_modules
from fenchel.validation import (
    check_entries,
    check_flag,
    check_number,
    check_sample_weight,
    encode_labels,
)

#: A fit is traced again where kernels were loaded on the way, so many times at most.
TRACED_FITS = 3

#: What the allocator keeps between traced arrays, as a part of them, up to so many bytes. The
#: blocks of a dense X in single precision that are widened and freed again leave one as large.
GAPS, MOST_GAPS = 0.12, 1_500_000

#: Bytes for each row that is given, to find equal ones: a hash, the weight, the order, and what
#: sorting by these takes.
MERGED = 72

#: The look is at rows with so many entries of X and scores, but not at fewer than the second where
#: there are more.
LOOK_ENTRIES, LEAST_ROWS = 1 << 22, 500


def estimate_memory(
    X: Any,
    y: Any,
    loss: str | Loss = "hinge",
    *,
    alpha: float = 1e-3,
    alpha_scale: str = "absolute",
    fit_intercept: bool = True,
    sample_weight: Any = None,
) -> int:
    """Bytes that fitting a model adds to those of X and y at the peak, about.

    It is for one fit with ``penalty="l1"``, ``solver="auto"`` or "primal-dual", and the default
    ``tol``. Other solvers, which differ widely, and the folds of a cross-validation take other
    amounts; ``fit`` counts the folds, and refuses other solvers only where not even a copy of X
    would fit. Of small data, up to a million entries of X
    and scores, a whole fit is made and its arrays are traced, if it ends within a second
    (``tracemalloc``; not where the caller uses that himself). Else counted are X by rows and by
    columns, arrays of the size of the scores and of the gradient, and the Hessian of a Newton step,
    which depends on the penalty: where it matters, a fit is begun, of all rows up to 4 million
    entries of X and scores, and ends at the first Hessian that it would form, or after 600 hybrid
    gradient steps: with the hinge loss on wide dense data that can be most of the fit. Of sparse
    data with more than a million it is only seen whether zero is the solution, with sparsemax what
    the penalty tells of its support, and without an intercept which classes want a coefficient:
    the others take little. docs/memory.md has ratios to the measured peak, what the
    look costs, and what is off by more than 20%.
    Where a fit takes about a megabyte or less, the estimate is no more than an order of magnitude:
    what the interpreter has free makes as large a difference as the fit.
    What is compiled on the first use of all is not counted.

    Parameters
    ----------
    X : (n, d) array or scipy sparse. Numbers that are neither float64 nor float32, and sparse
        matrices that are not by rows, are converted by a fit: that copy is counted.
    y : (n,) labels, or the number of classes: the answer is for a small penalty then, and as if no
        sample were there twice.
    loss, alpha, alpha_scale, fit_intercept, sample_weight : as in
        :class:`~fenchel.SparseLinearClassifier`. Equal samples of a class count once, and those
        without weight not at all, as in ``fit``.
    """
    given = X
    X = check_entries(X)
    converted = converted_bytes(given if sp.issparse(given) else X)
    alpha = check_number("alpha", alpha, remedy="give the l1 penalty as a number >= 0")
    check_scale(alpha_scale)
    intercept = check_flag("fit_intercept", fit_intercept)
    if isinstance(y, int | np.integer):
        _refuse_few(int(y))
        return Size.of(X, int(y), loss, intercept=intercept).fit_bytes() + converted
    codes, labels = encode_labels(y, X.shape[0])
    _refuse_few(labels.size)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X.shape[0])
    X = canonical(X)
    samples = distinct(X, codes, sample_weight)
    size = Size.of(X, labels.size, loss, samples[0], intercept)
    asked = X, codes, alpha, alpha_scale, samples
    found = traced(size, *asked) if size.is_small else None
    if found is None:
        taken = size.fit_bytes(looked_at(size, *asked))
    else:
        taken, seen, ended = found
        taken = taken if ended else max(taken, size.fit_bytes(seen))
    return max(taken, merged_bytes(X)) + converted


def _refuse_few(k: int) -> None:
    if k < 2:
        raise ValueError(f"y must hold, or be, at least two classes, found {k}: give all labels.")


def converted_bytes(X: Matrix) -> int:
    """What the copy takes that a fit makes of X to have it in floats, by rows."""
    floats = X.dtype in (np.float64, np.float32)
    if floats and (not sp.issparse(X) or X.format == "csr"):
        return 0
    item = X.dtype.itemsize if floats else DOUBLE
    return (item + POSITION) * X.nnz if sp.issparse(X) else item * X.size


def merged_bytes(X: Matrix) -> int:
    """What it takes to find equal rows."""
    return MERGED * X.shape[0] + 2 * DOUBLE * min(X.size, HASHED_ENTRIES)


def traced(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str, samples: Samples
) -> tuple[int, Seen | None, bool] | None:
    """What a fit takes by the trace of one, what was seen of it, and whether it ended in time.

    None where it cannot be traced: the caller traces for himself, little memory is free, there is
    no signal, or every fit loads something.
    """
    free = available_memory()
    if tracemalloc.is_tracing() or (free is not None and size.fit_bytes() > free):
        return None
    for _ in range(TRACED_FITS):
        known = kernels_and_modules()
        found = traced_once(size, X, codes, alpha, scale, samples)
        if found is None or known == kernels_and_modules():
            return found  # else what was loaded on the way was traced as well
    return None


def traced_once(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str, samples: Samples
) -> tuple[int, Seen | None, bool] | None:
    """The same for one fit, as the estimators make it; None where there is no signal."""
    peak, (rows, weights) = Peak(), samples
    tracemalloc.start()
    try:
        k, asked = codes.max() + 1, (alpha, scale, rows, weights, size.intercept)
        problem = begun(X, codes[rows], k, size.loss, *asked)
        if problem is None:
            return None
        seen = seen_of(problem, UntilHessian(peak), problem.n, problem.n, FIT_TOL)
        ended = tracemalloc.is_tracing()
        taken: float = peak.taken()
    finally:
        tracemalloc.stop()
    taken += min(GAPS * taken, MOST_GAPS)
    if size.is_widened:
        taken += DOUBLE * min(size.n * size.d, DESIGN_ENTRIES)
    told = size.nonzeros is None or size.begins or seen.frequent
    return int(taken), seen if told else None, ended


def looked_at(
    size: Size,
    X: Matrix,
    codes: np.ndarray,
    alpha: float,
    scale: str,
    samples: Samples,
    most: float = np.inf,
) -> Seen | None:
    """What a look at no more rows than so many tells: None where it would not matter."""
    asked = X, codes, size.loss, alpha, scale
    if size.nonzeros is not None:  # a part of sparse data may have signal where all have none
        if most < size.n:
            return None
        return look(*asked, size.n, size.begins, samples, size.intercept)
    if size.fit_bytes() <= (1.0 + SMALL_PART) * size.fit_bytes(Seen()):
        return None
    rows = int(min(size.n, max(LEAST_ROWS, LOOK_ENTRIES // (size.d + size.k)), most))
    enough = rows >= min(size.n, LEAST_ROWS)
    if not enough:
        return None
    return look(*asked, rows, samples=samples, intercept=size.intercept)
