"""One thread for small products, and as many as before for the others."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from fenchel.threads import one_thread


def threads() -> set[int]:
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_one_thread_and_then_as_many_as_before() -> None:
    for before in (2, 1):
        with threadpool_limits(limits=before, user_api="blas"):
            with one_thread():
                assert threads() == {1}
                with one_thread():
                    assert threads() == {1}
                assert threads() == {1}
            assert threads() == {before}
