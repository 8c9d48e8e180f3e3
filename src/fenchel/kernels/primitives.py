"""Allocations, views and comparisons that are compiled as a part of the kernel that they are in.

For ``np.empty``, ``np.zeros``, ``max`` and the like numba compiles functions of its own: once for
every type, and again for every set of options of the kernels that call them. The first call on a
machine waited for hundreds of these. All of this is for kernels alone: no index and no size is
looked at.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


def _array_at(context: Any, builder: Any, kind: Any, shape: Any, data: Any, meminfo: Any) -> Any:
    """An array in C order of what begins at a pointer."""
    item = context.get_constant(types.intp, context.get_abi_sizeof(data.type.pointee))
    strides = [item]
    for size in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], size))
    array = context.make_array(kind)(context, builder)
    populate_array(array, data, tuple(shape), tuple(strides), item, meminfo)
    return array._getvalue()


def _allocated(context: Any, builder: Any, kind: Any, shape: Any) -> Any:
    """A new array of any values."""
    pointer = context.get_data_type(kind.dtype).as_pointer()
    size = context.get_constant(types.intp, context.get_abi_sizeof(pointer.pointee))
    for length in shape:
        size = builder.mul(size, length)
    align = context.get_preferred_array_alignment(kind.dtype)
    meminfo = context.nrt.meminfo_alloc_aligned(builder, size, align)
    data = builder.bitcast(context.nrt.meminfo_data(builder, meminfo), pointer)
    return _array_at(context, builder, kind, shape, data, meminfo)


@intrinsic
def floats(typingctx: Any, size: Any) -> Any:
    """``np.empty(size)``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _allocated(context, builder, signature.return_type, arguments)

    return types.Array(types.float64, 1, "C")(types.intp), generate


@intrinsic
def matrix(typingctx: Any, rows: Any, columns: Any) -> Any:
    """``np.empty((rows, columns))``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _allocated(context, builder, signature.return_type, arguments)

    return types.Array(types.float64, 2, "C")(types.intp, types.intp), generate


@intrinsic
def empty(typingctx: Any, size: Any, dtype: Any) -> Any:
    """``np.empty(size, dtype)``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _allocated(context, builder, signature.return_type, arguments[:1])

    return types.Array(dtype.dtype, 1, "C")(types.intp, dtype), generate


@intrinsic
def zeros(typingctx: Any, size: Any, dtype: Any) -> Any:
    """``np.zeros(size, dtype)``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, size = signature.return_type, arguments[0]
        value = _allocated(context, builder, kind, (size,))
        array = context.make_array(kind)(context, builder, value)
        cgutils.memset(builder, array.data, builder.mul(array.itemsize, size), 0)
        return value

    return types.Array(dtype.dtype, 1, "C")(types.intp, dtype), generate


@intrinsic
def square(typingctx: Any, flat: Any, start: Any, size: Any) -> Any:
    """``flat[start : start + size * size].reshape((size, size))``, without a reference count.

    The caller of the kernel holds ``flat``, which is contiguous.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat, start, size = arguments
        whole = context.make_array(signature.args[0])(context, builder, flat)
        data = cgutils.gep(builder, whole.data, start)
        return _array_at(context, builder, signature.return_type, (size, size), data, None)

    return types.Array(flat.dtype, 2, "C")(flat, types.intp, types.intp), generate


def _chosen(sign: str) -> Any:
    """The second of two numbers where the sign is true of it and the first, else the first."""

    def typed(typingctx: Any, first: Any, second: Any) -> Any:
        real = isinstance(first, types.Float) or isinstance(second, types.Float)
        kind = types.float64 if real else types.intp

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first, second = arguments
            compare = builder.fcmp_ordered if real else builder.icmp_signed
            return builder.select(compare(sign, second, first), second, first)

        return kind(kind, kind), generate

    return typed


#: ``max(first, second)`` and ``min(first, second)``, in doubles or in integers.
larger, smaller = intrinsic(_chosen(">")), intrinsic(_chosen("<"))
