"""Windows over slices: every algorithm against recalculation from the slices of each window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifting import KINDS, assert_same, partials_of, recalculated

from workbench.algebra import PARTIALS
from workbench.codegen import AssembleKernel, Scans
from workbench.plan.gag import Algorithm

KEYS, COLUMNS, ROWS = 3, 4, 50
METHODS = [
    (Algorithm.TWO_STACKS, 1),
    (Algorithm.SLIDE_SIDE, 2),
    (Algorithm.SLIDE_SIDE, 5),
    (Algorithm.SLIDE_SIDE, 64),
    (Algorithm.SLIDE_SIDE_INV, 1),
    (Algorithm.SLIDE_SIDE_INV, 7),
    (Algorithm.SLIDE_SIDE_INV, 64),
    (Algorithm.FLAT_FAT, 1),
]


@st.composite
def ranges(draw: st.DrawFn, end: int) -> tuple[Any, Any, Any]:
    """Windows of up to four kinds, each ascending, over the slices before ``end``; some without a slice."""
    first, last, bounds = [], [], [0]
    for _ in range(draw(st.integers(1, 4))):
        size, slide = draw(st.integers(0, end)), draw(st.integers(1, 7))
        lows = list(range(draw(st.integers(0, 5)), end - size + 1, slide))
        first += lows
        last += [low + size for low in lows]
        bounds.append(len(first))
    return np.array(first, np.int64), np.array(last, np.int64), np.array(bounds, np.int64)


@pytest.mark.parametrize(("algorithm", "chunk"), METHODS)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1_000))
def test_every_window_is_what_its_slices_give(
    name: str, algorithm: Algorithm, chunk: int, data: st.DataObject, seed: int
) -> None:
    """Three calls on one store: slices are added, then an old one changes, as a late row does."""
    kind = PARTIALS[name]
    if algorithm is Algorithm.SLIDE_SIDE_INV and kind.invert is None:
        with pytest.raises(TypeError, match=f"`{name}` has no exact inverse"):
            AssembleKernel(kind, algorithm)
        return
    kernel, scans = AssembleKernel(kind, algorithm, chunk), Scans()
    leaves = partials_of(kind, (ROWS, COLUMNS), seed)
    ends = sorted(data.draw(st.lists(st.integers(1, ROWS), min_size=3, max_size=3)))
    for number, end in enumerate(ends):
        if number == 2:
            row = data.draw(st.integers(0, end - 1))
            for leaf, other in zip(leaves, partials_of(kind, (ROWS, COLUMNS), seed + 1), strict=True):
                leaf[row] = other[row]
            scans.touch(np.array([row]))
        first, last, bounds = data.draw(ranges(end))
        for compiled in (False, True):
            found = kernel(first, last, bounds, leaves, scans, keys=KEYS, end=end, compiled=compiled)
            for window, (low, high) in enumerate(zip(first, last, strict=True)):
                expected = recalculated(kind, tuple(leaf[:, :KEYS] for leaf in leaves), low, high)
                assert_same(kind, tuple(field[window] for field in found), expected, f"slices {low} to {high}")


@pytest.mark.parametrize("large", [1e90, -1e200])
def test_a_large_float_spoils_differences_until_prefixes_begin_anew(large: float) -> None:
    """What ``numerics='fast'`` costs, as documented; without it nothing is spoiled (cases N1 and N3).

    Windows of 4 over slices of 1, one of them ``large``, prefixes from slices 0, 8 and 16 on::

        slices     1 1 X 1 1 1 1 1 | 1 1 1 1 1 1 1 1 | 1 ...
        wrong             [.....)                              begin behind X, before 8
                                    [.....)                    right again from here on
    """
    leaves = np.ones((24, 1))
    leaves[2] = large
    first = np.arange(20)
    ranges = first, first + 4, np.array([0, 20])
    expected = np.where((first <= 2) & (first + 4 > 2), large, 4.0)
    exact, fast = (
        AssembleKernel(name, algorithm, 8)(
            *ranges, PARTIALS[name].lift(leaves), Scans(), keys=1, end=24, compiled=True
        )[0][:, 0]
        for name, algorithm in [("sum_float", Algorithm.SLIDE_SIDE), ("sum_fast", Algorithm.SLIDE_SIDE_INV)]
    )
    np.testing.assert_array_equal(exact, expected)
    behind = (first > 2) & (first < 8)
    np.testing.assert_array_equal(fast[~behind], expected[~behind])
    assert (fast[behind] != expected[behind]).all()


def test_scans_are_computed_once_for_a_slice() -> None:
    """What is valid is not looked at again: a slice changed behind the store's back is not noticed."""
    kernel, scans = AssembleKernel("count", Algorithm.SLIDE_SIDE_INV), Scans()
    leaves = (np.ones((ROWS, COLUMNS), np.int64),)
    window = np.array([0]), np.array([10]), np.array([0, 1])
    assert kernel(*window, leaves, scans, keys=KEYS, end=20, compiled=True)[0].tolist() == [[10] * KEYS]
    leaves[0][3] = 100
    assert kernel(*window, leaves, scans, keys=KEYS, end=20, compiled=True)[0].tolist() == [[10] * KEYS]
    scans.touch(np.array([3]))
    assert kernel(*window, leaves, scans, keys=KEYS, end=20, compiled=True)[0].tolist() == [[109] * KEYS]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_tree_renews_the_nodes_above_a_slice_that_changed_and_no_others(compiled: bool) -> None:
    """Eight slices of 1; then the store tells of slice 5 alone, though slice 0 has changed behind its back::

    level 3  |--------------- 8 + 9 ---------------|
    level 2  |------- 4 -------|----- 4 + 9 -------|
    level 1  |-- 2 --|-- 2 ----|-- 2 + 9 --|-- 2 --|
    """
    kernel, scans = AssembleKernel("sum_float", Algorithm.FLAT_FAT), Scans()
    leaves = (np.ones((8, 1)),)

    def windows() -> list[float]:
        """All slices, and those from 4 to 6."""
        ranges = np.array([0, 4]), np.array([8, 6]), np.array([0, 2])
        found: list[float] = kernel(*ranges, leaves, scans, keys=1, end=8, compiled=compiled)[0].ravel().tolist()
        return found

    assert windows() == [8.0, 2.0]
    leaves[0][5], leaves[0][0] = 10.0, 100.0
    assert windows() == [8.0, 2.0]
    scans.touch(np.array([5]))
    assert windows() == [17.0, 11.0]
    assert scans.arrays is not None
    assert scans.arrays[0][0][:7, 0].tolist() == [2.0, 2.0, 11.0, 2.0, 4.0, 13.0, 17.0]
    scans.touch(np.array([0]))
    assert windows() == [116.0, 11.0]
