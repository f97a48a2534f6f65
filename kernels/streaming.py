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


def _write_typed(context: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index] = value`` for a contiguous array of one dimension; the index is not looked at."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        bits = array.dtype.bitwidth
        kind = ir.IntType(bits)
        # Of whole words, as there is an instruction for each of 4 and 8 bytes.
        stored = builder.store(builder.bitcast(arguments[2], kind), builder.bitcast(place, kind.as_pointer()))
        stored.align = bits // 8
        one = ir.Constant(ir.IntType(32), 1)
        stored.set_metadata("nontemporal", builder.module.add_metadata([one]))
        return context.get_dummy_value()

    return types.none(array, types.uint64, array.dtype), generate


def _settle_typed(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), generate


_write: Any = intrinsic(_write_typed)
#: A statement behind the last write: it is where other threads see it.
settle: Any = intrinsic(_settle_typed)


def _stream(values: Array, out: Array) -> None:
    """``out[:] = values``, past the caches; :func:`settle` after the last one."""
    for j in range(out.size):
        _write(out, np.uint64(j), values[j])


def _deal(values: Array, owners: Array, out: Array) -> None:
    """``out[j] = values[owners[j]]``, likewise."""
    for j in range(out.size):
        _write(out, np.uint64(j), values[np.uint64(owners[j])])


stream, deal = jit(_stream), jit(_deal)
