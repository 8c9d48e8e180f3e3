"""Factors of the blocks of a preconditioner, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel.kernels.block_factors import factor_size, factorise, pack_factor, precondition
from fenchel.solvers.diagonal_blocks import factorise_block

SIZES = np.array([1, 7, 0, 64, 2])


def positive_definite(rng: np.random.Generator, size: int) -> np.ndarray:
    A = rng.standard_normal((size, size + 3))
    return A @ A.T


def rows_of(K: np.ndarray) -> np.ndarray:
    """The twin: rows of the factor up to the diagonal, which is one over itself."""
    L = np.linalg.cholesky(K)
    np.fill_diagonal(L, 1.0 / L.diagonal())
    return L[np.tril_indices(K.shape[0])]


@pytest.mark.parametrize("size", [1, 2, 9, 70])
def test_a_factor_and_how_it_is_stored(size: int) -> None:
    K = positive_definite(np.random.default_rng(size), size)
    factor = np.empty(factor_size(size))
    factorise(np.tril(K) + np.triu(np.full_like(K, np.nan), 1), factor)  # half of it is enough
    assert_allclose(factor, rows_of(K), rtol=1e-9)
    pack_factor(np.linalg.cholesky(K), factor)
    assert_allclose(factor, rows_of(K), rtol=1e-9)
    factorise_block(K, factor)
    assert_allclose(factor, rows_of(K), rtol=1e-9)


def test_blocks_are_solved_one_by_one() -> None:
    rng = np.random.default_rng(0)
    bounds = np.concatenate([[0], np.cumsum(SIZES)])
    blocks = [positive_definite(rng, size) for size in SIZES]
    factors = np.concatenate([rows_of(K) for K in blocks])
    residual = rng.standard_normal(bounds[-1])
    given, out = residual.copy(), np.full(bounds[-1], np.nan)
    precondition(bounds, factors, residual, out)
    expected = [
        np.linalg.solve(K, residual[low : low + K.shape[0]])
        for K, low in zip(blocks, bounds, strict=False)
    ]
    assert_allclose(out, np.concatenate(expected), rtol=1e-8)
    assert (residual == given).all()


@pytest.mark.parametrize("block", [np.ones((60, 60)), np.zeros((60, 60))], ids=["ones", "zeros"])
def test_a_block_that_is_singular_but_for_rounding_has_a_factor(block: np.ndarray) -> None:
    """So that the preconditioner stays positive definite, whatever it is worth."""
    factor, out = np.empty(factor_size(60)), np.empty(60)
    factorise_block(block, factor)
    assert np.isfinite(factor).all()
    residual = np.random.default_rng(0).standard_normal(60)
    precondition(np.array([0, 60]), factor, residual, out)
    assert np.isfinite(out).all()
    assert residual @ out > 0.0


def test_pivots_that_are_rounding_alone_are_not_used() -> None:
    A = np.random.default_rng(0).standard_normal((60, 3))
    factor = np.empty(factor_size(60))
    factorise(A @ A.T, factor)
    assert factor.max() <= 1.01e7 / np.sqrt(np.square(A).sum(axis=1).min())
