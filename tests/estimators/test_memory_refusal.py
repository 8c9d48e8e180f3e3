"""What does not fit into memory is refused before any of it is taken, with what would help."""

from __future__ import annotations

import re
import tracemalloc

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import (
    SparseLinearClassifier,
    SparseLinearClassifierCV,
    estimate_memory,
    fit_size,
    memory,
    memory_refusal,
)
from fenchel.memory_refusal import Folds, most_of
from fenchel.samples import distinct


@pytest.fixture
def counted(monkeypatch):
    """Estimates as for data of which no whole fit is made."""
    monkeypatch.setattr(fit_size, "WHOLE_ENTRIES", -1)


@pytest.fixture
def free(monkeypatch):
    """A function that lets so many bytes be free."""

    def let(size):
        monkeypatch.setattr(memory_refusal, "available_memory", lambda: size)

    return let


def noise(n, d, k):
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = rng.standard_normal((n, d))
    X[np.arange(n), y % d] += 3.0
    return X, y


def refused(model, X, y, *args, **more):
    """The words of a refusal."""
    with pytest.raises(MemoryError) as refusal:
        model.fit(X, y, *args, **more)
    return str(refusal.value)


@pytest.mark.usefixtures("counted")
def test_what_cannot_fit_is_refused_with_what_would(free, monkeypatch):
    monkeypatch.setattr(memory, "look", lambda *args, **more: None)  # with any penalty
    X, y = noise(8000, 10, 50)
    half = (estimate_memory(X, 50) + fit_size.FLOOR) // 2
    free(half)
    text = refused(SparseLinearClassifier(), X, y)
    rows = int(re.search(r"at most (\d+) of these rows", text).group(1))
    assert estimate_memory(X[:rows], 50) <= half < estimate_memory(X[: rows + 1], 50)
    with pytest.raises(MemoryError):
        SparseLinearClassifierCV().fit(X, y)
    with pytest.raises(MemoryError):
        SparseLinearClassifier().path(X, y)


@pytest.mark.usefixtures("counted")
def test_a_fit_is_refused_by_its_own_penalty(free):
    X, y = noise(1500, 150, 10)
    enough = estimate_memory(X, y, "softmax", alpha=0.1)
    free(enough)
    assert enough < estimate_memory(X, 10, "softmax")  # of a smaller penalty that would not fit
    model = SparseLinearClassifier("softmax", alpha=0.1).fit(X, y)
    assert len(model.path(X, y, alphas=[0.2, 0.1])) == 2
    with pytest.raises(MemoryError):
        model.set_params(alpha=1e-3).fit(X, y)
    with pytest.raises(MemoryError):
        model.path(X, y, alphas=[0.2, 1e-3])
    with pytest.raises(MemoryError):
        model.path(X, y, alphas=3, eps=1e-3)
    with pytest.raises(MemoryError):
        SparseLinearClassifierCV("softmax", alphas=[0.2, 1e-3]).fit(X, y)


def test_equal_samples_and_those_without_weight_are_not_counted(free):
    X, y = noise(400, 50, 4)
    enough = estimate_memory(X, 4, "softmax")
    free(enough)
    model = SparseLinearClassifier("softmax", alpha=0.05)
    repeated, labels = np.tile(X, (20, 1)), np.tile(y, 20)
    assert estimate_memory(repeated, 4, "softmax") > enough
    model.fit(repeated, labels)
    other = np.vstack([X, *(X + shift for shift in range(1, 20))])
    assert "8000 distinct samples" in refused(model, other, labels)
    weights = np.repeat([1.0, 0.0], [400, 7600])
    model.fit(other, labels, sample_weight=weights)


@pytest.mark.parametrize("kind", ["array", "bool", "float16", "sparse"])
def test_an_estimate_counts_them_once(kind):
    X, y = noise(600, 200, 6)
    X = {
        "array": X,
        "bool": X > 0.0,
        "float16": X.astype(np.float16),
        "sparse": sp.csr_array(np.where(np.abs(X) > 1.8, X, 0.0)),
    }[kind]
    once, copy = estimate_memory(X, y, "softmax"), 8 * X.size * (kind in ("bool", "float16"))
    times, stack = 5, sp.vstack if kind == "sparse" else np.vstack
    again = estimate_memory(stack([X] * times), np.tile(y, times), "softmax")
    assert again - times * copy == pytest.approx(once - copy, rel=0.05, abs=72 * 600 * times)
    weights = np.repeat([2.0, 0.0], [600, 2400])
    other = stack([X, *([~X if kind == "bool" else X * 3] * 4)])
    left = estimate_memory(other, np.tile(y, times), "softmax", sample_weight=weights)
    assert left - times * copy == pytest.approx(once - copy, rel=0.05, abs=72 * 600 * times)


def test_finding_equal_samples_takes_what_is_counted():
    X, y = noise(40, 20, 4)
    X, y = np.tile(X, (1000, 1)), np.tile(y, 1000)
    distinct(X, y, None)  # compiles
    tracemalloc.start()
    distinct(X, y, None)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken == pytest.approx(memory.merged_bytes(X), rel=0.25)
    assert estimate_memory(X, y, "softmax") == memory.merged_bytes(X)  # a fit takes less


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "int64", "longdouble"])
def test_the_copy_in_floats_is_counted(dtype):
    X = np.random.default_rng(0).integers(0, 2, (300, 200))
    y = np.arange(300) % 3
    for labels in (y, 3):
        floats = estimate_memory(X.astype(float), labels, "softmax")
        assert estimate_memory(X.astype(dtype), labels, "softmax") == floats + 8 * X.size
        if dtype != "float16":  # scipy has no sparse matrices of it
            X_sparse = sp.csr_array(np.where(np.arange(200) % 20 == 0, X, 0))
            floats = estimate_memory(X_sparse.astype(float), labels, "softmax")
            converted = estimate_memory(X_sparse.astype(dtype), labels, "softmax")
            assert converted == floats + 12 * X_sparse.nnz


@pytest.mark.parametrize("missing", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [float, object])
def test_labels_that_are_missing_are_refused(missing, dtype):
    X, y = noise(30, 2, 3)
    y = y.astype(dtype)
    y[4] = missing
    if dtype is object and missing == np.inf:
        assert estimate_memory(X, y) > 0  # a label like any other, as for ``solve``
        return
    with pytest.raises(ValueError, match="y contains NaN"):
        estimate_memory(X, y)
    with pytest.raises(ValueError, match="NaN" if np.isnan(missing) else "infinity"):
        SparseLinearClassifier().fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        fenchel.solve(X, y, lam=0.1)


@pytest.mark.usefixtures("counted")
def test_only_what_would_be_enough_is_named(free):
    X, y = noise(600, 900, 5)
    free(3_000_000)
    text = refused(SparseLinearClassifier("softmax"), X, y)
    rows = int(re.search(r"at most (\d+) of these rows", text).group(1))
    features = int(re.search(r"at most (\d+) of the features", text).group(1))
    SparseLinearClassifier("softmax", alpha=0.05).fit(X[:rows], y[:rows])
    SparseLinearClassifier("softmax", alpha=0.05).fit(X[:, :features], y)
    assert not re.search("merge|float32|csr|alpha", text)
    free(100_000)
    text = refused(SparseLinearClassifier("softmax"), X, y)
    assert text.endswith("free: no single change of the data is enough, free some memory.")


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ("single", "give X as float32"),
        ("sparse", "give X as a scipy.sparse.csr_array"),
        ("alpha", "raise alpha"),
        ("classes", r"merge rare classes, to at most (\d+)"),
    ],
)
def test_what_helps_is_named(free, remedy, words, monkeypatch):
    monkeypatch.setattr(fit_size, "DESIGN_ENTRIES", 1000)  # what is widened of single precision
    X, y = noise(*{"classes": (3000, 4, 100), "sparse": (2000, 1000, 3)}.get(remedy, (600, 600, 3)))
    X, k = np.where(np.abs(X) > 2.2, X, 0.0) if remedy == "sparse" else X, y.max() + 1
    model = SparseLinearClassifier("softmax", alpha=1e-3)
    helped = {
        "single": lambda: estimate_memory(X.astype(np.float32), k, "softmax"),
        "sparse": lambda: estimate_memory(sp.csr_array(X), k, "softmax"),
        "alpha": lambda: estimate_memory(X, y, "softmax", alpha=0.3),
        "classes": lambda: estimate_memory(X, 60, "softmax"),
    }[remedy]()
    if remedy == "single":  # with any penalty
        monkeypatch.setattr(memory, "look", lambda *args, **more: None)
    free(int(1.02 * helped))
    text = refused(model, X, y)
    assert re.search(words, text)
    if remedy == "classes":
        assert 40 <= int(re.search(words, text).group(1)) < 70


@pytest.mark.parametrize(
    "options",
    [{"solver": "sublinear"}, {"solver": "mirror-prox"}, {"penalty": "group"}],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_solvers_are_refused_what_no_solver_can_do(free, options):
    """The estimate is for the certified one: here a copy of X has to fit, and no more."""
    X, y = noise(500, 100, 5)
    model = SparseLinearClassifier(max_iter=1, **options)
    free(fit_size.FLOOR + 8 * 500 * 101)
    model.fit(X, y)
    with pytest.raises(MemoryError):
        SparseLinearClassifier(max_iter=1).fit(X, y)
    free(fit_size.FLOOR + 8 * 500 * 101 - 1)
    assert "need at least" in refused(model, X, y)


@pytest.mark.usefixtures("counted")
def test_folds_are_counted_as_often_as_they_run_at_once(free):
    X, y = noise(900, 60, 3)
    model = SparseLinearClassifierCV("softmax", alphas=[0.1], cv=3)
    size = fit_size.Size.of(X, 3, "softmax")

    def needed(at_once, processes):
        return int(Folds(2 / 3, at_once, processes, 60 / 61).bytes_of(size, None)) + 1

    with joblib.parallel_config(backend="threading"):
        for n_jobs in (1, 2, 3):
            free(needed(n_jobs, False))
            model.set_params(n_jobs=n_jobs).fit(X, y)
            free(needed(1, False))
        text = refused(model, X, y)
        assert "(3 folds at once)" in text
        assert "give n_jobs=1" in text
        model.set_params(n_jobs=50)  # there are no more than three
        free(needed(3, False))
        model.fit(X, y)
    free(needed(2, False))
    text = refused(model.set_params(n_jobs=2), X, y)  # in processes of their own
    assert "give n_jobs=1" in text
    assert needed(2, True) > needed(2, False) + 2 * memory_refusal.PROCESS
    free(needed(2, True))
    model.fit(X, y)


def test_a_fold_takes_copies_of_its_rows_beside_the_whole_problem():
    size = fit_size.Size.of(np.ones((1000, 99)), 3, "softmax")
    one, two = (Folds(0.5, n, False, 1.0).bytes_of(size, None) for n in (1, 2))
    assert two - one == size.with_rows(500).fit_bytes() + size.stored
    assert 2 * one - two == size.stored


def test_the_largest_number_that_fits():
    for last in (0, 1, 6, 10):
        assert most_of(10, lambda number, last=last: number <= last) == last
