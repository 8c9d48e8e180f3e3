"""Products by their transposes against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import few_columns
from fenchel.design.dense import DenseDesign
from fenchel.few_columns import FEW, LONG, LONG_BY_COLUMNS, ROWS, matmul


@pytest.mark.parametrize("k", [1, 3, FEW, FEW + 1])
@pytest.mark.parametrize("length", [LONG_BY_COLUMNS - 1, LONG_BY_COLUMNS, LONG])
@pytest.mark.parametrize("n", [5, ROWS, 2 * ROWS + 7])
@pytest.mark.parametrize("by_columns", [False, True])
def test_the_product_is_that_of_numpy(n: int, length: int, k: int, by_columns: bool) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((n, length)), rng.standard_normal((length, k))
    A = np.asfortranarray(A) if by_columns else A
    for right in (B, np.asfortranarray(B), np.repeat(B, 2, axis=1)[:, ::2]):
        found = matmul(A, right)
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, A @ B, rtol=1e-12, atol=1e-11)


def test_other_types_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((40, LONG)).astype(np.float32), rng.standard_normal((LONG, 2))
    np.testing.assert_array_equal(matmul(A, B), A @ B)
    assert matmul(A, B.astype(np.float32)).dtype == np.float32


def test_designs_multiply_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both products, float32 block by block."""
    rng = np.random.default_rng(0)
    X, U, V = (rng.standard_normal(shape) for shape in ((300, 400), (400, 3), (300, 3)))
    calls = []
    product = few_columns.matmul
    monkeypatch.setattr(
        "fenchel.design.dense.matmul", lambda A, B: calls.append(A.shape) or product(A, B)
    )
    for design in (DenseDesign(X), DenseDesign(X.astype(np.float32))):
        wide = design.X.astype(float)
        np.testing.assert_allclose(design.matmul(U), wide @ U, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(design.rmatmul(V), wide.T @ V, rtol=1e-12, atol=1e-11)
    assert calls == [X.shape, X.T.shape] * 2
