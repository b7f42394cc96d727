"""What compiled code asks of the machine and numba has no word for.

numba counts a reference, atomically, at every call that takes an array and for every view of one.
Where an agent's whole round takes a quarter of a microsecond, that is half of it. What is
`borrowed` is not counted: it must stay alive as long as it is used, as a caller's arguments do.

Rows lie where the caller has them, anywhere in memory. `fetch` asks for one before it is needed, so
that it has come by then.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

__all__ = ["borrowed", "fetch"]


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context: Any, value: Any) -> Any:
    """Return an array, or a tuple with all arrays in it, without its owner."""

    def lend(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            each = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
            return context.make_tuple(builder, kind, [lend(context, builder, *one) for one in each])
        return value

    def refuse_other(kind: Any) -> None:
        if isinstance(kind, types.BaseTuple):
            for each in kind:
                refuse_other(each)
        elif not isinstance(kind, types.Array | types.Number | types.Boolean):
            raise TypingError(f"Only arrays can be borrowed, and tuples of them, not {kind}.")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return lend(context, builder, signature.args[0], arguments[0])

    refuse_other(value)
    return value(value), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing_context: Any, array: Any, i: Any) -> Any:
    """Ask for array[i], of a row the first 128 bytes; it says nothing and changes nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        value = context.make_array(kind)(context, builder, arguments[0])
        strides = cgutils.unpack_tuple(builder, value.strides, kind.ndim)
        byte, word, flag = ir.IntType(8), ir.IntType(64), ir.IntType(32)
        start = builder.bitcast(value.data, byte.as_pointer())
        start = builder.gep(start, [builder.mul(arguments[1], strides[0])])
        wanted = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte.as_pointer()], wanted)
        for offset in (0, 64)[: kind.ndim]:
            where = builder.gep(start, [ir.Constant(word, offset)])
            builder.call(prefetch, [where, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
