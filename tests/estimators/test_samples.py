"""A model is a function of the weighted set of samples: not of their order, nor of repetitions."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel import SparseLinearClassifier, design, samples
from fenchel.design.rows import take_rows
from fenchel.samples import canonical, distinct, row_hashes
from fenchel.training import make_problem


def drawn(seed=0, n=60):
    """Few different rows, so that some are equal in X, and some of these in y as well."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (n, 3)).astype(float), rng.integers(0, 3, n), rng


def set_of(X, y, weights):
    """The distinct samples, their labels and weights."""
    X = canonical(X)
    rows, totals = distinct(X, y, weights)
    return take_rows(X, rows), y[rows], totals


@pytest.mark.parametrize("sparse", [False, True])
def test_distinct_samples_are_those_of_numpy(sparse):
    X, y, rng = drawn()
    weights = rng.integers(0, 4, y.size).astype(float)
    expected = {}
    for x, label, weight in zip(X.tolist(), y.tolist(), weights, strict=True):
        if weight:
            key = (*x, label)
            expected[key] = expected.get(key, 0.0) + weight
    found = set_of(sp.csr_array(X) if sparse else X, y, weights)
    rows = found[0].toarray() if sparse else found[0]
    keys = [(*x, label) for x, label in zip(rows.tolist(), found[1].tolist(), strict=True)]
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found[2], strict=True)) == expected


def test_order_layout_and_signs_of_zero_do_not_matter():
    X, y, rng = drawn()
    weights = rng.random(y.size)
    first = set_of(X, y, weights)
    mixed = rng.permutation(y.size)
    negative = np.where(X[mixed] == 0, -0.0, X[mixed])
    stored = sp.csr_array(np.where(X == 0, 5.0, X)[mixed])
    stored.data[stored.data == 5.0] = 0.0  # zeros that are stored
    for other in (X[mixed], np.asfortranarray(negative), stored):
        again = set_of(other, y[mixed], weights[mixed])
        rows = again[0].toarray() if sp.issparse(again[0]) else again[0]
        assert (rows == first[0]).all()
        assert (again[1] == first[1]).all()
        assert again[2].tobytes() == first[2].tobytes()


def test_equal_hashes_are_not_believed(monkeypatch):
    X, y, _ = drawn()
    monkeypatch.setattr(samples, "row_hashes", lambda X: np.zeros(X.shape[0], dtype=np.uint64))
    rows, codes, weights = set_of(X, y, None)
    assert weights.sum() == y.size
    together = np.column_stack([rows, codes, weights])
    total = sum(w for *_, w in together)
    pairs = {tuple(row[:-1]) for row in together}
    assert pairs == {(*x, label) for x, label in zip(X.tolist(), y.tolist(), strict=True)}
    assert total == y.size


def test_hashes_of_different_rows_differ():
    X = np.random.default_rng(0).standard_normal((5000, 4))
    X[2500:] = X[:2500, [1, 0, 2, 3]]  # the same values in other columns
    assert np.unique(row_hashes(X)).size == 5000


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_in_another_order_beside_a_column_of_ones(ones, dtype, monkeypatch):
    monkeypatch.setattr("fenchel.design.rows.BLOCK_ENTRIES", 12)  # several blocks, the last short
    X, y, rng = drawn()
    X[7] = 0.0  # a row without anything stored
    X, rows = X.astype(dtype), rng.permutation(y.size)[:-3]
    expected = np.hstack([X[rows], np.ones((rows.size, int(ones)), dtype)])
    found, sparse = take_rows(X, rows, ones), take_rows(sp.csr_array(X), rows, ones)
    assert found.dtype == X.dtype
    assert (found == expected).all()
    assert sparse.dtype == np.float64
    assert sparse.has_canonical_format
    assert sparse.nnz == np.count_nonzero(expected)
    assert (sparse.toarray() == expected).all()
    assert (take_rows(X, np.arange(y.size), ones) is X) == (not ones)


@pytest.mark.parametrize("kind", ["array", "sparse", "hardly sparse"])
def test_the_problem_has_one_copy_of_x_and_takes_no_more_on_the_way(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 300)), np.arange(2000) % 3
    X = X if kind == "array" else sp.csr_array(X)
    if kind == "sparse":
        monkeypatch.setattr(design, "HARDLY_SPARSE", 2.0)
    model = SparseLinearClassifier()
    model.classes_ = np.arange(3)
    make_problem(model, X, y, None)  # compiles
    tracemalloc.start()
    make_problem(model, X, y, None)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    entry = {"array": 8, "sparse": 12, "hardly sparse": 20}[kind]  # the array beside what is stored
    assert taken < 1.3 * 2000 * 301 * entry  # some of it to look for what is not finite


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "partial-sampling", "subgradient", "mirror-prox"])
def test_a_weight_is_a_repetition_to_the_last_bit(solver):
    X, y, rng = drawn(1)
    X = X + np.round(rng.standard_normal(X.shape), 1)
    times = rng.integers(0, 4, y.size)
    model = SparseLinearClassifier(alpha=0.05, solver=solver, max_iter=20, random_state=0)
    weighted = model.fit(X, y, times).coef_
    mixed = rng.permutation(np.repeat(np.arange(y.size), times))
    repeated = model.fit(X[mixed], y[mixed]).coef_
    assert weighted.tobytes() == repeated.tobytes()
    sparse = [
        model.fit(sp.csr_array(A), labels, weights).coef_
        for A, labels, weights in ((X, y, times), (X[mixed], y[mixed], None))
    ]
    assert sparse[0].tobytes() == sparse[1].tobytes()
    if solver != "auto":  # which takes another way on sparse data
        np.testing.assert_allclose(sparse[1], repeated, atol=1e-8)
