"""The contract beside the results: what is refused, and what the flags of a monoid stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_algorithms import CASES, MATRIX

from workbench.algebra import PARTIALS
from workbench.algebra.monoids import MOST_FIELDS, monoid_of
from workbench.kernels.fifo.catalogue import ALGORITHMS
from workbench.kernels.fifo.interface import copy, drive
from workbench.kernels.fifo.monoids import Group, Selective
from workbench.kernels.jit import assemble

REFUSED = [(algorithm, name) for algorithm in ALGORITHMS for name in CASES if (algorithm, name) not in MATRIX]


@pytest.mark.parametrize(("algorithm", "name"), REFUSED)
def test_an_algorithm_refuses_what_it_cannot_do(algorithm: str, name: str) -> None:
    with pytest.raises(TypeError, match=rf"`{algorithm}` needs a (group|selective monoid), but `{name}` is a "):
        ALGORITHMS[algorithm].make(CASES[name].monoid, (3,))


def test_subtract_on_evict_with_max_does_not_build() -> None:
    with pytest.raises(TypeError) as raised:
        ALGORITHMS["subtract_on_evict"].make(CASES["max_int"].monoid, (3,))
    assert str(raised.value) == (
        "`subtract_on_evict` needs a group, but `max_int` is a selective monoid: it takes what leaves a window "
        "out of the total again, which only an `invert` can do exactly; hint: `two_stacks_lite` needs no inverse"
    )


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if isinstance(case.monoid, Selective)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_selective_monoids_select(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    a, b = (case.lift(data.draw(case.values)) for _ in range(2))
    np.testing.assert_equal(case.monoid.combine(a, case.monoid.identity), a)
    np.testing.assert_equal(case.monoid.combine(case.monoid.identity, a), a)
    found = case.monoid.combine(a, b)
    assert any(all(x == y or (x != x and y != y) for x, y in zip(found, one, strict=True)) for one in (a, b))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_maps_are_a_group(data: st.DataObject) -> None:
    group = CASES["maps"].monoid
    assert isinstance(group, Group)
    a, b, c = (data.draw(CASES["maps"].values) for _ in range(3))
    assert group.combine(group.combine(a, b), c) == group.combine(a, group.combine(b, c))
    assert group.invert(group.combine(a, b), a) == b


def test_other_windows_over_an_equal_monoid_need_no_compilation() -> None:
    kind, make = PARTIALS["sum_int"], ALGORITHMS["flat_fat"].make
    assert make(monoid_of(kind), (3,)).functions is make(monoid_of(kind), (5, 90)).functions


def test_kinds_are_the_most_they_can_be() -> None:
    small = {name: kind for name, kind in PARTIALS.items() if kind.compiled and len(kind.fields) <= MOST_FIELDS}
    found = {name: type(monoid_of(kind)) for name, kind in small.items()}
    assert {name for name in found if found[name] is Group} == {"count", "sum_int"}
    assert {name for name in found if found[name] is Selective} == {"min_float", "max_float", "min_int", "max_int"}


@pytest.mark.parametrize("name", ["min_text", "comoments"])
def test_objects_and_many_fields_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"expected a partial of 1 to 4 numbers, `{name}` has"):
        monoid_of(PARTIALS[name])


def test_the_maps_and_matrices_do_not_commute() -> None:
    maps, matrices = CASES["maps"].monoid, CASES["matrices"].monoid
    assert maps.combine((2, 0), (1, 1)) != maps.combine((1, 1), (2, 0))
    assert matrices.combine((1, 1, 0, 1), (1, 0, 1, 1)) != matrices.combine((1, 0, 1, 1), (1, 1, 0, 1))


@pytest.mark.parametrize("sizes", [(), (0,), (-1, 3), (3, 2)])
def test_sizes_are_positive_and_ascending(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected positive numbers in ascending order"):
        ALGORITHMS["flat_fat"].make(CASES["count"].monoid, sizes)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_the_windows_it_was_made_for(algorithm: str) -> None:
    make, needs = ALGORITHMS[algorithm]
    name = next(name for name in ("min_int", "count") if isinstance(CASES[name].monoid, needs))
    made = make(CASES[name].monoid, (3, 8))
    with pytest.raises(ValueError, match="no window of this size"):
        made.query(made.state, 5)
    with pytest.raises(IndexError, match="empty window"):
        made.evict(made.state)


def test_kernels_may_call_the_functions() -> None:
    """Insert, evict and query in a kernel of one's own, errors included."""
    made = ALGORITHMS["two_stacks_lite"].make(CASES["min_int"].monoid, (2, 3))
    insert, evict, query = made.insert, made.evict, made.query

    def play(state: Any, size: int, evictions: int) -> Any:
        for value in (4, 1, 2, 3):
            insert(state, (value,))
        for _ in range(evictions):
            evict(state)
        return query(state, size)

    compiled = assemble(play)
    fresh = copy(made.state)
    assert compiled(copy(fresh), 3, 0) == (1,)
    assert compiled(copy(fresh), 2, 0) == compiled(copy(fresh), 3, 1) == (2,)
    with pytest.raises(IndexError, match="empty window"):
        compiled(copy(fresh), 3, 4)
    with pytest.raises(ValueError, match="no window of this size"):
        compiled(copy(fresh), 4, 0)


def test_lifted_values_of_another_type_are_converted() -> None:
    """An int32 column with windows over int64."""
    made = ALGORITHMS["two_stacks_lite"].make(CASES["min_int"].monoid, (2,))
    assert drive(made, (np.array([3, 5, 4], np.int32),))[0].tolist() == [[3, 3, 4]]
