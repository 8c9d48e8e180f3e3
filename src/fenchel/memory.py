"""The memory that a fit takes, known before any of it is taken."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.design.dense import BLOCK_ENTRIES as DESIGN_ENTRIES
from fenchel.losses import Loss, Sparsemax, get_loss
from fenchel.problem import BLOCK_ENTRIES, Matrix
from fenchel.solvers.l1_model import BLAS_SIZE
from fenchel.solvers.primal_dual import DENSE_ENTRIES
from fenchel.solvers.working_rows import LARGE
from fenchel.solvers.working_set import HESSIAN_ENTRIES, first_entries

#: What any fit takes: objects, buffers, and what the allocator keeps between the arrays; more with
#: sparse data, of which the arrays come in many sizes.
FLOOR, FLOOR_SPARSE = 5_000_000, 10_000_000

#: Arrays of the size of the scores (n x k) at the peak, in a Newton step: X U, V, the best V; rows,
#: weights and shares of the curvature, the change of X U and a spare one of it. A loss that is not
#: smooth has a centre as well, which a dense X has room for: less is gathered than is allowed for.
#: Counted from what was measured, as are the others here. Rows, weights and shares are two arrays
#: and a half, and only of where a V has curvature: with sparsemax on its support, which is anything
#: from all of the scores (a large penalty) to next to nothing, and half of it is counted.
SCORE_ARRAYS, CENTRE, CURVATURE, SUPPORT = 8, 1, 2.5, 0.5

#: Blocks of the gradient (d x k) at the same time; of sparse data only what is beyond its bound is
#: kept.
GRADIENT_BLOCKS = 3

#: Arrays of the size of the scores and of U that the hybrid gradient steps hold together with a
#: check: three points with their products, sums, the last restart and the best point. U is sparse.
HYBRID_SCORES, HYBRID_GRADIENTS = 14, 7

#: X is held by rows and by columns, and what was freed beside them is not all used again. At the
#: start two doubles for a non-zero are there as well, of which the norms of the columns are made,
#: but only so many arrays of scores. Of a dense X it is one for an entry of a block, and one more
#: where that is converted; a loss that is not smooth has as much at another time.
SPARSE_COPIES, DOUBLE, POSITION, NORM_DOUBLES, FIRST_SCORES = 2.1, 8, 4, 2, 3

#: The rows of a sparse X in the features of the working set are copied where scores are many: about
#: this part of X.
WORKING_PART = 0.3

#: A step on a dense X gathers its rows for the entries that it works on, a value and a position,
#: or forms the Hessian.
PACKED_BYTES = 12

#: A Newton step on dense data has the Hessian, once in single precision as well, the part that is
#: solved and its factors; with a smooth loss what they are formed of, with a factor for each value;
#: and fewer arrays of scores, as in all of a fit with such a loss.
HESSIANS, HESSIAN_BLOCKS, STEP_SCORES, SMOOTH_SCORES = 3.5, 2, 6, 7


def estimate_memory(X: Any, y: Any, loss: str | Loss = "hinge") -> int:
    """Bytes that fitting a model adds to those of X and y at the peak, to about 20%.

    It is for ``solver="auto"``. Counted are X by rows and by columns, arrays of the size of the
    scores and of the gradient, and what a Newton step gathers; how many was set on the cases of
    benchmarks/memory.py. A penalty so large that the fit ends at once takes less than half, and so
    does one that leaves few coefficients to a smooth loss on dense data, where there is room for a
    Hessian of as many as there are samples. What a step gathers of dense data grows with the
    features that a model uses: with very many samples and a small penalty it can take more. What is
    compiled on the first use of all is not counted.

    Parameters
    ----------
    X : (n, d) array or scipy sparse.
    y : (n,) labels, or the number of classes.
    loss : as in :class:`~fenchel.SparseLinearClassifier`.
    """
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions (samples, features), found shape {X.shape}: give the data "
            "that are to be fitted."
        )
    k = int(y) if isinstance(y, int | np.integer) else np.unique(np.asarray(y)).size
    if k < 2:
        raise ValueError(f"y must hold, or be, at least two classes, found {k}: give all labels.")
    return fit_bytes(X, k, loss)


def fit_bytes(X: Matrix, k: int, loss: str | Loss) -> int:
    """The same for k classes."""
    n, d = X.shape
    scores, gradient = 8 * n * k, 8 * d * k
    loss = get_loss(loss)
    work: float = SCORE_ARRAYS * scores
    if sp.issparse(X):
        if not loss.smooth:
            work += CENTRE * scores
        elif isinstance(loss, Sparsemax):
            work -= SUPPORT * CURVATURE * scores
        stored = X.nnz + n
        position = X.indices.itemsize if X.format in ("csr", "csc") else POSITION
        copies = SPARSE_COPIES + (WORKING_PART if n * k > LARGE else 0.0)
        held = int(copies * stored * (DOUBLE + position))
        start = NORM_DOUBLES * DOUBLE * stored + FIRST_SCORES * scores
        return FLOOR_SPARSE + held + int(max(work, start))
    work += GRADIENT_BLOCKS * min(gradient, 8 * BLOCK_ENTRIES)
    entries = min(d * k // 2, n, BLAS_SIZE)
    if loss.smooth:
        work -= (SCORE_ARRAYS - SMOOTH_SCORES) * scores
        values = min(entries * n, HESSIAN_ENTRIES)
        step = STEP_SCORES * scores + 8 * (HESSIANS * entries**2 + HESSIAN_BLOCKS * values)
        work = max(work, step)
    elif (d + 1) * k <= n:  # Newton steps from the start, with Hessians
        work += 8 * HESSIANS * entries**2
    else:
        work += max(PACKED_BYTES * n * first_entries(d, k), 8 * HESSIANS * entries**2)
        if (n + d) * k <= DENSE_ENTRIES:
            work = max(work, HYBRID_SCORES * scores + HYBRID_GRADIENTS * gradient)
    doubles = 1 if loss.smooth and X.dtype == np.float64 else NORM_DOUBLES
    start = doubles * DOUBLE * min(n * d, DESIGN_ENTRIES)
    return FLOOR + 2 * n * (d + 1) * X.dtype.itemsize + int(max(work, start))


def check(X: Matrix, k: int, loss: str | Loss) -> None:
    """Raise MemoryError where a fit cannot fit into the memory that is free."""
    needed, free = fit_bytes(X, k, loss), available_memory()
    if free is not None and needed > free:
        n = X.shape[0]
        rows = int(n * max(0, free - FLOOR) / (needed - FLOOR))
        raise MemoryError(
            f"{n} samples and {k} classes need about {needed / 2**30:.3g} GiB, of which "
            f"{8 * SCORE_ARRAYS * n * k / 2**30:.3g} GiB are for scores and dual variables, but "
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
