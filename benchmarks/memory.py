"""Memory that a fit takes, against what ``estimate_memory`` says before (fresh process each).

    python benchmarks/memory.py [CASE ...]
    FENCHEL_DATA=folder python benchmarks/memory.py --shared
    FENCHEL_DATA=folder python benchmarks/memory.py --earlier
    FENCHEL_DATA=folder python benchmarks/memory.py --unseen
    FENCHEL_DATA=folder python benchmarks/memory.py --audit
    python benchmarks/memory.py --tiny [--without-intercept]
    FENCHEL_DATA=folder python benchmarks/memory.py --without-intercept

Measured is the growth of the peak resident memory during a fit. The same fit was made before it, so
that no kernel is compiled or loaded on the way: that takes 20 to 30 MB, once a process. The last
columns are CPU seconds of the fit and of the estimate, and what the estimate takes itself.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.decomposition import TruncatedSVD
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import normalize, scale

from fenchel import SparseLinearClassifier, estimate_memory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from _data import load

MB = 1e6

#: Seconds after which a fit is cut short. The one before it has as many: what a fit loads that got
#: further would be measured.
LONGEST = 40.0


def dense(n: int, d: int, k: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Classes around centres that differ in a few features."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    for l in range(k):
        X[y == l, (7 * l) % d] += 3
        X[y == l, (11 * l + 3) % d] -= 2
    return X, y


def text(n: int, d: int, k: int, words: int, even: bool = True) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of rare and frequent words, some of which belong to a class; of length one.

    Classes are of one size, or the l-th of a size that is proportional to 1 / l.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    if not even:
        rank = 1.0 / np.arange(1, k + 1)
        y = rng.choice(k, n, p=rank / rank.sum())
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


def words(name: str, k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The d most frequent features of the k largest classes of text, as an array."""
    X, y = largest(name, k)
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    return X[:, np.sort(np.argsort(-frequency, kind="stable")[:d])].toarray(), y


def stored_words(name: str, k: int, d: int) -> tuple[sp.csr_array, np.ndarray]:
    """The same as they are stored, which frequent words hardly need."""
    X, y = words(name, k, d)
    return sp.csr_array(X), y


def strokes(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """Pictures of pens on paper, whose background is not stored."""
    X, y = shared(name)
    return sp.csr_array(np.where(X > -0.5, X + 1.0, 0.0)), y


def embedded(name: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The d leading singular components of text, standardised."""
    X, y = shared(name)
    return scale(TruncatedSVD(d, random_state=0).fit_transform(X)), y


def fourier(name: str, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random Fourier features of the first rows of a dense set."""
    X, y = shared(name)
    return RBFSampler(n_components=d, gamma=0.02, random_state=0).fit_transform(X[:n]), y[:n]


def products(name: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The d features of largest variance of a dense set and their products, standardised."""
    X, y = shared(name)
    X = scale(X[:, np.sort(np.argsort(-X.var(axis=0), kind="stable")[:d])])
    first, second = np.triu_indices(X.shape[1])
    return scale(np.hstack([X, X[:, first] * X[:, second]])), y


def first(name: str, n: int) -> tuple[Any, np.ndarray]:
    """The first rows of a shared data set."""
    X, y = shared(name)
    return X[:n], y[:n]


def drawn(name: str, n: int) -> tuple[Any, np.ndarray]:
    """As many rows of it, drawn."""
    X, y = shared(name)
    rows = np.sort(np.random.default_rng(1).choice(y.size, n, replace=False))
    return X[rows], y[rows]


def pixels(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures as cameras store them: whole numbers up to 255, or ink and paper."""
    X, y = shared(name)
    X = (X - X.min()) / (X.max() - X.min())
    return (X > 0.5 if dtype == "bool" else 255 * X).astype(dtype), y


def counts(n: int, d: int, k: int, words: int) -> tuple[sp.csr_array, np.ndarray]:
    """How often words occur, as whole numbers."""
    X, y = text(n, d, k, words)
    return (X > 0).astype(np.int64), y


def repeated(n: int, d: int, k: int, distinct: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows many times over."""
    X, y = dense(distinct, d, k)
    rows = np.random.default_rng(0).integers(0, distinct, n)
    return X[rows], y[rows]


def clusters(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of scikit-learn, several a class, in an eighth of the features."""
    return make_classification(
        n, d, n_informative=d // 8, n_redundant=d // 8, n_classes=k, random_state=0
    )


def waves(n: int, d: int, k: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Random walks over the features, correlated over long distances, around a wave a class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    X = np.cumsum(rng.standard_normal((n, d)), axis=1) / np.sqrt(d)
    X += np.sin(np.linspace(0, 6, d) * (1 + np.arange(k)[:, None] / k))[y]
    return X.astype(dtype), y


def toy(load: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
    """A set that comes with scikit-learn, standardised."""
    X, y = load(return_X_y=True)
    return scale(X), y


def digits(classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """The digits of scikit-learn, or the first of them."""
    X, y = load_digits(return_X_y=True)
    return X[y < classes], y[y < classes]


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
    "waves float32": (waves, (12_000, 784, 10, "float32"), "softmax", 1e-2),
    "class means": (dense, (10_000, 2000, 500), "hinge", 1e-3),
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
        ("debian_section", "hinge", 1e-3),
        ("debian_section", "softmax", 1e-4),
        ("debian_section", "sparsemax", 3e-4),
        ("udhr_langid", "hinge", 1e-3),
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

#: Dense data with other penalties: what the Hessian was counted on.
SHARED |= {
    f"{name} {loss} {alpha:g}": (shared, (name,), loss, alpha)
    for name in ("usps", "isolet1560")
    for loss in ("softmax", "sparsemax", "hinge")
    for alpha in (1e-2, 1e-3, 1e-4)
}

SHARED |= {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, *alphas in (
        ("news20 embedded", embedded, ("news20", 100), 1e-4, 1e-3, 1e-3),
        ("clusters", clusters, (8000, 300, 8), 1e-3, 1e-2, 1e-2),
    )
    for loss, alpha in zip(("softmax", "sparsemax", "hinge"), alphas, strict=True)
}

#: Data that were held out once, with various penalties.
EARLIER: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, *alphas in (
        ("wordnet_hyper", largest, ("wordnet_hyper", 60), 1e-3, 3e-4, 1e-4),
        ("debian_maint", largest, ("debian_maint", 40), 1e-4, 1e-3, 1e-3),
        ("udhr_langid", largest, ("udhr_langid", 100), 1e-3, 1e-4, 1e-2),
        ("letter fourier", fourier, ("letter", 6000, 300), 1e-3, 1e-4, 1e-2),
        ("hwu64 words", words, ("hwu64", 20, 1500), 1e-4, 1e-3, 1e-3),
        ("waves", waves, (4000, 784, 10), 1e-4, 1e-3, 1e-2),
        ("stackoverflow20 words", words, ("stackoverflow20", 20, 300), 1e-4, 1e-4, 1e-3),
        ("banking77 embedded", embedded, ("banking77", 150), 1e-3, 1e-3, 1e-2),
        ("usps fourier", fourier, ("usps", 5000, 400), 1e-5, 1e-5, 1e-4),
        ("many clusters", clusters, (15000, 120, 12), 1e-3, 1e-3, 1e-3),
        ("dna", shared, ("dna",), 1e-3, 1e-4, 1e-3),
        ("primary_cancers", shared, ("primary_cancers",), 1e-2, 1e-2, 1e-2),
        ("nci60", shared, ("nci60",), 1e-2, 1e-2, 1e-2),
    )
    for loss, alpha in zip(("softmax", "sparsemax", "hinge"), alphas, strict=False)
}

#: Data on which nothing was set; written down before anything was measured on them.
UNSEEN: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, *alphas in (
        ("isolet fourier", fourier, ("isolet1560", 1560, 1200), 1e-3, 1e-3, 1e-2),
        ("dna fourier", fourier, ("dna", 2000, 900), 1e-4, 1e-3, 1e-3),
        ("usps products", products, ("usps", 40), 1e-3, 1e-4, 1e-3),
        ("letter products", products, ("letter", 16), 1e-4, 1e-3, 1e-3),
        ("hwu64 embedded", embedded, ("hwu64", 200), 1e-3, 1e-4, 1e-3),
        ("stackoverflow20 embedded", embedded, ("stackoverflow20", 120), 1e-3, 1e-2, 1e-3),
        ("news20 words", words, ("news20", 10, 800), 1e-3, 1e-4, 1e-3),
        ("clinc150 words", words, ("clinc150", 40, 400), 1e-4, 1e-3, 1e-3),
        ("few clusters", clusters, (6000, 500, 5), 1e-2, 1e-3, 1e-2),
        ("tall clusters", clusters, (30_000, 60, 15), 1e-4, 1e-3, 1e-3),
        ("long waves", waves, (2500, 1500, 20, "float32"), 1e-3, 1e-2, 1e-3),
        ("few waves", waves, (9000, 400, 4), 1e-3, 1e-4, 1e-3),
        ("centres", dense, (8000, 250, 30), 1e-3, 1e-3, 1e-2),
        ("wide centres", dense, (1000, 6000, 4), 1e-2, 1e-3, 1e-2),
        ("short text", text, (40_000, 60_000, 15, 30), 1e-4, 1e-3, 1e-3),
        ("topics", text, (8000, 40_000, 120, 60), 1e-3, 1e-4, 1e-3),
        ("clinc150 half", largest, ("clinc150", 75), 1e-3, 1e-3, 3e-4),
        ("debian_section large", largest, ("debian_section", 12), 1e-4, 1e-3, 1e-3),
        ("news20 large", largest, ("news20", 8), 1e-3, 1e-3, 1e-4),
        ("isolet products", products, ("isolet1560", 30), 1e-3, 1e-3, 1e-3),
        ("usps half", fourier, ("usps", 3000, 300), 1e-3, 1e-3, 1e-3),
        ("square clusters", clusters, (1200, 400, 12), 1e-2, 1e-3, 3e-3),
        # written down last
        ("square waves", waves, (1000, 300, 16), 1e-3, 1e-4, 1e-3),
        ("many square clusters", clusters, (1500, 320, 20), 3e-3, 3e-3, 1e-3),
        # stored as sparse, and worked with as arrays
        ("usps strokes", strokes, ("usps",), 1e-3, 1e-3, 1e-3),
        ("news20 frequent", stored_words, ("news20", 20, 200), 1e-3, 1e-3, 1e-3),
        ("debian_section frequent", stored_words, ("debian_section", 57, 60), 1e-3, 1e-3, 1e-2),
    )
    for loss, alpha in zip(("softmax", "sparsemax", "hinge"), alphas, strict=True)
}

#: More of them, written down after all others here, and measured once.
UNSEEN |= {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, loss, alpha in (
        ("more isolet products", products, ("isolet1560", 45), "hinge", 3e-3),
        ("two waves", waves, (6000, 600, 2), "sparsemax", 1e-3),
        ("float32 centres", dense, (20_000, 300, 12, "float32"), "hinge", 1e-2),
        ("banking77 words", words, ("banking77", 77, 250), "sparsemax", 1e-3),
        ("hwu64 frequent", stored_words, ("hwu64", 64, 40), "hinge", 3e-3),
        ("wordnet_hyper large", largest, ("wordnet_hyper", 30), "hinge", 3e-4),
        ("many short text", text, (15_000, 8000, 200, 12), "softmax", 1e-3),
        ("square centres", dense, (2000, 1800, 40), "softmax", 3e-3),
    )
}

#: What an audit measured, on data that nothing was set on then: parts of real sets, numbers that a
#: fit has to convert, and rows that it merges.
AUDIT: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, loss, alpha in (
        ("udhr_langid first", first, ("udhr_langid", 4000), "sparsemax", 1e-4),
        ("udhr_langid drawn", drawn, ("udhr_langid", 4000), "sparsemax", 1e-4),
        ("wordnet_hyper drawn", drawn, ("wordnet_hyper", 5000), "softmax", 1e-4),
        ("news20 drawn", drawn, ("news20", 4000), "hinge", 3e-4),
        ("usps uint8", pixels, ("usps", "uint8"), "softmax", 0.1),
        ("usps uint8", pixels, ("usps", "uint8"), "hinge", 0.1),
        ("usps bool", pixels, ("usps", "bool"), "softmax", 1e-2),
        ("usps float16", pixels, ("usps", "float16"), "softmax", 1.0),
        ("word counts", counts, (20_000, 30_000, 20, 40), "softmax", 1e-3),
        ("repeated", repeated, (60_000, 200, 10, 500), "softmax", 1e-2),
        ("repeated", repeated, (60_000, 200, 10, 500), "hinge", 1e-2),
    )
}

#: Without an intercept, where classes without coefficients share columns of large sparse data.
WITHOUT: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} hinge {alpha:g}": (shared, (name,), "hinge", alpha)
    for name in (
        "udhr_langid", "wordnet_hyper", "debian_maint", "debian_section", "clinc150", "news20"
    )
    for alpha in (1e-3, 3e-4, 1e-4)
}  # fmt: skip

#: The same, written down before anything was measured on them without an intercept.
WITHOUT |= {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, loss, alpha in (
        ("wordnet_hyper half", largest, ("wordnet_hyper", 500), "hinge", 3e-4),
        ("debian_maint drawn", drawn, ("debian_maint", 20_000), "hinge", 1e-3),
        ("udhr_langid more", drawn, ("udhr_langid", 12_000), "hinge", 3e-3),
        ("many topics", text, (15_000, 20_000, 400, 25), "hinge", 1e-3),
        ("uneven topics", text, (30_000, 15_000, 300, 15, False), "hinge", 3e-4),
        ("long topics", text, (12_000, 40_000, 400, 80), "hinge", 3e-3),
        ("more short text", text, (30_000, 8000, 200, 12), "hinge", 1e-3),
        ("banking77 half", largest, ("banking77", 40), "sparsemax", 1e-3),
        ("debian_section drawn", drawn, ("debian_section", 15_000), "softmax", 3e-4),
        ("eight clusters", clusters, (4000, 160, 8), "softmax", 1e-3),
        ("six waves", waves, (5000, 500, 6), "hinge", 1e-3),
        ("isolet half", fourier, ("isolet1560", 1000, 800), "hinge", 3e-3),
    )
}

#: Smooth losses there, written down when udhr_langid with softmax had been off.
WITHOUT |= {
    f"{name} {loss} {alpha:g}": (shared, (name,), loss, alpha)
    for name, loss, alpha in (
        ("udhr_langid", "softmax", 1e-3),
        ("udhr_langid", "sparsemax", 1e-3),
        ("debian_maint", "softmax", 1e-3),
        ("debian_maint", "sparsemax", 1e-3),
        ("wordnet_hyper", "softmax", 1e-3),
        ("wordnet_hyper", "sparsemax", 3e-4),
    )
}

#: All groups.
EVERY = CASES | SHARED | EARLIER | UNSEEN | AUDIT | WITHOUT

#: Fits of a few megabytes, on which the floor was set, and others that were held out: all of them
#: written down before anything was measured on them.
TINY: dict[str, tuple[Any, tuple, str, float]] = {
    f"{name} {loss} {alpha:g}": (make, arguments, loss, alpha)
    for name, make, arguments, alpha in (
        ("iris", toy, (load_iris,), 1e-2),
        ("breast_cancer", toy, (load_breast_cancer,), 1e-3),
        ("digits", digits, (), 1e-3),
        ("small clusters", clusters, (1000, 40, 4), 1e-2),
        ("small centres", dense, (3000, 30, 5), 1e-2),
        ("small wide", dense, (60, 2000, 3), 3e-2),
        ("small text", text, (500, 2000, 5, 20), 1e-3),
        ("words", text, (3000, 5000, 10, 20), 1e-3),
        ("small topics", text, (2000, 3000, 40, 30), 3e-4),
        # held out
        ("wine", toy, (load_wine,), 1e-3),
        ("five digits", digits, (5,), 1e-2),
        ("small waves", waves, (800, 100, 4), 1e-3),
        ("more clusters", clusters, (3000, 48, 6), 1e-3),
        ("small square", dense, (400, 400, 20), 1e-2),
        ("small float32", dense, (1500, 100, 8, "float32"), 1e-2),
        ("rows of ten", text, (2000, 3000, 6, 10), 1e-3),
        ("few topics", text, (1000, 8000, 30, 30), 1e-3),
        ("small long text", text, (400, 6000, 3, 120), 3e-4),
        ("eight digits", digits, (8,), 3e-3),
        ("wider clusters", clusters, (2000, 64, 5), 3e-3),
        ("short waves", waves, (1500, 60, 12), 1e-3),
        ("wider square", dense, (500, 700, 10), 1e-2),
        # written down last
        ("noisy square", clusters, (600, 240, 8), 3e-3),
        ("wide waves", waves, (200, 1500, 5), 3e-3),
        ("scarce text", text, (1500, 4000, 12, 40), 1e-3),
        ("float32 waves", waves, (2500, 80, 7, "float32"), 1e-3),
    )
    for loss in ("hinge", "softmax")
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
    make, arguments, loss, alpha = (EVERY | TINY)[case]
    model = SparseLinearClassifier(
        loss, alpha * scale, tol=tol, max_time=LONGEST, fit_intercept=intercept
    )
    X, y = make(*arguments)
    model.fit(X, y)
    _, taken, seconds = peak(lambda: model.fit(X, y))
    estimate, looking, look_seconds = peak(
        lambda: estimate_memory(X, y, loss, alpha=alpha * scale, fit_intercept=intercept) / MB
    )
    print(
        f"{case:<36}{megabytes(estimate):>7} MB{megabytes(taken):>8} MB{estimate / taken:>7.2f}"
        f"{seconds:>9.2f} s{look_seconds:>7.2f} s{megabytes(looking):>7} MB  {model.status_}",
        flush=True,
    )


def megabytes(size: float) -> str:
    """With a decimal where it matters."""
    return f"{size:.1f}" if size < 20.0 else f"{size:.0f}"


def peak(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What comes of some work, the growth of the resident memory at its peak in MB, CPU seconds."""
    forget()
    before, began = resident("VmRSS"), time.process_time()
    found = work()
    return found, resident("VmHWM") - before, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--shared", action="store_true", help="the real data sets")
    parser.add_argument(
        "--without-intercept", action="store_true", help="of no group: cases of their own"
    )
    parser.add_argument("--earlier", action="store_true", help="data that were held out once")
    parser.add_argument("--unseen", action="store_true", help="data on which nothing was set")
    parser.add_argument("--audit", action="store_true", help="data that an audit chose")
    parser.add_argument("--tiny", action="store_true", help="fits of a few megabytes")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--alpha-times", type=float, default=1.0, help="a factor on every alpha")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    options = parser.parse_args()
    cases = EVERY | TINY
    if options.here:
        measure(options.case[0], not options.without_intercept, options.tol, options.alpha_times)
        return
    listed = WITHOUT if options.without_intercept else CASES
    listed = SHARED if options.shared else EARLIER if options.earlier else listed
    listed = TINY if options.tiny else UNSEEN if options.unseen else listed
    listed = AUDIT if options.audit else listed
    chosen = options.case or list(listed)
    if unknown := [case for case in chosen if case not in cases]:
        parser.error(f"no case {unknown[0]!r}: use one of {', '.join(cases)}.")
    print(
        f"{'case':<36}{'estimate':>10}{'measured':>11}{'ratio':>7}{'fit':>11}{'look':>9}"
        f"{'its peak':>10}",
        flush=True,
    )
    passed = [f"--tol={options.tol}", f"--alpha-times={options.alpha_times}"]
    passed += ["--without-intercept"] * options.without_intercept
    for case in chosen:
        subprocess.run([sys.executable, __file__, case, "--here", *passed], check=False)


if __name__ == "__main__":
    main()
