"""Prefix and suffix scans over one array with SIMD, for the monoids that are one machine instruction.

A scan is a chain: every element waits for the one before. Here a register of neighbours is scanned in
``log2(lanes)`` shuffles that wait for nobody, and the chain links whole registers, one combine each (Blelloch,
"Prefix sums and their applications", 1990). Compilers do not find this form by themselves, so it is written in
LLVM's vector instructions; they are the same on every processor, ``LANE_BYTES`` only says how wide to write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from workbench.kernels.jit import jit

#: Bytes of one vector: two registers of 128 bits or one of 256.
LANE_BYTES = 32

_I32 = ir.IntType(32)


def _combine(builder: Any, name: str, floating: bool, signed: bool, left: Any, right: Any) -> Any:
    """IR of ``left + right``, or of the smaller or larger one (NaN if one is NaN)."""
    if name == "add":
        return builder.fadd(left, right) if floating else builder.add(left, right)
    order = {"min": "<", "max": ">"}[name]
    if floating:
        chosen = builder.select(builder.fcmp_ordered(order, left, right), left, right)
        return _nan_of(builder, chosen, left, right)
    compare = builder.icmp_signed if signed else builder.icmp_unsigned
    return builder.select(compare(order, left, right), left, right)


def _nan_of(builder: Any, chosen: Any, left: Any, right: Any) -> Any:
    """IR of ``chosen``, or NaN where one of two floats or vectors of them is: all bits set, so two instructions."""
    unordered = builder.fcmp_unordered("uno", left, right)
    bits = {"float": ir.IntType(32), "double": ir.IntType(64)}[str(getattr(chosen.type, "element", chosen.type))]
    if isinstance(chosen.type, ir.VectorType):
        bits = ir.VectorType(bits, chosen.type.count)
    return builder.bitcast(builder.or_(builder.bitcast(chosen, bits), builder.sext(unordered, bits)), chosen.type)


def _nan_or_typed(context: Any, chosen: Any, left: Any, right: Any) -> Any:
    """``chosen`` of two scalars, or NaN where one of them is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _nan_of(builder, *arguments) if isinstance(chosen, types.Float) else arguments[0]

    return chosen(chosen, left, right), generate


_nan_or: Any = intrinsic(_nan_or_typed)


def _identity(name: str, kind: Any) -> float | int:
    if isinstance(kind, types.Float):
        return {"add": 0.0, "min": float("inf"), "max": float("-inf")}[name]
    return {"add": 0, "min": kind.maxval, "max": kind.minval}[name]


def _vector_scan(name: str, reverse: bool) -> Any:
    """An intrinsic ``scan(source, target, carry) -> carry`` over the first multiple of the lanes, or the last."""

    def typed(context: Any, source: Any, target: Any, carry: Any) -> Any:
        kind = source.dtype
        floating, signed = isinstance(kind, types.Float), getattr(kind, "signed", True)
        lanes = LANE_BYTES * 8 // kind.bitwidth

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_data_type(kind)
            vector = ir.VectorType(element, lanes)
            neutral = ir.Constant(vector, [ir.Constant(element, _identity(name, kind))] * lanes)
            arrays = [
                context.make_array(signature.args[place])(context, builder, arguments[place]) for place in (0, 1)
            ]
            size = builder.extract_value(arrays[0].shape, 0)
            step = ir.Constant(size.type, lanes)

            def combine(left: Any, right: Any) -> Any:
                if reverse:
                    left, right = right, left
                return _combine(builder, name, floating, signed, left, right)

            def shuffle(value: Any, mask: list[int]) -> Any:
                return builder.shuffle_vector(value, neutral, ir.Constant(ir.VectorType(_I32, lanes), mask))

            first = builder.insert_element(neutral, arguments[2], ir.Constant(_I32, 0))
            carry = cgutils.alloca_once_value(builder, shuffle(first, [0] * lanes))
            with cgutils.for_range(builder, builder.sdiv(size, step)) as loop:
                offset = builder.mul(loop.index, step)
                if reverse:
                    offset = builder.sub(builder.sub(size, step), offset)
                places = [builder.bitcast(builder.gep(a.data, [offset]), vector.as_pointer()) for a in arrays]
                value = builder.load(places[0])
                value.align = kind.bitwidth // 8
                shift = 1
                while shift < lanes:
                    if reverse:
                        mask = [lane + shift if lane + shift < lanes else lanes for lane in range(lanes)]
                    else:
                        mask = [lane - shift if lane >= shift else lanes for lane in range(lanes)]
                    value = combine(shuffle(value, mask), value)
                    shift *= 2
                before = builder.load(carry)
                stored = builder.store(combine(before, value), places[1])
                stored.align = kind.bitwidth // 8
                builder.store(combine(before, shuffle(value, [0 if reverse else lanes - 1] * lanes)), carry)
            return builder.extract_element(builder.load(carry), ir.Constant(_I32, 0))

        return carry(source, target, carry), generate

    typed.__name__ = f"vector_{'suffix' if reverse else 'prefix'}_{name}"
    return intrinsic(typed)


def _scalar(name: str) -> Callable[[Any, Any], Any]:
    """One combine as a compiled function of scalars, in a form that loops over it are made SIMD of."""

    def add(left: Any, right: Any) -> Any:
        return (left + right,)

    def smaller(left: Any, right: Any) -> Any:
        return (_nan_or(left if left < right else right, left, right),)

    def larger(left: Any, right: Any) -> Any:
        return (_nan_or(left if left > right else right, left, right),)

    chosen: Callable[[Any, Any], Any] = jit({"add": add, "min": smaller, "max": larger}[name])
    return chosen


#: What ``kernels/combine.py`` has for arrays and scalars, for compiled scalars alone: the minimum and maximum of
#: floats are half as fast again in this form.
combine_add, combine_min, combine_max = map(_scalar, ("add", "min", "max"))


def _prefix(name: str) -> Callable[[Any, Any, Any], Any]:
    vector, scalar = _vector_scan(name, reverse=False), _scalar(name)

    def prefix(source: Any, target: Any, carry: Any) -> Any:
        one = source.dtype.type
        carry = vector(source, target, carry)
        for i in range(source.size - source.size % (LANE_BYTES // source.itemsize), source.size):
            carry = one(scalar(carry, source[i])[0])
            target[i] = carry
        return carry

    compiled: Callable[[Any, Any, Any], Any] = jit(prefix)
    return compiled


def _suffix(name: str) -> Callable[[Any, Any, Any], Any]:
    vector, scalar = _vector_scan(name, reverse=True), _scalar(name)

    def suffix(source: Any, target: Any, carry: Any) -> Any:
        one = source.dtype.type
        carry = vector(source, target, carry)
        for i in range(source.size % (LANE_BYTES // source.itemsize) - 1, -1, -1):
            carry = one(scalar(source[i], carry)[0])
            target[i] = carry
        return carry

    compiled: Callable[[Any, Any, Any], Any] = jit(suffix)
    return compiled


#: Each ``prefix_*(source, target, carry)`` writes ``target[i] = carry . source[0] . ... . source[i]``, each
#: ``suffix_*`` writes ``target[i] = source[i] . ... . source[-1] . carry``; both return the last combination. The
#: arrays are contiguous, of one length and type (any integer or float), and may be the same one. Float sums come in
#: the order of a tree, so their last bits may differ from those of a loop.
prefix_add, prefix_min, prefix_max = _prefix("add"), _prefix("min"), _prefix("max")
suffix_add, suffix_min, suffix_max = _suffix("add"), _suffix("min"), _suffix("max")
