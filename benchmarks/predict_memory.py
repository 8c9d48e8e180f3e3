"""Memory of predictions: very many rows times very many classes, within ``working_memory``.

    python benchmarks/predict_memory.py [--rows 1000000] [--classes 10000] [--budget 64]

X and coef_ are sparse. All scores at once would take rows x classes x 8 bytes; printed is by how
much the peak resident memory of the process grows, less the answer itself.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import time

import numpy as np
import scipy.sparse as sp
import sklearn

from fenchel import SparseLinearClassifier

MB = 1e6


def resident(which: str) -> float:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(which))
    return int(line.split()[1]) * 1024 / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--budget", type=float, default=64, help="working_memory in MiB")
    parser.add_argument("--words", type=int, default=10, help="non-zeros of a row")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, k, d = options.rows, options.classes, 50_000
    columns = rng.integers(0, d, (n, options.words), dtype=np.int32)
    columns.sort(axis=1)
    indptr = np.arange(0, n * options.words + 1, options.words)
    X = sp.csr_array((rng.random(n * options.words), columns.ravel(), indptr), shape=(n, d))
    del columns
    model = SparseLinearClassifier()
    model.coef_ = sp.random_array((k, d), density=2e-4, format="csr", rng=rng)
    model.intercept_, model.classes_, model.n_features_in_ = np.zeros(k), np.arange(k), d
    print(f"{n:,} rows, {k:,} classes: all scores would take {8 * n * k / 1e9:.0f} GB")
    sklearn.set_config(working_memory=options.budget)
    for name in ("predict", "predict_topk"):
        getattr(model, name)(X[:2000])  # compile
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # peaks from here on
        before, began = resident("VmRSS"), time.process_time()
        answer = getattr(model, name)(X)
        taken, answers = resident("VmHWM") - before, answer.nbytes / MB
        print(
            f"{name:<14} working_memory {options.budget * 2**20 / MB:.0f} MB: {taken:.0f} MB at "
            f"the peak, of which the answer {answers:.0f} MB; {time.process_time() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
