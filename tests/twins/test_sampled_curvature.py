"""Blocks of the samples that have most of the curvature, against plain numpy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from fenchel.kernels.class_blocks import sparse_class_steps
from fenchel.kernels.sampled_curvature import keep_samples, sampled_columns, threshold_for
from fenchel.problem import Problem
from fenchel.solvers import class_newton
from fenchel.solvers.class_newton import Blocks
from fenchel.solvers.working_set import Columns, Entries


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def curvature(rng: np.random.Generator, n: int) -> np.ndarray:
    """Most of it on few samples, and none on some."""
    c = rng.random(n) ** 12
    c[rng.random(n) < 0.1] = 0.0
    return c


def test_the_threshold_keeps_as_many_as_wanted(rng: np.random.Generator) -> None:
    c = curvature(rng, 3000)
    for most in (5, 100, 1000):
        t = threshold_for(c, most)
        assert np.minimum(1.0, c / t).sum() == pytest.approx(most, rel=0.01)
    assert threshold_for(c, np.count_nonzero(c)) == 0.0
    assert threshold_for(np.zeros(4), 2) == 0.0
    assert np.minimum(1.0, np.ones(90) / threshold_for(np.ones(90), 30)).sum() == pytest.approx(30)


def kept_samples(c: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """The twin: one of the small ones whenever their sum passes another multiple of t."""
    small = c < t
    sums = 0.5 + np.cumsum(np.where(small, c / t if t > 0.0 else 0.0, 0.0))
    passed = np.floor(sums) > np.floor(np.append(0.5, sums[:-1]))
    kept = np.flatnonzero((c > 0.0) & (~small | passed))
    return kept, np.maximum(c[kept], t)


@pytest.mark.parametrize("most", [50, 400, 10**6])
def test_which_samples_are_kept(rng: np.random.Generator, most: int) -> None:
    c = curvature(rng, 3000)
    t = threshold_for(c, most)
    place, kept = np.empty(c.size, np.int32), np.zeros(c.size)
    count = keep_samples(c, t, place, kept)
    where, value = kept_samples(c, t)
    assert count == where.size
    np.testing.assert_array_equal(np.flatnonzero(place >= 0), where)
    np.testing.assert_array_equal(place[where], np.arange(count))
    np.testing.assert_array_equal(kept[:count], value)
    assert kept.sum() == pytest.approx(c.sum(), abs=t + 1e-12)
    assert keep_samples(c, t, place, np.zeros(3)) == 3  # no more than there is room for


@pytest.mark.parametrize("most", [20, 10**6])
def test_columns_in_the_kept_samples(rng: np.random.Generator, most: int) -> None:
    n, d = 200, 9
    X = sp.csc_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5))
    feature, bounds = np.array([1, 4, 8, 0, 4]), np.array([0, 3, 5])
    c = np.vstack([curvature(rng, n), curvature(rng, n)])
    pointer, sample, x, kept, diagonal, lacking = sampled_columns(
        X.indptr, X.indices, X.data, feature, bounds, c, most
    )
    for e, j in enumerate(feature):
        t = 0 if e < 3 else 1
        where, value = kept_samples(c[t], threshold_for(c[t], most))
        column = np.zeros(where.size)
        mine = slice(pointer[e], pointer[e + 1])
        column[sample[mine]] = x[mine]
        np.testing.assert_array_equal(column, X[:, [j]].toarray()[where, 0])
        np.testing.assert_array_equal(kept[t, : where.size], value)
        whole, own = X[:, [j]].toarray()[:, 0] ** 2 @ c[t], column**2 @ value
        assert lacking[e] == pytest.approx(max(0.0, whole - own), abs=1e-14)
        assert diagonal[e] == pytest.approx(max(whole, own))
    assert (lacking.max() > 0.0) == (most == 20)


def test_blocks_of_all_samples_are_those_of_none_left_out(
    rng: np.random.Generator, monkeypatch
) -> None:
    n, d, k = 80, 12, 5
    X = sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4))
    y, weights = rng.integers(0, k, n), rng.random(n)
    problem = Problem.from_data(
        X, y, loss="softmax", lam=0.01, sample_weight=weights, classes=np.arange(k)
    )
    entries = Entries.of(rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.5))
    V = problem.loss.argmax(rng.standard_normal((n, k)), problem.y)
    columns, g = Columns.of(problem.design), 0.3 * rng.standard_normal(entries.u.size)
    penalty = np.full(g.size, 0.01)
    monkeypatch.setattr(class_newton, "AT_A_TIME", 2)

    def step_of(blocks: tuple) -> np.ndarray:
        s = np.empty(g.size)
        quadratic = sparse_class_steps(*blocks, 1.0, g, entries.u, penalty, penalty, 5, 0.1, s)
        return np.append(s, quadratic)

    csc, bounds = (*columns.data[:3], entries.feature), entries.bounds[1]
    c = np.ascontiguousarray((problem.weights[:, None] * V * (1.0 - V)).T)
    expected = step_of(class_newton._column_blocks(csc, bounds, c))
    size = np.abs(expected).max()
    for samples, off in ((n, 1e-12), (30, 1.0)):
        monkeypatch.setattr(class_newton, "SAMPLES", samples)
        found = step_of(class_newton._sampled_blocks(csc, bounds, c.__getitem__))
        np.testing.assert_allclose(found, expected, atol=off * size)
    assert (found != expected).any()
    used = []
    for name in ("_column_blocks", "_sampled_blocks"):
        method = getattr(class_newton, name)
        record = partial(lambda name, f, *args: used.append(name) or f(*args), name, method)
        monkeypatch.setattr(class_newton, name, record)
    for samples in (n // 5, n // 5 - 1):  # with a fifth of all there is little to be gained
        monkeypatch.setattr(class_newton, "SAMPLES", samples)
        blocks = Blocks.of(problem, columns, entries, V, 1.0)
        assert blocks.step(1.0, g, entries.u, penalty, penalty, np.empty(g.size)) > 0.0
    assert used == ["_column_blocks", "_sampled_blocks"]
