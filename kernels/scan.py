"""Prefix and suffix scans over one array with SIMD, for the monoids that are one machine instruction.

A scan is a chain: every element waits for the one before. Here a register of neighbours is scanned in
``log2(lanes)`` shuffles that wait for nobody, and the chain links whole registers, one combine each (Blelloch,
"Prefix sums and their applications", 1990). Compilers do not find this form by themselves, so it is written in
LLVM's vector instructions; they are the same on every processor, ``LANE_BYTES`` only says how wide to write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.kernels.compiler import cgutils, intrinsic, ir, types
from workbench.kernels.jit import jit
from workbench.kernels.streaming import beyond

#: Bytes of one vector: two registers of 128 bits or one of 256.
LANE_BYTES = 32

#: Registers of floats that are scanned together, so that only one in so many combines waits for the one before.
_TOGETHER = 2

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
        return carry(source, target, carry), _Scan(name, reverse).generate

    typed.__name__ = f"vector_{'suffix' if reverse else 'prefix'}_{name}"
    return intrinsic(typed)


def _vector_difference(past: bool) -> Any:
    """An intrinsic ``scan(comes, leaves, target, carry) -> carry``: sums of ``comes - leaves``.

    ``past``: they go past the caches, to a target that begins at a whole vector.
    """

    def typed(context: Any, comes: Any, leaves: Any, target: Any, carry: Any) -> Any:
        return carry(comes, leaves, target, carry), _Scan("add", reverse=False, past=past).generate

    typed.__name__ = f"vector_difference_{'past' if past else 'cached'}"
    return intrinsic(typed)


class _Scan:
    """Generates the vector loop of a scan; its arguments are one array or two to subtract, the target, the carry."""

    def __init__(self, name: str, reverse: bool, past: bool = False) -> None:
        self.name, self.reverse, self.past = name, reverse, past

    def generate(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """IR of the scan; the carry behind it."""
        kind = signature.args[0].dtype
        self._builder, self._kind = builder, kind
        self._floating, self._signed = isinstance(kind, types.Float), getattr(kind, "signed", True)
        self._lanes = lanes = LANE_BYTES * 8 // kind.bitwidth
        element = context.get_data_type(kind)
        self._vector = ir.VectorType(element, lanes)
        self._neutral = ir.Constant(self._vector, [ir.Constant(element, _identity(self.name, kind))] * lanes)
        arrays = [
            context.make_array(each)(context, builder, value)
            for each, value in zip(signature.args[:-1], arguments[:-1], strict=True)
        ]
        self._places = [array.data for array in arrays]
        size = builder.extract_value(arrays[0].shape, 0)
        self._size, step = size, ir.Constant(size.type, lanes)
        first = builder.insert_element(self._neutral, arguments[-1], ir.Constant(_I32, 0))
        carry = cgutils.alloca_once_value(builder, self._shuffle(first, [0] * lanes))
        whole = builder.sdiv(size, step)
        together = ir.Constant(size.type, _TOGETHER if self._floating else 1)
        rounds = builder.sdiv(whole, together)
        if self._floating:
            with cgutils.for_range(builder, rounds) as loop:
                begin = builder.mul(loop.index, builder.mul(together, step))
                self._step(begin, step, carry, _TOGETHER)
        done = builder.mul(rounds, together) if self._floating else ir.Constant(size.type, 0)
        with cgutils.for_range(builder, builder.sub(whole, done)) as loop:
            self._step(builder.mul(builder.add(done, loop.index), step), step, carry, 1)
        return builder.extract_element(builder.load(carry), ir.Constant(_I32, 0))

    def _step(self, begin: Any, step: Any, carry: Any, count: int) -> None:
        """Scan ``count`` registers of neighbours; only their total waits for the carry."""
        builder, before, total = self._builder, self._builder.load(carry), None
        for number in range(count):
            offset = builder.add(begin, builder.mul(step, ir.Constant(step.type, number)))
            if self.reverse:
                offset = builder.sub(builder.sub(self._size, step), offset)
            *sources, target = [
                builder.bitcast(builder.gep(place, [offset]), self._vector.as_pointer()) for place in self._places
            ]
            value = self._scanned(sources)
            last = self._shuffle(value, [0 if self.reverse else self._lanes - 1] * self._lanes)
            if total is not None:
                value, last = self._combine(total, value), self._combine(total, last)
            total = last
            stored = builder.store(self._combine(before, value), target)
            if self.past:
                beyond(stored, LANE_BYTES)
            else:
                stored.align = self._kind.bitwidth // 8
        builder.store(self._combine(before, total), carry)

    def _scanned(self, sources: list[Any]) -> Any:
        """One register, or the difference of two, scanned by itself."""
        builder, lanes = self._builder, self._lanes
        values = [builder.load(source) for source in sources]
        for value in values:
            value.align = self._kind.bitwidth // 8
        value, *leaves = values
        for other in leaves:
            value = builder.fsub(value, other) if self._floating else builder.sub(value, other)
        shift = 1
        while shift < lanes:
            if self.reverse:
                mask = [lane + shift if lane + shift < lanes else lanes for lane in range(lanes)]
            else:
                mask = [lane - shift if lane >= shift else lanes for lane in range(lanes)]
            value = self._combine(self._shuffle(value, mask), value)
            shift *= 2
        return value

    def _combine(self, left: Any, right: Any) -> Any:
        """In the order of the rows, whichever way the scan goes."""
        if self.reverse:
            left, right = right, left
        return _combine(self._builder, self.name, self._floating, self._signed, left, right)

    def _shuffle(self, value: Any, mask: list[int]) -> Any:
        return self._builder.shuffle_vector(value, self._neutral, ir.Constant(ir.VectorType(_I32, self._lanes), mask))


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


@jit
def copy(source: Any, target: Any) -> None:
    """Element by element: a third of the time of an assignment to a slice, in the first-level cache."""
    for i in range(source.size):
        target[i] = source[i]


def _prefix(name: str) -> Callable[[Any, Any, Any], Any]:
    vector, scalar = _vector_scan(name, reverse=False), _scalar(name)

    def prefix(source: Any, target: Any, carry: Any) -> Any:
        one = source.dtype.type
        carry = vector(source, target, carry)
        for i in range(source.size - source.size % (LANE_BYTES // source.itemsize), source.size):
            carry = one(scalar(carry, source[i])[0])
            target[i] = carry
        return carry

    # numba names machine code by this: kernels that come from its disk cache would take each other's scan for theirs.
    prefix.__qualname__ = f"prefix_{name}"
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

    suffix.__qualname__ = f"suffix_{name}"
    compiled: Callable[[Any, Any, Any], Any] = jit(suffix)
    return compiled


_cached, _past = _vector_difference(past=False), _vector_difference(past=True)


def _one_by_one(comes: Any, leaves: Any, target: Any, carry: Any, low: Any) -> Any:
    one = comes.dtype.type
    for i in range(low, comes.size):
        carry = one(carry + one(comes[i] - leaves[i]))
        target[i] = carry
    return carry


_rest = jit(_one_by_one)


def _differences(comes: Any, leaves: Any, target: Any, carry: Any) -> Any:
    carry = _cached(comes, leaves, target, carry)
    return _rest(comes, leaves, target, carry, comes.size - comes.size % (LANE_BYTES // comes.itemsize))


def _differences_past(comes: Any, leaves: Any, target: Any, carry: Any) -> Any:
    head = min(-target.ctypes.data % LANE_BYTES // target.itemsize, target.size)
    carry = _rest(comes[:head], leaves[:head], target[:head], carry, 0)
    comes, leaves, target = comes[head:], leaves[head:], target[head:]
    carry = _past(comes, leaves, target, carry)
    return _rest(comes, leaves, target, carry, comes.size - comes.size % (LANE_BYTES // comes.itemsize))


#: ``prefix_difference(comes, leaves, target, carry)``: :func:`prefix_add` of ``comes - leaves``; and past the caches
#: (:mod:`workbench.kernels.streaming`).
prefix_difference: Callable[[Any, Any, Any, Any], Any] = jit(_differences)
prefix_difference_past: Callable[[Any, Any, Any, Any], Any] = jit(_differences_past)

#: Each ``prefix_*(source, target, carry)`` writes ``target[i] = carry . source[0] . ... . source[i]``, each
#: ``suffix_*`` writes ``target[i] = source[i] . ... . source[-1] . carry``; both return the last combination. The
#: arrays are contiguous, of one length and type (any integer or float), and may be the same one. Float sums come in
#: the order of a tree, so their last bits may differ from those of a loop.
prefix_add, prefix_min, prefix_max = _prefix("add"), _prefix("min"), _prefix("max")
suffix_add, suffix_min, suffix_max = _suffix("add"), _suffix("min"), _suffix("max")
