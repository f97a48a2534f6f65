"""Windows over rows: every kernel against recalculation from the rows of each window."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algebra import PARTIALS, PartialKind
from workbench.codegen import row_windows
from workbench.codegen.row_windows import Differences, Doubling, Overlaid, RowWindows
from workbench.plan import cost

GROUPS = [name for name, kind in PARTIALS.items() if kind.invert is not None]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 1e90, -1e90]


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that short streams reach every corner."""
    monkeypatch.setattr(row_windows, "PIECE", 16)
    monkeypatch.setattr(cost, "PIECE", 16)


def lifted(kind: PartialKind, values: list[float]) -> tuple[Any, ...]:
    """The partials of single rows."""
    column = np.array(values, kind.input or "float64")
    with np.errstate(all="ignore"):
        fields = kind.lift(column)
    return tuple(np.ascontiguousarray(field, spec.dtype) for field, spec in zip(fields, kind.fields, strict=True))


def recalculated(kind: PartialKind, fields: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    """For every row, the combination of the last ``size`` rows, left to right."""
    answers = []
    for end in range(1, len(fields[0]) + 1):
        total = tuple(np.array(f.identity, f.dtype) for f in kind.fields)
        for row in range(max(0, end - size), end):
            with np.errstate(all="ignore"):
                total = kind.combine(*total, *(field[row] for field in fields))
        answers.append(total)
    return answers


def check(kind: PartialKind, kernel: Any, sizes: list[int], values: list[float], cuts: list[int]) -> None:
    fields = lifted(kind, values)
    shape = (len(sizes), len(values))
    out = tuple(np.empty(shape, field.dtype) for field in fields)
    for low, high in pairwise([0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]):
        part = tuple(np.empty((len(sizes), high - low), field.dtype) for field in fields)
        kernel.push(tuple(field[low:high] for field in fields), part)
        for target, piece in zip(out, part, strict=True):
            target[:, low:high] = piece
    for q, size in enumerate(sizes):
        for row, expected in enumerate(recalculated(kind, fields, size)):
            for found, value in zip(out, expected, strict=True):
                exact = found.dtype.kind != "f"
                np.testing.assert_allclose(
                    found[q, row],
                    value,
                    rtol=0 if exact else 1e-9,
                    atol=0 if exact else 1e-9,
                    err_msg=f"{size}, {row}",
                )


def numbers(kind: PartialKind) -> st.SearchStrategy[float]:
    small = st.integers(-50, 50)
    if kind.input == "float64":
        return st.one_of(small.map(lambda n: n / 8), st.sampled_from(SPECIAL))
    return st.one_of(small, st.sampled_from([2**63 - 1, -(2**63)])) if kind.input else st.just(1)


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_window_is_what_its_rows_give(name: str, data: st.DataObject) -> None:
    kind = PARTIALS[name]
    values = data.draw(st.lists(numbers(kind), max_size=150))
    sizes = data.draw(st.lists(st.integers(1, 80), min_size=1, max_size=5))
    cuts = data.draw(st.lists(st.integers(0, 150), max_size=4))
    if name == "moments":  # 1e90 in a variance is inf in one order of combines and NaN in another
        values = [value for value in values if abs(value) != 1e90]
    check(kind, RowWindows(name, sizes), sizes, values, cuts)


@pytest.mark.parametrize("name", sorted(PARTIALS))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_kernel_alone(name: str, data: st.DataObject) -> None:
    """Whatever the choice would be: stacks for counts, doubling for long windows."""
    kind = PARTIALS[name]
    dtypes = [field.dtype for field in kind.fields]
    values = data.draw(st.lists(numbers(kind).filter(lambda value: abs(value) != 1e90), max_size=120))
    sizes = data.draw(st.lists(st.integers(2, 70), min_size=1, max_size=4))
    chunk = data.draw(st.integers(2, min(sizes)))
    check(kind, Overlaid(kind, sizes, dtypes, chunk), sizes, values, [17, 40])
    check(kind, Doubling(kind, sizes, dtypes), sizes, values, [17, 40])


@pytest.mark.parametrize("name", sorted(set(PARTIALS) - set(GROUPS)))
def test_a_monoid_without_inverse_has_no_differences(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` has no exact inverse"):
        Differences(PARTIALS[name], [3], [field.dtype for field in PARTIALS[name].fields])


def test_nothing_of_a_row_stays_after_its_windows() -> None:
    """Cases N1, N3, N4 and N10: windows of zeros are 0 exactly, whatever was before them."""
    values = [2.06, 1e90, 0.888889, np.inf, np.nan, *[0.0] * 90]
    for size in (2, 7, 60):
        found = RowWindows("sum_float", [size]).push((np.array(values),))[0][0]
        assert (found[5 + size - 1 :] == 0).all()


def test_narrow_integers_wrap_and_come_back() -> None:
    """A window whose own sum fits is exact in 32 bits, though the prefix sums are far beyond them."""
    values = np.full(500, 2**30, np.int32)
    found = RowWindows("count", [1], [np.int32]).push((values,))[0][0]
    assert (found == 2**30).all()
