"""The memory that is known before a fit: a true lower bound, and a refusal that helps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from fenchel import SparseLinearClassifier, estimate_memory, memory


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_takes_at_least_the_estimate(sparse):
    rng = np.random.default_rng(0)
    n, k = 2000, 40
    y = np.arange(n) % k
    X = np.eye(k)[y] + 0.1 * rng.standard_normal((n, k))
    X = sp.csr_array(X * (np.abs(X) > 0.1)) if sparse else X
    model = SparseLinearClassifier(alpha=0.01, max_iter=4, tol=0.1)
    model.fit(X[:200], y[:200])  # compile first
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.3 * peak < estimate_memory(X, y) < peak
    assert estimate_memory(X, k) == estimate_memory(X, y)


def test_what_cannot_fit_is_refused_with_what_would(monkeypatch):
    X, y = np.zeros((100, 10)), np.arange(100) % 50
    half = estimate_memory(X, y) // 2
    monkeypatch.setattr(memory, "available_memory", lambda: half)
    with pytest.raises(MemoryError, match=r"at most (49|50) of these rows"):
        SparseLinearClassifier().fit(X, y)
    with pytest.raises(MemoryError):
        fenchel.SparseLinearClassifierCV().fit(X, y)


def test_this_machine_says_what_is_free():
    free = memory.available_memory()
    assert free is None or free > 1 << 20
