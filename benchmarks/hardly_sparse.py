"""A CSR matrix with many stored entries, worked with as it is and as an array.

    python benchmarks/hardly_sparse.py
    FENCHEL_DATA=folder python benchmarks/hardly_sparse.py --frequent

Files in LIBSVM's format are read into CSR form whatever they hold. ``make_design`` copies X into an
array where at least ``HARDLY_SPARSE`` of it is stored; this is where that number comes from. The
data are handwritten digits, and words whose frequency falls with their rank, at several densities.
With ``--frequent`` X stays sparse, and the features of the working set are used as they are stored
or gathered into an array (``fenchel.solvers.gathered``); languages by characters is a shared set.
CPU seconds of one thread to a certified gap of 1e-3, the faster of two runs.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

import fenchel
from fenchel import design
from fenchel.solvers import gathered

#: Seconds a run.
LONGEST = 150

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


def frequent() -> Iterator[tuple[str, sp.csr_array, np.ndarray, float]]:
    """Sparse data with frequent features, and a penalty."""
    for density in DENSITIES[:2]:
        yield "words", *words(density), 1e-3
    if folder := os.environ.get("FENCHEL_DATA"):
        with np.load(Path(folder) / "udhr_langid.npz", allow_pickle=False) as file:
            parts = file["data"].astype(float), file["indices"], file["indptr"]
            yield "languages", normalize(sp.csr_array(parts, tuple(file["shape"]))), file["y"], 1e-4


def seconds(X: sp.csr_array, y: np.ndarray, loss: str, lam: float) -> tuple[float, str]:
    """The CPU seconds of a run, and how it ended."""
    times = []
    for _ in range(2):
        began = time.process_time()
        result = fenchel.solve(X, y, loss=loss, lam=lam, tol=1e-3, max_time=LONGEST)
        times.append(time.process_time() - began)
        if times[0] > 10.0:
            break
    return min(times), str(result.status)


def compare(
    name: str, X: sp.csr_array, y: np.ndarray, loss: str, lam: float, where: Any, setting: str
) -> None:
    """Print the seconds of X as it is stored, and as an array, by a part that decides."""
    times, kept = [], getattr(where, setting)
    for part in (2.0, 0.0 if where is design else kept):
        setattr(where, setting, part)
        times.append(seconds(X, y, loss, lam))
    setattr(where, setting, kept)
    (n, d), ((sparse, ended), (array, also)) = X.shape, times
    late = "" if ended == also == "converged" else f"  ({ended}, {also})"
    print(
        f"{name:9s} {n:6d} {d:6d} {X.nnz / n / d:6.3f} {loss:9s} {sparse:6.2f} s "
        f"{array:6.2f} s {sparse / array:6.2f}{late}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frequent", action="store_true", help="frequent features of sparse data")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data':9s} {'n':>6s} {'d':>6s} stored loss        sparse    array  ratio")
    with threadpool_limits(1):
        if options.frequent:
            for name, X, y, lam in frequent():
                for loss in ("softmax", "sparsemax"):
                    compare(name, sp.csr_array(X), y, loss, lam, gathered, "FREQUENT")
            return
        for name, X, y in data():
            for loss in ("hinge", "softmax", "sparsemax"):
                compare(name, sp.csr_array(X), y, loss, 1e-3, design, "HARDLY_SPARSE")


if __name__ == "__main__":
    main()
