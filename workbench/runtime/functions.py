"""The kernels behind the scalar functions: comparisons and choices here, the others by theme beside it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.logical.expressions import Call
from workbench.runtime import decimals, numbers, texts, times
from workbench.runtime.values import Kernel, Value, comparable, null, plain


def _compare(smaller: Kernel, *, swap: bool = False) -> Kernel:
    """A comparison in which NaN equals NaN and is greater than every number, as in Spark."""

    def run(call: Call, left: Value, right: Value) -> Value:
        if swap:
            left, right = right, left
        if not is_.is_floating(left.type) or not (_has_nan(left) or _has_nan(right)):
            return smaller(left, right)
        # Two steps of order: whether it is NaN, then the numbers among themselves.
        left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
        by_nan = smaller(pc.cast(left_nan, pa.int8()), pc.cast(right_nan, pa.int8()))
        return pc.if_else(pc.or_(left_nan, right_nan), by_nan, smaller(left, right))

    return run


def _has_nan(value: Value) -> bool:
    if isinstance(value, pa.Scalar):
        return bool(value.is_valid and value.as_py() != value.as_py())
    return bool(pc.any(pc.is_nan(value)).as_py())


_equal, _less = _compare(pc.equal), _compare(pc.less)


def _in(call: Call, value: Value, *choices: Value) -> Value:
    """NULL where nothing is equal but a choice is NULL. Constants are looked up, however many they are."""
    if isinstance(value, pa.Array) and all(isinstance(choice, pa.Scalar) for choice in choices):
        known = pa.array([choice.as_py() for choice in choices if choice.is_valid], value.type)
        unknown = value.is_null() if len(known) == len(choices) else pa.scalar(True)
        found = pc.is_in(comparable(value), value_set=comparable(known))
        return pc.if_else(pc.and_not(unknown, found), null(call), found)
    result = _equal(call, value, choices[0])
    for choice in choices[1:]:
        result = pc.or_kleene(result, _equal(call, value, choice))
    return result


def _nullif(call: Call, value: Value, unwanted: Value) -> Value:
    same = pc.fill_null(_equal(call, value, unwanted), False)
    return pc.if_else(same, null(call), value)


def _extreme(first_wins: Callable[[Call, Value, Value], Value]) -> Kernel:
    """The argument that wins against all others; NULL arguments do not take part."""

    def run(call: Call, *arguments: Value) -> Value:
        best = arguments[0]
        for value in arguments[1:]:
            keep = pc.or_kleene(first_wins(call, best, value), pc.is_null(value))
            best = pc.if_else(pc.fill_null(keep, False), best, value)
        return best

    return run


def _null_safe_equal(call: Call, left: Value, right: Value) -> Value:
    """Equality in which NULL equals NULL."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(_equal(call, left, right), False))


def _of_decimals(exact: Kernel, otherwise: Kernel) -> Kernel:
    """One kernel for decimals and another one for all other numbers."""

    def run(call: Call, *arguments: Value) -> Value:
        return (exact if is_.is_decimal(arguments[0].type) else otherwise)(call, *arguments)

    return run


def _nullifzero(call: Call, value: Value) -> Value:
    return _nullif(call, value, pa.scalar(0, call.type))


#: The kernel of every function but those that guard their arguments, which the evaluator itself knows.
KERNELS: dict[str, Kernel] = {
    "not": plain(pc.invert),
    "equal": _equal,
    "null_safe_equal": _null_safe_equal,
    "not_equal": _compare(pc.not_equal),
    "less": _less,
    "less_equal": _compare(pc.less_equal),
    "greater": _compare(pc.less, swap=True),
    "greater_equal": _compare(pc.less_equal, swap=True),
    "in": _in,
    "is_null": plain(pc.is_null),
    "is_not_null": plain(pc.is_valid),
    "nullif": _nullif,
    "nullifzero": _nullifzero,
    "zeroifnull": lambda call, value: pc.fill_null(value, pa.scalar(0, call.type)),
    "least": _extreme(_compare(pc.less_equal)),
    "greatest": _extreme(_compare(pc.less_equal, swap=True)),
    **numbers.KERNELS,
    **texts.KERNELS,
    **times.KERNELS,
    **decimals.HALVES,
}
for _name, _exact in decimals.KERNELS.items():
    KERNELS[_name] = _of_decimals(_exact, KERNELS[_name])
