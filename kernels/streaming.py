"""Writing past the caches: for results that are larger than these, each of which is written once.

A store to memory first fetches the line that it writes to. A *non-temporal* one does not: a processor gathers the
stores to a line and sends it off as a whole, which is half of the traffic. Rows are written in order, so that lines
become whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from workbench.kernels.jit import jit

Array = npt.NDArray[Any]

#: Bytes to a line of the caches.
_LINE = 64


def _streamed(builder: Any, value: Any, data: Any, index: Any, size: int) -> None:
    """Store a value of ``size`` bytes, which is the alignment of its place."""
    place = builder.bitcast(builder.gep(data, [index]), value.type.as_pointer())
    stored = builder.store(value, place)
    stored.align = size
    stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def _write_typed(context: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index] = value`` for a contiguous array of one dimension; the index is not looked at."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        bits = array.dtype.bitwidth
        # Of whole words, as there is an instruction for each of 4 and 8 bytes.
        _streamed(builder, builder.bitcast(arguments[2], ir.IntType(bits)), data, arguments[1], bits // 8)
        return context.get_dummy_value()

    return types.none(array, types.uint64, array.dtype), generate


def _write_line_typed(context: Any, array: Any, index: Any, values: Any, owners: Any) -> Any:
    """``array[index + j] = values[owners[index + j]]`` for a line of elements; ``array[index]`` begins a line."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, read, own = (
            context.make_array(signature.args[place])(context, builder, arguments[place]).data for place in (0, 2, 3)
        )
        count = _LINE * 8 // array.dtype.bitwidth
        line = ir.Constant(ir.VectorType(context.get_data_type(array.dtype), count), ir.Undefined)
        for lane in range(count):
            place = builder.add(arguments[1], ir.Constant(ir.IntType(64), lane))
            owner = builder.zext(builder.load(builder.gep(own, [place])), ir.IntType(64))
            value = builder.load(builder.gep(read, [owner]))
            line = builder.insert_element(line, value, ir.Constant(ir.IntType(32), lane))
        _streamed(builder, line, out, arguments[1], _LINE)
        return context.get_dummy_value()

    return types.none(array, types.uint64, values, owners), generate


def _settle_typed(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), generate


_write: Any = intrinsic(_write_typed)
_write_line: Any = intrinsic(_write_line_typed)
#: A statement behind the last write: it is where other threads see it.
settle: Any = intrinsic(_settle_typed)


def _stream(values: Array, out: Array) -> None:
    """``out[:] = values``, past the caches; :func:`settle` after the last one."""
    for j in range(out.size):
        _write(out, np.uint64(j), values[j])


def _deal(values: Array, owners: Array, out: Array) -> None:
    """``out[j] = values[owners[j]]``, likewise; ``owners`` are not negative.

    A store of a whole line is one of eight, and whatever computes next need not wait until they have gone.
    """
    head = min((-out.ctypes.data % _LINE) // out.itemsize, out.size)
    lines = (out.size - head) * out.itemsize // _LINE
    behind = head + lines * (_LINE // out.itemsize)
    for j in range(head):
        _write(out, np.uint64(j), values[np.uint64(owners[j])])
    for j in range(head, behind, _LINE // out.itemsize):
        _write_line(out, np.uint64(j), values, owners)
    for j in range(behind, out.size):
        _write(out, np.uint64(j), values[np.uint64(owners[j])])


stream, deal = jit(_stream), jit(_deal)
