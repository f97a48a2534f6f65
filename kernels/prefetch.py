"""Telling the memory what will be wanted soon, where the processor does not notice it, or only from line to line.

It does not follow a thousand streams. One stream it follows, but some machines no further than a few lines: a loop
that does little with a row waits for most of them then, two thirds of its time, which asking further ahead spares.
"""

from __future__ import annotations

from typing import Any

from workbench.kernels.compiler import intrinsic, ir, types

#: Bytes to a line of the caches.
LINE = 64
#: Elements by which to be ahead of a loop over one stream: measured from 256 to 2,048 of 8 bytes, which are alike.
AHEAD = 1024
_I32, _BYTES = ir.IntType(32), ir.IntType(8).as_pointer()
_PREFETCH = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])


def _prefetch(writing: bool) -> Any:
    """An intrinsic ``(array, index)`` over a contiguous array; the index may lie outside of it."""

    def typed(context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), _BYTES)
            function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], _PREFETCH)
            how = (int(writing), 3, 1)  # to be written or read, into all caches, data
            builder.call(function, [place, *(ir.Constant(_I32, each) for each in how)])
            return context.get_dummy_value()

        return types.none(array, types.int64), generate

    typed.__name__ = f"prefetch_{'write' if writing else 'read'}"
    return intrinsic(typed)


#: Statements in a kernel: the element will be read, or written.
soon_read, soon_written = _prefetch(False), _prefetch(True)
