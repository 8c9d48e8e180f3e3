"""Small weighted matrices of products against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.kernels.class_blocks import small_blocks
from fenchel.solvers.working_set import CACHED, CACHED_BLOCK, SMALL_BLOCK, Columns, Entries


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_weighted_products(size: int) -> None:
    rng = np.random.default_rng(size)
    x, weight = rng.standard_normal(200), rng.random(13)
    starts = rng.integers(0, x.size - 13, size)  # rows may overlap, and come in any order
    M = np.array([x[start : start + 13] for start in starts])
    K, bounds, offset = np.full(size * size, np.nan), np.array([0, size]), np.array([0, size**2])
    small_blocks(x, starts, bounds, weight[None, :], size, offset, K)
    np.testing.assert_allclose(K.reshape(size, size), (M * weight) @ M.T, atol=1e-13)


@pytest.mark.parametrize("n", [50, CACHED // SMALL_BLOCK + 1])
def test_blocks_of_any_size(n: int) -> None:
    """In one loop or by BLAS: a block is the same."""
    rng = np.random.default_rng(n)
    sizes = [1, SMALL_BLOCK, SMALL_BLOCK + 1, CACHED_BLOCK, CACHED_BLOCK + 1]
    d = CACHED_BLOCK + 1
    X, curvature = rng.standard_normal((n, d)), rng.random((len(sizes), n))
    feature = np.concatenate([np.sort(rng.permutation(d)[:size]) for size in sizes])
    klass = np.repeat(np.arange(len(sizes)), sizes)
    entries = Entries(feature, klass, np.zeros(feature.size))
    offset = np.concatenate([[0], np.cumsum(np.square(sizes))])
    columns = Columns((np.ascontiguousarray(X.T),), None, None)
    found = columns.blocks(entries, curvature)
    for t, size in enumerate(sizes):
        M = X[:, feature[klass == t]]
        K = M.T @ (curvature[t][:, None] * M)
        np.testing.assert_allclose(found[offset[t] : offset[t + 1]].reshape(size, size), K)
