"""Arrays without a reference count, for the time of one call."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrowed(typingctx: Any, arrays: Any) -> Any:
    """A named tuple of the same arrays, which nobody counts references to.

    The caller of the compiled function holds the arrays while it runs. Numba does not know that:
    where a state of many arrays is handed to another function, even in a branch that is almost
    never taken, it counts every one of them up and down on the way.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        fields = []
        for index, kind in enumerate(signature.args[0].types):
            field = builder.extract_value(arguments[0], index)
            array = context.make_array(kind)(context, builder, field)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            fields.append(array._getvalue())
        return context.make_tuple(builder, signature.return_type, fields)

    return arrays(arrays), generate
