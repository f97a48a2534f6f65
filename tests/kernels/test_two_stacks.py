"""Windows from slices: TwoStacks against recomputation, for every kind of partial."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from cells import readable
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algebra import PARTIALS
from workbench.kernels.segments import fold_segments
from workbench.kernels.slicing import BEFORE, Slices, extent_of, number_slices, slice_starts, slices_of
from workbench.kernels.two_stacks import assemble
from workbench.time import DAY


@st.composite
def ascending_windows(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """A number of slices and windows over them whose bounds never descend; empty windows included."""
    slices = draw(st.integers(1, 25))
    firsts = sorted(draw(st.lists(st.integers(0, slices), min_size=1, max_size=12)))
    windows, low = [], 0
    for first in firsts:
        low = draw(st.integers(max(first, low), slices))
        windows.append((first, low))
    return slices, windows


def fold_in_order(kind: Any, fields: list[Any]) -> tuple[Any, ...]:
    """One partial after the other, from the identity: the definition. Partials are arrays of one cell."""
    state = kind.blank(1)
    for partial in fields:
        state = kind.combine(*state, *partial)
    return tuple(column[0] for column in state)


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=12, deadline=None)
@given(shape=ascending_windows(), data=st.data())
def test_windows_equal_recomputation(name: str, shape: tuple[int, list[tuple[int, int]]], data: Any) -> None:
    slices, windows = shape
    kind = PARTIALS[name]
    values = data.draw(st.lists(st.integers(-50, 50), min_size=slices * 2, max_size=slices * 2))
    columns = []
    for position, dtype in enumerate(kind.inputs or ("int64",)):
        columns.append(np.array([f"{value}" for value in values] if dtype == "object" else values, dtype))
        if position in kind.nullable:
            columns.append(np.array(values) > 0)
    fields = [
        np.asarray(field, spec.dtype).reshape(slices, 2)
        for field, spec in zip(kind.lift(*columns), kind.fields, strict=True)
    ]
    first, last = (np.array(side) for side in zip(*windows, strict=True))
    with np.errstate(all="ignore"):
        found = assemble(first, last, fields, kind.identity, kind.combine)
    for number, (low, high) in enumerate(windows):
        for key in range(2):
            cells = [tuple(field[row, key : key + 1] for field in fields) for row in range(low, high)]
            with np.errstate(all="ignore"):
                expected = fold_in_order(kind, cells)
            for field, wanted in zip(found, expected, strict=True):
                if field.dtype == object:
                    assert readable(field[number, key]) == readable(wanted)
                else:
                    np.testing.assert_allclose(field[number, key], wanted, rtol=1e-9, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=1)), max_size=40))
def test_segments_keep_the_order_of_rows(rows: list[tuple[int, str]]) -> None:
    """Concatenation is associative but not commutative, so a wrong order shows."""
    group = np.array([row[0] for row in rows], np.int64)
    text = np.array([row[1] for row in rows], object)
    found, (joined,) = fold_segments(group, (text,), lambda a, b: (a + b,))
    expected = {g: "".join(t for h, t in rows if h == g) for g in sorted({row[0] for row in rows})}
    assert dict(zip(found.tolist(), joined.tolist(), strict=True)) == expected
    assert list(found) == sorted(expected)


def test_slices_before_1970_round_down() -> None:
    """Case T4: 1969-12-31 23:59:58 lies in [23:59:50, 00:00:00)."""
    assert slice_starts(np.array([-2_000_000, 0, 9_999_999]), [(10_000_000, 0)]).tolist() == [-10_000_000, 0, 0]


def test_a_slice_starts_at_the_latest_edge_of_any_progression() -> None:
    """Edges every 4 at 0 and at 2 (a window of 10 sliding by 4): 0, 2, 4, 6, ..."""
    assert slice_starts(np.arange(-3, 7), [(4, 0), (4, 2)]).tolist() == [-4, -2, -2, 0, 0, 2, 2, 4, 4, 6]


@given(st.lists(st.integers(-4, 4), max_size=30))
def test_slices_are_numbered_in_order_of_start(starts: list[int]) -> None:
    slices = number_slices(np.array(starts, np.int64))
    assert slices.starts.tolist() == sorted(set(starts))
    assert slices.starts[slices.positions()].tolist() == starts


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 8)), min_size=1, max_size=3),
    st.sampled_from([1, 1_000]),
    st.data(),
)
def test_rows_in_order_are_cut_without_looking_at_each(
    times: list[int], edges: list[tuple[int, int]], unit: int, data: st.DataObject
) -> None:
    """As each by itself, in any unit, whole, in part and after a filter."""
    edges = [(period * 500, phase % period * 500) for period, phase in edges]
    stamps = np.sort(np.array(times, np.int64)) * (1_000 // unit)
    found = slices_of(np.repeat(stamps, 1_000), edges, unit=unit)
    assert found.bounds is not None
    assert len(found) == 1_000 * len(stamps)
    starts = slice_starts(stamps * unit, edges)
    assert found.starts.tolist() == sorted(set(starts.tolist()))
    assert found.starts[found.positions()[::1_000]].tolist() == starts.tolist()
    low = data.draw(st.integers(0, len(found)))
    high = data.draw(st.integers(low, len(found)))
    assert found.rows(low, high).positions().tolist() == found.positions()[low:high].tolist()
    mask = np.arange(len(found)) % 3 == 1
    assert found.only(mask).positions().tolist() == found.positions()[mask].tolist()


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
@pytest.mark.parametrize(
    ("times", "first", "last", "ordered"),
    [
        ([7], 7, 7, True),
        ([1, 3, 3], 1, 3, True),
        ([1, 3, 2], 1, 3, False),
        (np.append(np.arange(1 << 16), 5), 0, (1 << 16) - 1, False),
        (np.append(np.arange(1, 2_049), [0, 9]), 0, 2_048, False),
        (np.arange(-5, 1 << 17), -5, (1 << 17) - 1, True),
    ],
)
def test_the_extent_of_times(kernels: str, times: npt.ArrayLike, first: int, last: int, ordered: bool) -> None:
    """Some fall where one piece of them ends and the next begins."""
    with mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels):
        found = extent_of(np.array(times, np.int64))
    assert (found.first, found.last, found.ordered) == (first, last, ordered)


def starts_with_rows(slices: Slices) -> list[int]:
    """All ascend; of few slices some may have no row."""
    assert (np.diff(slices.starts) > 0).all()
    return list(slices.starts[np.unique(slices.positions())].tolist())


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
@pytest.mark.parametrize("spread", [30, 2_000, 200_000, 2_000_000])
@pytest.mark.parametrize("unit", [1, 1_000])
def test_late_rows_fall_into_their_slices(kernels: str, spread: int, unit: int) -> None:
    """From pieces with one edge to pieces with hundreds, some of them closer together than the times can tell."""
    random, count = np.random.default_rng(spread), 30_000
    times = (
        np.arange(count) * 20 - 100_000 - np.where(random.random(count) < 0.3, random.integers(0, spread, count), 0)
    )
    edges = [(7_001 * unit, 0), (4_000 * unit, 3 * unit), (999 * unit + unit // 3, 0)]
    starts = slice_starts(times * unit, edges)
    with mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels):
        found = slices_of(times, edges, unit=unit)
    assert found.bounds is None
    assert starts_with_rows(found) == sorted(set(starts.tolist()))
    assert found.starts[found.positions()].tolist() == starts.tolist()


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 8)), max_size=3),
    st.lists(st.integers(-50, 50), max_size=4, unique=True),
    st.integers(1, 30),
)
def test_rows_in_any_order_fall_into_the_slice_of_the_latest_edge(
    kernels: str, times: list[int], progressions: list[tuple[int, int]], others: list[int], repeated: int
) -> None:
    """Looked up among few edges or computed row by row: the latest edge at or before the time, by looking at all."""
    edges = [(period, phase % period) for period, phase in progressions]
    every = [time for time in range(-60, 60) if any((time - phase) % period == 0 for period, phase in edges)]
    expected = [max([t for t in (*every, *others) if t <= time], default=BEFORE) for time in times]
    with mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels):
        found = slices_of(np.repeat(times, repeated), edges, np.sort(np.array(others, np.int64)))
    assert starts_with_rows(found) == sorted(set(expected))
    assert found.starts[found.positions()].tolist() == np.repeat(expected, repeated).tolist()


@pytest.mark.parametrize("kernels", ["generic", "compiled"])
def test_edges_that_lie_close_in_a_long_range_are_told_apart(kernels: str) -> None:
    """Case: a thousand edges a microsecond apart, all in one range of the table, and one two thousand years later."""
    edges = np.append(np.arange(1_000), 2_000 * 366 * DAY)
    times = np.append(np.arange(999, -1, -1), [5_000, 2_000 * 366 * DAY + 1])
    with mock.patch.dict(os.environ, WINQUERY_KERNELS=kernels):
        found = slices_of(np.repeat(times, 2), [], edges)
    assert found.starts[found.positions()][::2].tolist() == [*range(999, -1, -1), 999, 2_000 * 366 * DAY]
