"""The matrix of :mod:`workbench.kernels.fifo`: every algorithm, every monoid, and what is right for a window.

What is right is worked out from the raw values of a window by other means than partials: Python's exact integers and
fractions, ``min``, maps applied one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from workbench.algebra import PARTIALS
from workbench.algebra.monoids import monoid_of
from workbench.algebra.partials import PartialKind
from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.monoids import Group, Monoid, Partial, Selective

PRIME = 97
FIXED = (0, 2**63 - 1, -(2**63), 2**62)
INTEGERS = st.one_of(st.integers(-5, 5), st.sampled_from(FIXED))
#: Small multiples of 1/8, so that sums are exact in any order.
EIGHTHS = st.integers(-80, 80).map(lambda n: n / 8)
FLOATS = st.one_of(EIGHTHS, st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0]))


@dataclass(frozen=True)
class Case:
    """A monoid, raw values for it, and ``expected(values) -> fields`` of a window of them."""

    monoid: Monoid
    values: st.SearchStrategy[Any]
    lift: Callable[[Any], Partial]
    expected: Callable[[list[Any]], tuple[Any, ...]]
    tolerance: float = 0.0


def lift_of(kind: PartialKind) -> Callable[[Any], Partial]:
    def lift(value: Any) -> Partial:
        column = np.array([value if kind.inputs else 1], kind.inputs[0] if kind.inputs else "int64")
        fields = kind.lift(column)
        return tuple(np.asarray(f, spec.dtype)[0] for f, spec in zip(fields, kind.fields, strict=True))

    return lift


def sum_of_floats(values: list[float]) -> tuple[float]:
    if any(v != v for v in values) or {math.inf, -math.inf} <= set(values):
        return (math.nan,)
    return (next((v for v in values if math.isinf(v)), None) or math.fsum(values),)


def sum_of_integers(values: list[int]) -> tuple[int, int]:
    return (sum(values) & (2**64 - 1), sum(values) >> 64)


def extreme(choose: Callable[..., Any], empty: Any) -> Callable[[list[Any]], tuple[Any]]:
    """Least or greatest value; NaN if one is NaN."""
    return lambda values: (math.nan,) if any(v != v for v in values) else (choose(values, default=empty),)


def moments(values: list[float]) -> tuple[float, float, float]:
    if not values:
        return (0.0, 0.0, 0.0)
    if not all(map(math.isfinite, values)):
        return (float(len(values)), math.nan, math.nan)
    mean = sum(map(Fraction, values)) / len(values)
    return (float(len(values)), float(mean), float(sum((Fraction(v) - mean) ** 2 for v in values)))


def then(a: Partial, b: Partial) -> Partial:
    """The map x -> p x + q of ``b`` after that of ``a``."""
    return (a[0] * b[0] % PRIME, (b[0] * a[1] + b[1]) % PRIME)


def undo_first(total: Partial, prefix: Partial) -> Partial:
    """The map that is left when ``prefix`` was applied first; 1 / p is p ** (PRIME - 2)."""
    slope = total[0]
    for _ in range(PRIME - 2):
        slope = slope * prefix[0] % PRIME
    return (slope, (total[1] - slope * prefix[1]) % PRIME)


def apply_maps(values: list[tuple[int, int]]) -> tuple[int, int]:
    """Slope and offset, seen from what the maps make of 0 and 1."""
    at = [0, 1]
    for p, q in values:
        at = [(p * x + q) % PRIME for x in at]
    return ((at[1] - at[0]) % PRIME, at[0])


def product(a: Partial, b: Partial) -> Partial:
    """Of two 2 x 2 matrices, row by row."""
    return (
        (a[0] * b[0] + a[1] * b[2]) % PRIME,
        (a[0] * b[1] + a[1] * b[3]) % PRIME,
        (a[2] * b[0] + a[3] * b[2]) % PRIME,
        (a[2] * b[1] + a[3] * b[3]) % PRIME,
    )


def matrices(values: list[tuple[int, ...]]) -> tuple[int, ...]:
    result = np.eye(2, dtype=np.int64)
    for value in values:
        result = result @ np.array(value).reshape(2, 2) % PRIME
    return tuple(result.ravel().tolist())


def first(a: Partial, b: Partial) -> Partial:
    return a if a[0] else b


def last(a: Partial, b: Partial) -> Partial:
    return b if b[0] else a


def earliest_least(a: Partial, b: Partial) -> Partial:
    """(value, name) of the least value, the earlier one of two equal."""
    return b if b[0] < a[0] else a


RESIDUES = st.integers(0, PRIME - 1)
TWO, FOUR = ("int64",) * 2, ("int64",) * 4
_EXPECTED: dict[str, Callable[[list[Any]], tuple[Any, ...]]] = {
    "count": lambda values: (len(values),),
    "sum_float": sum_of_floats,
    "sum_int": sum_of_integers,
    "min_float": extreme(min, math.inf),
    "max_float": extreme(max, -math.inf),
    "min_int": extreme(min, 2**63 - 1),
    "max_int": extreme(max, -(2**63)),
    "moments": moments,
}


def _cases() -> dict[str, Case]:
    found = {}
    for name in _EXPECTED:
        kind = PARTIALS[name]
        values = FLOATS if kind.inputs == ("float64",) else INTEGERS
        tolerance = 1e-9 if name == "moments" else 0.0
        found[name] = Case(monoid_of(kind), values, lift_of(kind), _EXPECTED[name], tolerance)
    tagged = st.tuples(st.just(1), st.integers(-3, 3))
    own = (
        Case(
            Group("maps", TWO, (1, 0), then, undo_first), st.tuples(st.integers(1, 96), RESIDUES), tuple, apply_maps
        ),
        Case(Monoid("matrices", FOUR, (1, 0, 0, 1), product), st.tuples(*[RESIDUES] * 4), tuple, matrices),
        Case(Selective("first", TWO, (0, 0), first), tagged, tuple, lambda values: (*values, (0, 0))[0]),
        Case(Selective("last", TWO, (0, 0), last), tagged, tuple, lambda values: ((0, 0), *values)[-1]),
        Case(
            Selective("earliest_least", TWO, (99, -1), earliest_least),
            st.tuples(st.integers(-3, 3), st.integers(0, 50)),
            tuple,
            lambda values: min(values, key=lambda value: value[0], default=(99, -1)),
        ),
    )
    return found | {case.monoid.name: case for case in own}


#: Each monoid by name: the kinds of one numeric input, and some that are not commutative.
CASES = _cases()

#: Every pair of an algorithm and a monoid that it admits.
MATRIX = [
    (algorithm, name)
    for algorithm, (_, needs) in ALGORITHMS.items()
    for name, case in CASES.items()
    if isinstance(case.monoid, needs)
]


def differs(case: Case, found: Partial, expected: tuple[Any, ...]) -> bool:
    """Whether a field is not as expected; NaN is NaN, -0.0 is 0.0."""
    for x, y in zip(found, expected, strict=True):
        if x == y or (x != x and y != y):
            continue
        if case.tolerance == 0.0 or not abs(float(x) - y) <= case.tolerance * (1.0 + abs(y)):
            return True
    return False
