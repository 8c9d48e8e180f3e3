"""One thread for small products, and as many as before for the others."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import fenchel
from fenchel.threads import SMALL_WORK, one_thread, threads_for


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
