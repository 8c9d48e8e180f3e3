"""A CSR matrix with many stored entries, worked with as it is and as an array.

    python benchmarks/hardly_sparse.py

Files in LIBSVM's format are read into CSR form whatever they hold. ``make_design`` copies X into an
array where at least ``HARDLY_SPARSE`` of it is stored; this is where that number comes from. The
data are handwritten digits, and words whose frequency falls with their rank, at several densities.
CPU seconds of one thread to a certified gap of 1e-3, the faster of two runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import fenchel
from fenchel import design

#: Parts of X that are stored.
DENSITIES = 0.05, 0.1, 0.15, 0.2, 0.3


def data() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y
    for density in DENSITIES:
        yield "pixels", *pixels(density)
    for density in DENSITIES:
        yield "words", *words(density)


def pixels(density: float) -> tuple[np.ndarray, np.ndarray]:
    """All products of two pixels of a digit, of which the largest are kept."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 3.0] / 16
    pairs = np.triu_indices(X.shape[1])
    X = (X[:, :, None] * X[:, None, :])[:, *pairs]
    return np.where(np.quantile(X, 1.0 - density) < X, X, 0.0), y


def words(density: float, n: int = 6000, d: int = 2000, k: int = 12) -> tuple[np.ndarray, ...]:
    """Words that are more frequent in some classes than in others."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    frequency = (1.0 + np.arange(d)) ** -0.8
    frequency = np.minimum(frequency * density / frequency.mean(), 0.95)
    by_class = np.minimum(frequency[:, None] * np.exp(0.7 * rng.normal(size=(d, k))), 0.98)
    return np.where(rng.random((n, d)) < by_class[:, y].T, rng.random((n, d)), 0.0), y


def seconds(X: sp.csr_array, y: np.ndarray, loss: str, hardly_sparse: float) -> float:
    design.HARDLY_SPARSE = hardly_sparse
    times = []
    for _ in range(2):
        began = time.process_time()
        fenchel.solve(X, y, loss=loss, lam=1e-3, tol=1e-3, max_time=60)
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{'data':8s} {'n':>6s} {'d':>6s} stored loss        sparse    array  ratio")
    with threadpool_limits(1):
        for name, X, y in data():
            stored, (n, d) = np.count_nonzero(X) / X.size, X.shape
            for loss in ("hinge", "softmax", "sparsemax"):
                sparse, array = (seconds(sp.csr_array(X), y, loss, part) for part in (2.0, 0.0))
                print(
                    f"{name:8s} {n:6d} {d:6d} {stored:6.2f} {loss:9s} {sparse:6.2f} s "
                    f"{array:6.2f} s {sparse / array:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
