"""Writing past the caches: for results that are larger than these, each of which is written once.

A store to memory first fetches the line that it writes to. A *non-temporal* one does not: a processor gathers the
stores to a line and sends it off as a whole, which is half of the traffic. Rows are written in order, so that lines
become whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.kernels.compiler import cgutils, get_host_cpu_features, intrinsic, ir, types
from workbench.kernels.jit import bare
from workbench.kernels.prefetch import LINE

Array = npt.NDArray[Any]

#: Whether the processor has an instruction that deals the lanes of a line anew.
_DEALS = bool(get_host_cpu_features().get("avx512f"))
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _streamed(builder: Any, value: Any, data: Any, index: Any, size: int) -> None:
    """Store a value of ``size`` bytes, which is the alignment of its place."""
    place = builder.bitcast(builder.gep(data, [index]), value.type.as_pointer())
    beyond(builder.store(value, place), size)


def beyond(stored: Any, align: int) -> None:
    """Make a store one past the caches; its place is a multiple of ``align``, the bytes that are stored."""
    stored.align = align
    stored.set_metadata("nontemporal", stored.module.add_metadata([_I32(1)]))


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
    """``array[index + j] = values[owners[index + j]]`` for a line of elements; ``array[index]`` begins a line.

    No owner is less than the one before it, or more than one further; ``values`` has room for a line behind them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, read, own = (
            context.make_array(signature.args[place])(context, builder, arguments[place]).data for place in (0, 2, 3)
        )
        first = builder.gep(own, [arguments[1]])
        count = LINE * 8 // array.dtype.bitwidth
        if _DEALS and array.dtype == types.float64:
            line = _permuted(builder, read, first)
        else:
            line = ir.Constant(ir.VectorType(context.get_data_type(array.dtype), count), ir.Undefined)
            for lane in range(count):
                owner = builder.zext(builder.load(builder.gep(first, [_I64(lane)])), _I64)
                line = builder.insert_element(line, builder.load(builder.gep(read, [owner])), _I32(lane))
        _streamed(builder, line, out, arguments[1], LINE)
        return context.get_dummy_value()

    return types.none(array, types.uint64, values, owners), generate


def _copy_line_typed(context: Any, array: Any, index: Any, values: Any) -> Any:
    """``array[index + j] = values[index + j]`` for a line of elements; ``array[index]`` begins a line."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, read = (
            context.make_array(signature.args[place])(context, builder, arguments[place]).data for place in (0, 2)
        )
        width = array.dtype.bitwidth // 8
        kind = ir.VectorType(context.get_data_type(array.dtype), LINE // width)
        line = _loaded(builder, builder.gep(read, [arguments[1]]), kind, width)
        _streamed(builder, line, out, arguments[1], LINE)
        return context.get_dummy_value()

    return types.none(array, types.uint64, values), generate


def _loaded(builder: Any, place: Any, kind: Any, align: int) -> Any:
    found = builder.load(builder.bitcast(place, kind.as_pointer()))
    found.align = align
    return found


def _permuted(builder: Any, read: Any, first: Any) -> Any:
    """Eight values by their owners from ``first`` on: from a line that begins with the first owner's, in one step."""
    places, line = ir.VectorType(_I64, 8), ir.VectorType(ir.DoubleType(), 8)
    begin = builder.zext(builder.load(first), _I64)
    owner = first.type.pointee
    owners = builder.zext(_loaded(builder, first, ir.VectorType(owner, 8), owner.width // 8), places)
    begins = builder.insert_element(places(ir.Undefined), begin, _I32(0))
    begins = builder.shuffle_vector(begins, places(ir.Undefined), ir.VectorType(_I32, 8)([0] * 8))
    kind = ir.FunctionType(line, [line, places])
    permute = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.permvar.df.512")
    return builder.call(permute, [_loaded(builder, builder.gep(read, [begin]), line, 8), builder.sub(owners, begins)])


def _settle_typed(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), generate


_write: Any = intrinsic(_write_typed)
_write_line: Any = intrinsic(_write_line_typed)
_copy_line: Any = intrinsic(_copy_line_typed)
#: A statement behind the last write: it is where other threads see it.
settle: Any = intrinsic(_settle_typed)


def _lines(out: Array, begin: int, end: int) -> tuple[int, int, int]:
    """The lines ``[first, last)`` of ``out`` from ``begin`` on that are whole before ``end``, and where the first is.

    Each is one store instead of eight. ``begin`` is 0 or the last ``last``.
    """
    line = LINE // out.itemsize
    head = min((-out.ctypes.data % LINE) // out.itemsize, out.size)
    first = max(begin, head)
    return first, first + max(end - first, 0) // line * line, head


_whole = bare(_lines)


def _stream(values: Array, out: Array, begin: int, end: int) -> int:
    """``out[begin:end] = values[begin:end]``, past the caches; where to go on, and :func:`settle` after the last one.

    What is no whole line is left until ``end`` is that of ``out``.
    """
    first, last, head = _whole(out, begin, end)
    for j in range(first, last, LINE // out.itemsize):
        _copy_line(out, np.uint64(j), values)
    if end == out.size:
        for j in range(head):
            _write(out, np.uint64(j), values[j])
        for j in range(last, end):
            _write(out, np.uint64(j), values[j])
    return last


def _deal(values: Array, owners: Array, out: Array, begin: int, end: int) -> int:
    """``out[j] = values[owners[j]]``, likewise.

    ``owners`` begin with 0, and none is less than the one before it or more than one further. There is room for a
    line of values behind those that are owned.
    """
    first, last, head = _whole(out, begin, end)
    for j in range(first, last, LINE // out.itemsize):
        _write_line(out, np.uint64(j), values, owners)
    if end == out.size:
        for j in range(head):
            _write(out, np.uint64(j), values[np.uint64(owners[j])])
        for j in range(last, end):
            _write(out, np.uint64(j), values[np.uint64(owners[j])])
    return last


stream, deal = bare(_stream), bare(_deal)
