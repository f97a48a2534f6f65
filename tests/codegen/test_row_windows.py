"""Windows over rows: every kernel against recalculation from the rows of each window."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifting import KINDS, TYPICAL, assert_same, partials_of, recalculated

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen import RowWindows, row_windows
from workbench.codegen.row_windows import Differences, Doubling, Overlaid, Segmented
from workbench.plan import cost


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that short streams reach every corner."""
    monkeypatch.setattr(row_windows, "PIECE", 16)
    monkeypatch.setattr(cost, "PIECE", 16)


def check(kind: PartialKind, kernel: Any, sizes: list[int], fields: tuple[Any, ...], cuts: list[int]) -> None:
    """Push the rows in batches and compare every window of every row."""
    rows = len(fields[0])
    found = tuple(np.empty((len(sizes), rows), field.dtype) for field in fields)
    for low, high in pairwise([0, *sorted(min(cut, rows) for cut in cuts), rows]):
        part = tuple(np.empty((len(sizes), high - low), field.dtype) for field in fields)
        kernel.push(tuple(field[low:high] for field in fields), part)
        for target, piece in zip(found, part, strict=True):
            target[:, low:high] = piece
    for q, size in enumerate(sizes):
        for row in range(rows):
            expected = recalculated(kind, fields, max(0, row + 1 - size), row + 1)
            assert_same(kind, tuple(field[q, row : row + 1] for field in found), expected, f"size {size}, row {row}")


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1_000))
def test_every_window_is_what_its_rows_give(name: str, data: st.DataObject, seed: int) -> None:
    kind = PARTIALS[name]
    fields = partials_of(kind, (data.draw(st.integers(0, 100)),), seed)
    sizes = data.draw(st.lists(st.integers(1, 80), min_size=1, max_size=5))
    check(kind, RowWindows(name, sizes), sizes, fields, data.draw(st.lists(st.integers(0, 100), max_size=4)))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1_000))
def test_every_kernel_alone(name: str, data: st.DataObject, seed: int) -> None:
    """Whatever the choice would be: stacks for counts, doubling for long windows."""
    kind = PARTIALS[name]
    fields = partials_of(kind, (data.draw(st.integers(0, 90)),), seed)
    sizes = data.draw(st.lists(st.integers(2, 70), min_size=1, max_size=4))
    chunk = data.draw(st.integers(2, min(sizes)))
    check(kind, Overlaid(kind, sizes, kind.dtypes, chunk=chunk), sizes, fields, [17, 40])
    check(kind, Doubling(kind, sizes, kind.dtypes), sizes, fields, [17, 40])
    check(kind, Segmented(kind, sizes[:1], kind.dtypes), sizes[:1], fields, [1, 17, 40])


def test_segments_are_chosen_for_one_window_of_hundreds_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows are added up from powers of two, several windows share the scans of one chunk."""
    monkeypatch.undo()
    kind = PARTIALS["sum_float"]
    chosen = {size: cost.over_rows(kind, [size], cost.BUILT_IN)[0].method for size in (16, 256, 5000)}
    assert chosen == {16: "doubling", 256: "segmented", 5000: "overlaid"}
    assert [part.method for part in cost.over_rows(kind, [300, 400, 500], cost.BUILT_IN)] == ["overlaid"]
    with pytest.raises(ValueError, match="segments are those of one window"):
        Segmented(kind, [2, 3], kind.dtypes)


def test_long_windows_over_random_data_as_published_code_gets_them_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several minima over thousands of random rows: an early exit while flipping would show here."""
    monkeypatch.undo()
    values = np.random.default_rng(3).integers(-(2**31), 2**31, 9_000).astype(np.int32)
    sizes = [1, 2, 100, 257, 700, 2048, 2049, 4096, 5000]
    found = RowWindows("min_int", sizes, [np.int32]).push((values,))[0]
    for q, size in enumerate(sizes):
        padded = np.concatenate([np.full(size - 1, 2**31 - 1, np.int32), values])
        expected = np.lib.stride_tricks.sliding_window_view(padded, size).min(axis=1)
        np.testing.assert_array_equal(found[q], expected)


@pytest.mark.parametrize("name", [name for name in TYPICAL if not PARTIALS[name].group])
def test_a_monoid_without_inverse_has_no_differences(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` has no exact inverse"):
        Differences(PARTIALS[name], [3], PARTIALS[name].dtypes)


def test_arrays_of_arrow_are_compiled_for_once() -> None:
    """They are read-only, which is another type for numba."""
    windows = RowWindows("count", [3])
    values = np.arange(20)
    first = windows.push((values,))[0].copy()
    compiled: Any = windows.kernels[0].compiled
    signatures = list(compiled.signatures)
    values.flags.writeable = False
    again = RowWindows("count", [3])
    np.testing.assert_array_equal(again.push((values,))[0], first)
    again.push((values[::2],))
    assert again.kernels[0].compiled is compiled
    assert compiled.signatures == signatures


@pytest.mark.parametrize("sizes", [[], [0], [3, -1]])
def test_windows_without_rows_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="a window has at least 1 row"):
        RowWindows("count", sizes)


def test_nothing_of_a_row_stays_after_its_windows() -> None:
    """Cases N1, N3, N4 and N10: windows of zeros are 0 exactly, whatever was before them."""
    values = [2.06, 1e90, 0.888889, np.inf, np.nan, *[0.0] * 90]
    for size in (2, 7, 60):
        found = RowWindows("sum_float", [size]).push((np.array(values),))[0][0]
        assert (found[5 + size - 1 :] == 0).all()


def test_narrow_integers_wrap_and_come_back() -> None:
    """A window whose own sum fits is exact in 32 bits, though the sums of all rows before are far beyond them."""
    values = np.tile(np.array([2**30, -(2**30)], np.int32), 250) + np.int32(5)
    found = RowWindows("count", [1, 2], [np.int32]).push((values,))[0]
    assert (found[0] == values).all()
    assert (found[1, 1:] == 10).all()
