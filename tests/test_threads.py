"""One thread for small products, as many as before for the others; and loops that threads share."""

from __future__ import annotations

import multiprocessing
import threading
import time
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

import fenchel
from fenchel.certificate import certify
from fenchel.problem import Problem
from fenchel.solvers.working_rows import WorkingRows
from fenchel.solvers.working_set import Entries, violators
from fenchel.threads import (
    SHORT_LOOP,
    SMALL_WORK,
    allowed_threads,
    each,
    one_thread,
    threads_for,
)


def threads() -> list[int]:
    """Of each BLAS in this process: some of other packages have never more than one."""
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


def test_one_thread_and_then_as_many_as_before() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))  # some BLAS is there
    for most in (2, 1):
        with threadpool_limits(limits=most, user_api="blas"):
            before = threads()
            assert max(before) == most
            with one_thread():
                assert set(threads()) == {1}
                with one_thread():
                    assert set(threads()) == {1}
                assert set(threads()) == {1}
            assert threads() == before


def test_small_problems_are_solved_by_one_thread() -> None:
    """Certificates too: a thread that waits for the next product spins."""
    np.ones((2, 2)) @ np.ones((2, 2))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), rng.integers(0, 3, 40)
    found = []
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        fenchel.solve(
            X, y, loss="softmax", lam=0.1, callback=lambda record: found.append(threads())
        )
        assert threads() == before
    assert found
    assert {number for numbers in found for number in numbers} == {1}
    with threads_for(SMALL_WORK), threadpool_limits(limits=2, user_api="blas"):
        assert threads() == before


@pytest.fixture
def two_threads() -> Iterator[None]:
    np.ones((2, 2)) @ np.ones((2, 2))  # some BLAS is there
    with threadpool_limits(limits=2, user_api="blas"):
        yield


@pytest.mark.parametrize("n_parts", [0, 1, 7])
@pytest.mark.parametrize("work", [SHORT_LOOP - 1, SHORT_LOOP], ids=["short", "long"])
def test_each_part_is_taken_once_and_in_order(n_parts: int, work: int, two_threads) -> None:
    calls: list[int] = []

    def square(part: int) -> int:
        calls.append(part)
        return part * part

    assert each(square, range(n_parts), work) == [part * part for part in range(n_parts)]
    assert sorted(calls) == list(range(n_parts))


@pytest.mark.parametrize("limit", [1, 2])
def test_as_many_threads_as_blas_may_use(limit: int) -> None:
    """With one of them nobody waits at the barrier; with two, two at a time."""
    np.ones((2, 2)) @ np.ones((2, 2))
    together = threading.Barrier(limit)

    def name(part: int) -> str:
        together.wait(timeout=20)
        return threading.current_thread().name

    with threadpool_limits(limits=limit, user_api="blas"):
        assert allowed_threads() == limit
        assert len(set(each(name, range(2), SHORT_LOOP))) == limit


def test_short_loops_stay_in_their_thread(two_threads) -> None:
    def where(part: int) -> threading.Thread:
        time.sleep(0.01)  # another thread would have woken up
        return threading.current_thread()

    assert set(each(where, range(9), SHORT_LOOP - 1)) == {threading.current_thread()}


@pytest.mark.parametrize("guilty", [0, 1])
def test_an_error_in_any_thread_ends_the_loop(guilty: int, two_threads) -> None:
    together = threading.Barrier(2)

    def fail(part: int) -> None:
        if part < 2:
            together.wait(timeout=20)  # both threads have begun
        if part == guilty:
            raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match=f"part {guilty}"):
        each(fail, range(50), SHORT_LOOP)
    assert each(lambda part: part, range(3), SHORT_LOOP) == [0, 1, 2]  # the pool is as before


def test_what_numpy_does_about_overflow_is_known_in_every_thread(two_threads) -> None:
    together = threading.Barrier(2)

    def overflow(part: int) -> float:
        together.wait(timeout=20)
        return float(np.float64(1e300) * np.float64(1e300))

    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert each(overflow, range(2), SHORT_LOOP) == [np.inf, np.inf]


def _in_child() -> list[int]:
    with threadpool_limits(limits=2, user_api="blas"):
        return each(lambda part: 2 * part, range(5), SHORT_LOOP)


def test_a_forked_child_has_threads_of_its_own(two_threads) -> None:
    """The parent's are not there: a child that waited for them would wait forever."""
    assert each(lambda part: part, range(2), SHORT_LOOP) == [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(_in_child).get(timeout=60) == [0, 2, 4, 6, 8]


def _text(n: int, d: int, k: int) -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    words = np.where(rng.random((n, 8)) < 0.6, y[:, None] % d, rng.integers(0, d, (n, 8)))
    X = sp.csr_array((np.ones(8 * n), words.ravel(), np.arange(0, 8 * n + 1, 8)), shape=(n, d))
    X.sum_duplicates()
    return X, y


@pytest.mark.parametrize("loss", ["hinge", "softmax", "sparsemax"])
def test_the_same_bits_whatever_the_number_of_threads(loss: str) -> None:
    """On data so large that every loop over rows and features is shared."""
    X, y = _text(12_000, 300, 120)
    problem = Problem.from_data(X, y, loss=loss, lam=1e-4)
    rng = np.random.default_rng(1)
    U = sp.csc_array(sp.random_array((problem.d, problem.k), density=0.05, rng=rng))
    V = problem.loss.argmax(rng.standard_normal((problem.n, problem.k)), problem.y)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limits=limit, user_api="blas"):
            certificate = certify(problem, U, V)
            entries = Entries.of(U)
            Z = np.zeros_like(V)
            rows = WorkingRows.of(problem.design.X, entries)
            rows.add_product(Z, entries.u)
            found.append(
                [
                    certificate.primal,
                    certificate.dual,
                    certificate.V,
                    problem.gradient_row_norms(V),
                    *violators(problem, V, 500),
                    Z,
                    rows.gradient(problem, V),
                ]
            )
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
