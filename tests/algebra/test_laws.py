"""The laws of the monoids, on values at the edges of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import readable
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algebra import PARTIALS, PartialKind

INT = st.one_of(st.integers(-5, 5), st.sampled_from([-(2**63), 2**63 - 1, 2**62]))
FLOAT = st.one_of(st.integers(-80, 80).map(lambda n: n / 8), st.sampled_from([np.nan, np.inf, -np.inf, -0.0, -1e300]))
#: Sums of powers of deviations and products of these need no more than the range of a float.
MODEST = st.one_of(st.integers(-80, 80).map(lambda n: n / 8), st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 1e60]))
TEXT = st.sampled_from(["", "a", "b", "ab", "é", "zz"])

Partial = tuple[Any, ...]


def rows(kind: PartialKind, most: int = 1) -> st.SearchStrategy[list[Partial]]:
    """Argument values of rows; a nullable input comes with its validity."""
    columns: list[st.SearchStrategy[Any]] = []
    for position, dtype in enumerate(kind.inputs):
        values = {"int64": INT, "float64": FLOAT if kind.exact else MODEST, "object": TEXT}[dtype]
        columns.append(values)
        if position in kind.nullable:
            columns.append(st.booleans())
    return st.lists(st.tuples(*columns), min_size=1, max_size=most)


def columns_of(kind: PartialKind, values: list[Partial]) -> list[np.ndarray]:
    if not kind.inputs:
        return [np.ones(len(values), np.int64)]
    dtypes = [
        dtype
        for position, name in enumerate(kind.inputs)
        for dtype in ([name, "bool"] if position in kind.nullable else [name])
    ]
    filled = []
    for column, dtype in zip(zip(*values, strict=True), dtypes, strict=True):
        cells = np.empty(len(values), dtype)
        cells[:] = column
        filled.append(cells)
    for position in kind.nullable:  # what stands where NULL is: 0, or the empty text
        filled[position][~filled[position + 1]] = "" if kind.inputs[position] == "object" else 0
    return filled


def lifted(name: str, values: list[Partial]) -> Partial:
    """One partial for each row."""
    kind = PARTIALS[name]
    with np.errstate(all="ignore"):
        fields = kind.lift(*columns_of(kind, values))
    return tuple(np.asarray(field, spec.dtype) for field, spec in zip(fields, kind.fields, strict=True))


def combined(name: str, left: Partial, right: Partial) -> Partial:
    with np.errstate(all="ignore"):
        return PARTIALS[name].combine(*left, *right)


def assert_equal(name: str, left: Partial, right: Partial) -> None:
    """Equal, both zeros alike; up to rounding where the kind is not exact."""
    kind = PARTIALS[name]
    for field, x, y in zip(kind.fields, left, right, strict=True):
        if field.dtype == "object":
            assert [readable(cell) for cell in x] == [readable(cell) for cell in y]
        elif kind.exact:
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * scale(left))


def scale(fields: Partial) -> float:
    """What rounding may be compared with: the size of the largest field of floats, power by power."""
    sizes = [abs(float(field[0])) for field in fields if field.dtype.kind == "f"]
    return max([1.0, *(size for size in sizes if np.isfinite(size))])


def assert_undone(name: str, found: Partial, expected: Partial, total: Partial) -> None:
    """Equal; of an inverse that rounds, floats up to the rounding of the total, and all else exactly."""
    for x, y in zip(found, expected, strict=True):
        if PARTIALS[name].rounding and x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * scale(total))
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_identity_and_associativity(name: str, data: st.DataObject) -> None:
    kind = PARTIALS[name]
    a, b, c = (lifted(name, data.draw(rows(kind))) for _ in range(3))
    identity = kind.blank(1)
    for one in (a, combined(name, a, b)):
        for other in (combined(name, identity, one), combined(name, one, identity)):
            for x, y in zip(other, one, strict=True):
                np.testing.assert_array_equal(x, y)
    assert_equal(name, combined(name, combined(name, a, b), c), combined(name, a, combined(name, b, c)))
    assert_equal(name, combined(name, identity, identity), identity)
    if kind.idempotent:
        assert_equal(name, combined(name, a, a), a)
    if kind.commutative:
        assert_equal(name, combined(name, a, b), combined(name, b, a))
    if kind.invert is not None:
        total = combined(name, a, b)
        assert_undone(name, kind.invert(*total, *a), b, combined(name, total, a))
        whole = combined(name, total, c)
        assert_undone(name, kind.invert(*kind.invert(*whole, *a), *b), c, combined(name, whole, total))


@pytest.mark.parametrize("name", sorted(name for name, kind in PARTIALS.items() if kind.fold is not None))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_folding_whole_columns_is_lifting_and_combining(name: str, data: st.DataObject) -> None:
    kind = PARTIALS[name]
    values = data.draw(rows(kind, 12))
    group = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))), np.int64)
    assert kind.fold is not None
    found, fields = kind.fold(group, *columns_of(kind, values))
    assert found.tolist() == sorted(set(group.tolist()))
    for number, place in enumerate(found.tolist()):
        state = kind.blank(1)
        for row in (row for row, other in zip(values, group, strict=True) if other == place):
            state = combined(name, state, lifted(name, [row]))
        assert_equal(name, tuple(field[number : number + 1] for field in fields), state)


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_fields_travel_through_arrow(name: str, data: st.DataObject) -> None:
    kind = PARTIALS[name]
    fields = lifted(name, data.draw(rows(kind, 4)))
    for field, cells in zip(kind.fields, fields, strict=True):
        cells = np.concatenate([cells, np.full(1, field.identity, field.dtype)])
        back = field.from_arrow(field.to_arrow(cells))
        assert back.dtype == cells.dtype
        np.testing.assert_array_equal(back, cells)
        assert field.nbytes(cells) >= cells.nbytes


def test_wide_sums_are_exact_beyond_64_bits() -> None:
    """Case N7: 2**63 - 1, 1 and -1: no wrap on the way."""
    parts = [lifted("sum_int", [(value,)]) for value in (2**63 - 1, 1, -1)]
    total = combined("sum_int", combined("sum_int", parts[0], parts[1]), parts[2])
    low, high = (int(field[0]) for field in total)
    assert (high << 64) + low == 2**63 - 1


@given(st.lists(INT, min_size=1, max_size=20))
def test_wide_sums_equal_python_integers(values: list[int]) -> None:
    total = lifted("sum_int", [(values[0],)])
    for value in values[1:]:
        total = combined("sum_int", total, lifted("sum_int", [(value,)]))
    low, high = (int(field[0]) for field in total)
    assert (high << 64) + low == sum(values)
