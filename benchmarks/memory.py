"""Memory that a fit takes, against what ``estimate_memory`` says before (fresh process each).

    python benchmarks/memory.py [CASE ...]
    FENCHEL_DATA=folder python benchmarks/memory.py --shared
    FENCHEL_DATA=folder python benchmarks/memory.py --unseen
    python benchmarks/memory.py --without-intercept

Measured is the growth of the peak resident memory during a fit. The same fit was made before it, so
that no kernel is compiled or loaded on the way: that takes 20 to 30 MB, once a process.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize, scale

from fenchel import SparseLinearClassifier, estimate_memory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

MB = 1e6


def dense(n: int, d: int, k: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Classes around centres that differ in a few features."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    for l in range(k):
        X[y == l, (7 * l) % d] += 3
        X[y == l, (11 * l + 3) % d] -= 2
    return X, y


def text(n: int, d: int, k: int, words: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of rare and frequent words, some of which belong to a class; of length one."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    common = np.minimum((d * rng.random((n, words)) ** 3).astype(np.int64), d - 1)
    own = (y[:, None] * 97 + rng.integers(0, 30, (n, words))) % d
    columns = np.where(rng.random((n, words)) < 0.3, own, common)
    rows = np.repeat(np.arange(n), words)
    X = sp.csr_array((np.ones(n * words), (rows, columns.ravel())), shape=(n, d))
    X.data = 1 + np.log(X.data)
    return sp.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), y


def shared(name: str) -> tuple[Any, np.ndarray]:
    """A shared data set; counts become rows of length one, genes are standardised."""
    data = load(name)
    return SCALED.get(name, lambda X: X)(data["X"]), data["y"]


SCALED = {"udhr_langid": normalize, "nakayama": scale}


def largest(name: str, k: int) -> tuple[Any, np.ndarray]:
    """The k largest classes of a shared data set."""
    X, y = shared(name)
    kept = np.isin(y, np.argsort(-np.bincount(y), kind="stable")[:k])
    return X[kept], y[kept]


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The digits of scikit-learn: as small as data comes."""
    return load_digits(return_X_y=True)


#: name -> (data, its arguments, loss, alpha)
CASES: dict[str, tuple[Any, tuple, str, float]] = {
    "tall hinge": (dense, (60_000, 60, 20), "hinge", 3e-2),
    "tall softmax": (dense, (60_000, 60, 20), "softmax", 1e-2),
    "wide hinge": (dense, (300, 40_000, 10), "hinge", 5e-2),
    "wide softmax": (dense, (300, 40_000, 10), "softmax", 2e-2),
    "wide float32": (dense, (600, 40_000, 10, "float32"), "sparsemax", 2e-2),
    "square hinge": (dense, (1500, 1500, 800), "hinge", 1e-3),
    "text hinge": (text, (20_000, 30_000, 50, 40), "hinge", 3e-4),
    "text softmax": (text, (20_000, 30_000, 50, 40), "softmax", 3e-4),
    "text sparsemax": (text, (20_000, 30_000, 50, 40), "sparsemax", 1e-4),
    "long text": (text, (20_000, 50_000, 20, 200), "sparsemax", 1e-3),
    "many classes": (text, (20_000, 20_000, 400, 20), "sparsemax", 1e-4),
    "many classes hinge": (text, (10_000, 20_000, 300, 20), "hinge", 2e-4),
    "digits hinge": (digits, (), "hinge", 1e-2),
    "digits softmax": (digits, (), "softmax", 1e-2),
}

#: The same on real data.
SHARED: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss}": (shared, (name,), loss, alpha)
    for name, loss, alpha in (
        ("news20", "hinge", 1e-4),
        ("news20", "softmax", 1e-4),
        ("news20", "sparsemax", 1e-4),
        ("clinc150", "hinge", 1e-3),
        ("clinc150", "softmax", 1e-4),
        ("clinc150", "sparsemax", 1e-4),
        ("hwu64", "hinge", 3e-4),
        ("hwu64", "softmax", 3e-4),
        ("hwu64", "sparsemax", 3e-4),
        ("banking77", "hinge", 3e-4),
        ("banking77", "softmax", 3e-4),
        ("stackoverflow20", "hinge", 1e-4),
        ("stackoverflow20", "softmax", 1e-4),
        ("debian_section", "softmax", 1e-4),
        ("debian_section", "sparsemax", 3e-4),
        ("udhr_langid", "softmax", 1e-3),
        ("udhr_langid", "sparsemax", 1e-3),
        ("usps", "softmax", 1e-4),
        ("usps", "hinge", 1e-3),
        ("letter", "softmax", 1e-4),
        ("letter", "hinge", 1e-3),
        ("nakayama", "softmax", 1e-2),
        ("nakayama", "hinge", 1e-2),
    )
}

#: Data on which nothing was set: the largest classes of two sparse sets, and two dense ones.
UNSEEN: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss}": (largest, (name, k), loss, alpha)
    for name, k, alpha in (
        ("wordnet_hyper", 200, 1e-4),
        ("debian_maint", 100, 1e-4),
        ("isolet1560", 26, 1e-3),
        ("nci60", 9, 1e-2),
    )
    for loss in ("hinge", "softmax", "sparsemax")
}


def resident(which: str) -> float:
    """Resident memory of this process in MB: VmRSS, or VmHWM for its peak since ``forget``."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(which))
    return int(line.split()[1]) * 1024 / MB


def forget() -> None:
    """Give back what is free, and measure peaks from here on."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def measure(case: str, intercept: bool, tol: float, scale: float) -> None:
    """Fit one case and print what it took."""
    make, arguments, loss, alpha = (CASES | SHARED | UNSEEN)[case]
    model = SparseLinearClassifier(
        loss, alpha * scale, tol=tol, max_iter=30, fit_intercept=intercept
    )
    X, y = make(*arguments)
    model.fit(X, y)
    forget()
    before = resident("VmRSS")
    model.fit(X, y)
    taken = resident("VmHWM") - before
    estimate = estimate_memory(X, y, loss) / MB
    print(
        f"{case:<26}{estimate:>8.0f} MB{taken:>10.0f} MB{estimate / taken:>8.2f}  {model.status_}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--shared", action="store_true", help="the real data sets")
    parser.add_argument("--without-intercept", action="store_true")
    parser.add_argument("--unseen", action="store_true", help="data on which nothing was set")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--alpha-times", type=float, default=1.0, help="a factor on every alpha")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    options = parser.parse_args()
    cases = CASES | SHARED | UNSEEN
    if options.here:
        measure(options.case[0], not options.without_intercept, options.tol, options.alpha_times)
        return
    listed = SHARED if options.shared else UNSEEN if options.unseen else CASES
    chosen = options.case or list(listed)
    if unknown := [case for case in chosen if case not in cases]:
        parser.error(f"no case {unknown[0]!r}: use one of {', '.join(cases)}.")
    print(f"{'case':<26}{'estimate':>11}{'measured':>13}{'ratio':>8}", flush=True)
    passed = [f"--tol={options.tol}", f"--alpha-times={options.alpha_times}"]
    passed += ["--without-intercept"] * options.without_intercept
    for case in chosen:
        subprocess.run([sys.executable, __file__, case, "--here", *passed], check=False)


if __name__ == "__main__":
    main()
