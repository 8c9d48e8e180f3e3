"""The memory that a fit takes, known before any of it is taken."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.fit_size import DOUBLE, SCORE_ARRAYS, SMALL_PART, Seen, Size
from fenchel.free_memory import available_memory
from fenchel.losses import Loss
from fenchel.memory_look import FIT_TOL, UntilHessian, begun, look, seen_of
from fenchel.path import check_scale
from fenchel.problem import Matrix
from fenchel.samples import canonical, distinct
from fenchel.traced_memory import Peak, kernels_and_modules
from fenchel.validation import check_design, check_number, refuse_lazy

#: A fit is traced again where kernels were loaded on the way, so many times at most.
TRACED_FITS = 3

#: What the allocator keeps between traced arrays, as a part of them, up to so many bytes. The
#: blocks of a dense X in single precision that are widened and freed again leave one as large.
GAPS, MOST_GAPS = 0.12, 1_500_000

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
) -> int:
    """Bytes that fitting a model adds to those of X and y at the peak, about.

    It is for ``solver="auto"`` and the default ``tol``. Of small data, up to a million entries of X
    and scores, a whole fit is made and its arrays are traced, if it ends within a second
    (``tracemalloc``; not where the caller uses that himself). Else counted are X by rows and by
    columns, arrays of the size of the scores and of the gradient, and the Hessian of a Newton step,
    which depends on the penalty: where it matters, a fit is begun, of all rows up to 4 million
    entries of X and scores, and ends at the first Hessian that it would form, or after 600 hybrid
    gradient steps: with the hinge loss on wide dense data that can be most of the fit. Of sparse
    data with more than a million it is only seen whether zero is the solution, and with sparsemax
    what the penalty tells of its support. docs/memory.md has ratios to the measured peak, what the
    look costs, and what is off by more than 20%.
    Where a fit takes about a megabyte or less, the estimate is no more than an order of magnitude:
    what the interpreter has free makes as large a difference as the fit.
    What is compiled on the first use of all is not counted.

    Parameters
    ----------
    X : (n, d) array or scipy sparse.
    y : (n,) labels, or the number of classes: the answer is for a small penalty then.
    loss, alpha, alpha_scale : as in :class:`~fenchel.SparseLinearClassifier`.
    """
    refuse_lazy("X", X)
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
        if codes.size != X.shape[0]:
            raise ValueError(
                f"y has {codes.size} labels and X {X.shape[0]} rows: give one label a row."
            )
    if k < 2:
        raise ValueError(f"y must hold, or be, at least two classes, found {k}: give all labels.")
    size = Size.of(X, k, loss)
    if codes is None:
        return size.fit_bytes()
    alpha = check_number("alpha", alpha, remedy="give the l1 penalty as a number >= 0")
    check_scale(alpha_scale)
    found = traced(size, X, codes, alpha, alpha_scale) if size.is_small else None
    if found is None:
        return size.fit_bytes(looked_at(size, X, codes, alpha, alpha_scale))
    taken, seen, ended = found
    return taken if ended else max(taken, size.fit_bytes(seen))


def traced(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str
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
        found = traced_once(size, X, codes, alpha, scale)
        if found is None or known == kernels_and_modules():
            return found  # else what was loaded on the way was traced as well
    return None


def traced_once(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str
) -> tuple[int, Seen | None, bool] | None:
    """The same for one fit, as the estimators make it; None where there is no signal."""
    peak = Peak()
    tracemalloc.start()
    try:
        X = canonical(check_design(X))  # in the user's order, by which errors name rows
        rows, weights = distinct(X, codes, None)
        problem = begun(X, codes[rows], codes.max() + 1, size.loss, alpha, scale, rows, weights)
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
    told = size.nonzeros is None or size.begins
    return int(taken), seen if told else None, ended


def looked_at(
    size: Size, X: Matrix, codes: np.ndarray, alpha: float, scale: str, most: float = np.inf
) -> Seen | None:
    """What a look at no more rows than so many tells: None where it would not matter."""
    if size.nonzeros is not None:  # a part of sparse data may have signal where all have none
        whole = most >= size.n
        return look(X, codes, size.loss, alpha, scale, size.n, size.begins) if whole else None
    if size.fit_bytes() <= (1.0 + SMALL_PART) * size.fit_bytes(Seen()):
        return None
    rows = int(min(size.n, max(LEAST_ROWS, LOOK_ENTRIES // (size.d + size.k)), most))
    enough = rows >= min(size.n, LEAST_ROWS)
    return look(X, codes, size.loss, alpha, scale, rows) if enough else None


def check(X: Matrix, codes: np.ndarray, k: int, loss: str | Loss, alpha: float, scale: str) -> None:
    """Raise MemoryError where a fit cannot fit into the memory that is free."""
    size, free = Size.of(X, k, loss), available_memory()
    if free is None or size.fit_bytes() <= free:  # with any penalty: no need to look
        return
    # the look itself has to fit: it forms no Hessian
    seen = looked_at(size, X, codes, alpha, scale, size.most_rows(free, Seen()))
    needed = size.fit_bytes(seen)
    if needed <= free:
        return
    rows = size.most_rows(free, seen)
    raise MemoryError(
        f"{size.n} samples and {k} classes need about {needed / 2**30:.3g} GiB, of which "
        f"{8 * SCORE_ARRAYS * size.n * k / 2**30:.3g} GiB are for scores and dual variables, but "
        f"{free / 2**30:.3g} GiB are free: fit at most {rows} of these rows, "
        "or merge rare classes."
    )
