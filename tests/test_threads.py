"""One thread for small products, and as many as before for the others."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from fenchel.threads import one_thread


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
