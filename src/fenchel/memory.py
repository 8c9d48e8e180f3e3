"""Memory that a fit is sure to need, known before any of it is taken."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.problem import Matrix

#: Arrays of the size of the scores (n x k) that are held at the same time: X U, V and the centre,
#: the best V so far, and the next X U and V of a step.
SCORE_ARRAYS = 6


def estimate_memory(X: Any, y: Any) -> int:
    """Bytes that fitting a model is sure to add to those of X and y.

    Counted are X by rows and by columns and the arrays of the size of the scores. What a step
    needs besides grows with the number of features that the model uses, which only the fit finds:
    read the result as a lower bound.

    Parameters
    ----------
    X : (n, d) array or scipy sparse.
    y : (n,) labels, or the number of classes.
    """
    k = int(y) if isinstance(y, int | np.integer) else np.unique(np.asarray(y)).size
    return fit_bytes(X if sp.issparse(X) else np.asarray(X), k)


def fit_bytes(X: Matrix, k: int) -> int:
    """The same for k classes."""
    n, d = X.shape
    design = 12 * X.nnz + 4 * (n + d) if sp.issparse(X) else n * d * X.dtype.itemsize
    return 2 * design + 8 * SCORE_ARRAYS * n * k


def check(X: Matrix, k: int) -> None:
    """Raise MemoryError where a fit cannot fit into the memory that is free."""
    needed, free = fit_bytes(X, k), available_memory()
    if free is not None and needed > free:
        n = X.shape[0]
        raise MemoryError(
            f"{n} samples and {k} classes need at least {needed / 2**30:.3g} GiB, of which "
            f"{8 * SCORE_ARRAYS * n * k / 2**30:.3g} GiB are for scores and dual variables, but "
            f"{free / 2**30:.3g} GiB are free: fit at most {int(n * free / needed)} of these rows, "
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
