"""The generalized aggregation graph: *LightSaber* Figures 7, 8 (a - f) and 9, and that graphs compute what they say.

A golden is the printed form; what it must show stands in the paper's text: which nodes are required, what is left
after the sweep, which edges are lazy, and the numbers of Fig. 9.
"""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.codegen.listing import listing
from workbench.plan.gag import (
    Algorithm,
    Graph,
    Strategy,
    algorithm_of,
    evaluate,
    initial,
    mark,
    overlay,
    results,
    schedule,
    specialise,
    strategies,
    sweep,
)

GOLDENS = Path(__file__).parent / "gag"
SINGLE = initial(4, [4])
STACKS = specialise([4], Strategy.STACKS)
FIGURES = {
    "figure_7": lambda: str(SINGLE),
    "figure_8a": lambda: str(mark(SINGLE, Strategy.ROOT)),
    "figure_8b": lambda: str(sweep(mark(SINGLE, Strategy.ROOT))),
    "figure_8c": lambda: listing(specialise([4], Strategy.ROOT)),
    "figure_8d": lambda: str(mark(SINGLE, Strategy.STACKS)),
    "figure_8e": lambda: str(STACKS),
    "figure_8f": lambda: listing(STACKS),
    "figure_9_time_0": lambda: str(results(specialise([3, 4], Strategy.PREFIXES), 3)),
    "figure_9_time_1": lambda: str(results(specialise([3, 4], Strategy.PREFIXES), 0)),
    "slide_side": lambda: str(specialise([3, 4], Strategy.STACKS)),
    "slide_side_overlay": lambda: overlay(specialise([3, 4], Strategy.STACKS)),
    "slide_side_loop": lambda: listing(specialise([3, 4], Strategy.STACKS)),
    "slide_side_inv_loop": lambda: listing(specialise([3, 4], Strategy.PREFIXES)),
    "slick_deque": lambda: str(specialise([4], Strategy.DEQUE)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure_has_its_printed_form(name: str) -> None:
    path = GOLDENS / f"{name}.txt"
    text = FIGURES[name]()
    if os.environ.get("WINQUERY_UPDATE_GOLDENS"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def names(graph: Graph, role: str) -> list[str]:
    return [node.name for node in graph.role(role)]


def test_figure_8_as_the_text_describes_it() -> None:
    """§5.2: of a group only the root stays, one node; of a monoid all suffixes and the root, its edges lazy."""
    group = sweep(mark(SINGLE, Strategy.ROOT))
    assert [node.name for node in group.nodes if node.role != "a"] == ["ps3"]
    assert group.role("ps")[0].inputs == ("a0", "a1", "a2", "a3")
    assert names(STACKS, "ss") == ["ss0", "ss1", "ss2", "ss3"]
    assert names(STACKS, "ps") == ["ps3"]
    assert STACKS.lazy == {"ss0", "ss1", "ss2", "ss3"}
    assert STACKS.trigger == 4
    assert group.trigger is None


def test_figure_9_has_the_numbers_of_the_paper() -> None:
    """Time 0: 3, 4, 2, 8 are there, Q1 (3 elements) is 14 and Q2 (4) is 17. Time 1: 5 has come, 15 and 19."""
    graph = specialise([3, 4], Strategy.PREFIXES)
    before = {"a0": 3, "a1": 4, "a2": 2, "a3": 8}
    found = evaluate(results(graph, 3), before, operator.add, operator.sub)
    assert (found["q1"], found["q2"]) == (14, 17)
    # The suffixes are those of the trigger point, before 5 took the place of 3; the prefixes begin anew with 5.
    suffixes = {name: value for name, value in found.items() if name.startswith("ss")}
    after = evaluate(results(graph, 0), {**before, "a0": 5, **suffixes}, operator.add, operator.sub)
    assert (after["q1"], after["q2"]) == (15, 19)


@pytest.mark.parametrize(
    ("windows", "strategy", "expected"),
    [
        ([4], Strategy.ROOT, Algorithm.SUBTRACT_ON_EVICT),
        ([4], Strategy.STACKS, Algorithm.TWO_STACKS),
        ([4], Strategy.DEQUE, Algorithm.SLICK_DEQUE),
        ([3, 4], Strategy.ROOT, Algorithm.SLICK_DEQUE_INV),
        ([3, 4], Strategy.PREFIXES, Algorithm.SLIDE_SIDE_INV),
        ([3, 4], Strategy.STACKS, Algorithm.SLIDE_SIDE),
        ([2, 5, 9], Strategy.DEQUE, Algorithm.SLICK_DEQUE),
    ],
)
def test_a_specialised_graph_is_the_known_algorithm(
    windows: list[int], strategy: Strategy, expected: Algorithm
) -> None:
    assert algorithm_of(specialise(windows, strategy)) is expected


def test_what_a_monoid_may_become() -> None:
    assert strategies(group=False, selective=False) == (Strategy.STACKS,)
    assert Strategy.DEQUE in strategies(group=False, selective=True)
    assert {Strategy.ROOT, Strategy.PREFIXES} <= set(strategies(group=True, selective=False))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=2), min_size=1, max_size=8))
def test_marking_and_sweeping_change_no_value(values: list[str]) -> None:
    """Concatenation does not commute, so the order of the inputs is tested as well."""
    elements: dict[str, Any] = {f"a{i}": value for i, value in enumerate(values)}
    whole = evaluate(initial(len(values), [len(values)]), elements, operator.add)
    for strategy in Strategy:
        graph = schedule(sweep(mark(initial(len(values), [len(values)]), strategy)), strategy)
        for name, value in evaluate(graph, elements, operator.add).items():
            assert value == whole[name]
    assert whole[f"ps{len(values) - 1}"] == whole["ss0"] == "".join(values)


LOOPS = [(s, w) for s in (Strategy.ROOT, Strategy.PREFIXES, Strategy.STACKS) for w in ([1], [4], [3, 4], [1, 2, 7])]


@pytest.mark.parametrize(("strategy", "windows"), LOOPS)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-9, 9), max_size=40))
def test_the_printed_loops_compute_the_windows(strategy: Strategy, windows: list[int], elements: list[int]) -> None:
    if strategy is Strategy.PREFIXES and len(windows) == 1:
        windows = [*windows, windows[0] + 1]
    emitted: list[tuple[int, int]] = []
    program = compile(listing(specialise(windows, strategy)), "listing", "exec")
    exec(program, {"elements": elements, "identity": 0, "emit": lambda *pair: emitted.append(pair)})
    expected = [
        (number, sum(elements[max(0, i + 1 - size) : i + 1]))
        for i in range(len(elements))
        for number, size in enumerate(windows, start=1)
    ]
    assert emitted == expected


def test_bad_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="windows of 1 to 4 elements, got \\[5\\]"):
        initial(4, [5])
    with pytest.raises(TypeError, match="`q1` takes one partial from another"):
        evaluate(results(specialise([3, 4], Strategy.PREFIXES), 3), {f"a{i}": 1 for i in range(4)}, min)
    with pytest.raises(ValueError, match="no loop over fixed nodes"):
        listing(specialise([4], Strategy.DEQUE))
