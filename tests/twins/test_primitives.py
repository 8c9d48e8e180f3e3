"""What kernels use in place of numba's own functions, against numpy and Python."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from numba import njit, types
from numba.core import event
from numba.core.compiler import Flags
from numba.core.runtime import _nrt_python, rtsys
from numba.extending import intrinsic

from fenchel.kernels import compiled, primitives
from fenchel.kernels.compiled import kernel
from fenchel.kernels.hybrid_gradient import nonzeros

larger, smaller, square = primitives.larger, primitives.smaller, primitives.square
empty, floats, matrix, zeros = (
    primitives.empty,
    primitives.floats,
    primitives.matrix,
    primitives.zeros,
)

#: As ``kernel()``, but compiled each time.
not_cached = njit(pipeline_class=compiled._KernelCompiler)


@kernel()
def _both(first, second):
    return larger(first, second), smaller(first, second)


@pytest.mark.parametrize(
    "pair", [(1.0, 2.0), (2.0, 1.0), (-0.0, 0.0), (0.0, -0.0), (np.nan, 1.0), (1.0, np.nan),
             (np.inf, -np.inf), (3, 4), (4, -3), (2, 2.5), (2.5, 2)]
)  # fmt: skip
def test_the_larger_and_the_smaller_of_two_as_in_python(pair) -> None:
    found = _both(*pair)
    expected = np.array([max(pair), min(pair)], dtype=np.float64)
    np.testing.assert_array_equal(np.array(found, np.float64), expected)
    np.testing.assert_array_equal(np.signbit(np.array(found, np.float64)), np.signbit(expected))


def test_the_larger_of_integers_is_one() -> None:
    """Beyond 2^53 a double would be another number."""
    assert _both(2**53, 2**53 + 1) == (2**53 + 1, 2**53)


@kernel()
def _arrays(size):
    a, b, c = floats(size), empty(size, np.int32), matrix(size, 3)
    for i in range(size):
        a[i], b[i] = 0.5 * i, -i
        for l in range(3):
            c[i, l] = 3 * i + l
    return a, b, c, zeros(size, np.int64), zeros(size, np.float64)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_new_arrays(size: int) -> None:
    for _ in range(20):  # memory that was in use already is no longer zero by chance
        a, b, c, d, e = _arrays(size)
        np.testing.assert_array_equal(a, 0.5 * np.arange(size))
        np.testing.assert_array_equal(b, -np.arange(size))
        np.testing.assert_array_equal(c, np.arange(3.0 * size).reshape(size, 3))
        assert (b.dtype, c.strides, d.dtype, e.dtype) == (np.int32, (24, 8), np.int64, np.float64)
        assert a.ctypes.data % 32 == 0
        assert not d.any()
        assert not e.any()
        d[:], e[:] = -1, -1.0


@kernel()
def _room(size):
    return floats(size)[0]


@pytest.mark.skipif(sys.maxsize < 2**62, reason="there may be no such number")
def test_too_large_an_array_is_an_error() -> None:
    with pytest.raises(MemoryError):
        _room(1 << 56)


def test_arrays_are_given_back() -> None:
    A = np.eye(40)
    nonzeros(A, A.size)
    _arrays(10)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(10):
            nonzeros(A, A.size)
            _arrays(10)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


@kernel()
def _numbered(flat, start, size):
    K = square(flat, start, size)
    for a in range(size):
        for b in range(size):
            K[a, b] = 10 * a + b
    return K.shape[0] * K.shape[1]


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_a_square_of_a_flat_array(dtype: type) -> None:
    flat = np.full(20, -1, dtype)
    assert _numbered(flat, 2, 4) == 16
    expected = np.full(20, -1, dtype)
    expected[2:18] = np.add.outer(10 * np.arange(4), np.arange(4)).ravel()
    np.testing.assert_array_equal(flat, expected)
    assert _numbered(flat, 20, 0) == 0


def test_numba_compiles_no_function_of_its_own() -> None:
    """For none of these; numba's own maximum would be one."""

    @not_cached
    def all_of_them(n):
        a, b = floats(larger(n, 4)), zeros(smaller(n, 4), np.int64)
        return square(a, 0, 2).size + b.size + empty(n, np.int32).size + matrix(n, n).size

    with event.install_recorder("numba:compile") as recorder:
        all_of_them.compile((types.int64,))
    assert sum(happened.is_start for _, happened in recorder.buffer) == 1


_collects = []


@intrinsic
def _look_at_collector(typingctx):
    def generate(context, builder, signature, arguments):
        _collects.append(gc.isenabled())
        return context.get_dummy_value()

    return types.void(), generate


@pytest.mark.parametrize("is_on", [True, False])
def test_garbage_is_collected_before_and_after_compiling_alone(is_on: bool) -> None:
    @not_cached
    def looks():
        _look_at_collector()

    @not_cached
    def fails():
        return no_such_name  # noqa: F821

    _collects.clear()
    try:
        (gc.enable if is_on else gc.disable)()
        looks.compile(())
        assert _collects == [False]
        assert gc.isenabled() == is_on
        with pytest.raises(Exception, match="no_such_name"):
            fails.compile(())
        assert gc.isenabled() == is_on
    finally:
        gc.enable()


def test_options_are_equal_where_numba_says_so() -> None:
    def flags(kind, **values):
        made = kind()
        for name, value in values.items():
            setattr(made, name, value)
        return made

    several = [{}, {"nrt": True}, {"fastmath": {"nsz"}}, {"fastmath": {"contract"}},
               {"error_model": "numpy"}, {"no_cpython_wrapper": True}]  # fmt: skip
    for one in several:
        for other in several:
            ours = flags(compiled._Flags, **one) == flags(compiled._Flags, **other)
            assert ours == (flags(Flags, **one) == flags(Flags, **other)) == (one == other)
    hashes = {hash(flags(compiled._Flags, **one)) for one in several}
    assert len(hashes) == len(several)
    copied = flags(compiled._Flags, nrt=True).copy()
    assert isinstance(copied, compiled._Flags)
    assert copied.nrt
