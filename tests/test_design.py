"""Which matrix becomes which design."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import design
from fenchel.design import DenseDesign, SparseDesign, make_design


def stored(n: int, d: int, count: int) -> sp.csr_array:
    """A matrix with so many stored entries, at the beginning of its rows."""
    each = np.diff(np.linspace(0, count, n + 1).astype(int))
    indptr = np.append(0, np.cumsum(each))
    indices = np.concatenate([np.arange(m) for m in each])
    return sp.csr_array((np.arange(1.0, count + 1.0), indices, indptr), shape=(n, d))


def test_a_matrix_that_is_hardly_sparse_becomes_an_array_of_the_same_numbers():
    most = int(design.HARDLY_SPARSE * 300 * 250)
    X = stored(300, 250, most)
    made = make_design(X)
    assert isinstance(made, DenseDesign)
    assert made.X.flags.c_contiguous  # kernels are compiled for this order
    np.testing.assert_array_equal(made.X, X.toarray())
    assert isinstance(make_design(stored(300, 250, most - 1)), SparseDesign)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_its_numbers_keep_their_precision(dtype):
    X = stored(300, 250, 300 * 250).astype(dtype)
    assert make_design(X).X.dtype == dtype


def test_entries_that_are_stored_twice_are_added():
    X = stored(300, 250, 300 * 250)
    twice = sp.coo_array(
        (np.tile(X.data, 2), (np.tile(X.tocoo().coords[0], 2), np.tile(X.tocoo().coords[1], 2))),
        shape=X.shape,
    )
    np.testing.assert_array_equal(make_design(twice).X, 2.0 * X.toarray())


def test_neither_a_small_one_nor_a_large_one_is_copied(monkeypatch):
    assert isinstance(make_design(stored(255, 256, 255 * 256)), SparseDesign)
    assert isinstance(make_design(stored(256, 256, 256 * 256)), DenseDesign)
    monkeypatch.setattr(design, "MOST_ENTRIES", 1 << 16)
    assert isinstance(make_design(stored(256, 256, 256 * 256)), DenseDesign)
    assert isinstance(make_design(stored(257, 256, 256 * 256)), SparseDesign)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_both_ways_lead_to_the_same_certified_solution(monkeypatch, loss):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((700, 100)) < 0.3, rng.normal(size=(700, 100)), 0.0)
    y = np.argmax(X[:, :4] + 0.3 * rng.normal(size=(700, 4)), axis=1)
    kept = sp.csr_array(X)
    array = fenchel.solve(kept, y, loss=loss, lam=0.01, tol=1e-7)
    monkeypatch.setattr(design, "HARDLY_SPARSE", 2.0)
    sparse = fenchel.solve(kept, y, loss=loss, lam=0.01, tol=1e-7)
    assert max(array.dual, sparse.dual) <= min(array.primal, sparse.primal)
    assert array.primal == pytest.approx(sparse.primal, abs=2e-7 * array.history[0].primal)
    np.testing.assert_array_equal(kept.toarray(), X)  # the user's matrix stays as it was
