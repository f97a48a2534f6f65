"""Shelves: what waits there once for all stores reads as if each store had got its part at once."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.results import (
    Level,
    QueryResults,
    ResultBatch,
    ResultBundle,
    ResultColumns,
    Schema,
    Shelves,
    Status,
    Targets,
    batches_of,
    shelf,
)

NAMES = ("a", "b", "c")
LEVELS = (Level("10 s", 10, 10), Level("30 s", 30, 30))
#: ``a`` stands there with both of its levels.
TARGETS = Targets(("a", "b", "a", "c"), (0, 0, 1, 0))


def store(name: str, levels: tuple[Level, ...] = LEVELS) -> QueryResults:
    return QueryResults(Schema(name, levels, (), (("v", pa.int64()),)))


def bundle(rows: list[tuple[int, int]], cuts: list[int], targets: Targets = TARGETS) -> ResultBundle:
    """Rows of (start, value); those of target ``i`` are ``cuts[i] .. cuts[i + 1]``."""
    starts, values = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    status, revisions = np.full(len(rows), Status.FINAL, np.int8), np.zeros(len(rows), np.int16)
    columns = ResultColumns(starts, (), (pa.array(values),), status, revisions)
    return ResultBundle(targets, columns, np.array(cuts[:-1]), np.array(cuts[1:]))


def content(results: QueryResults, level: int = 0) -> dict[int, int]:
    table = results.table(level)
    return dict(zip(table["window_start"].cast(pa.int64()).to_pylist(), table["v"].to_pylist(), strict=True))


def on_shelves(stores: dict[str, QueryResults]) -> shelf.Shelf:
    return Shelves().of(TARGETS, lambda name: (stores[name], None) if name in stores else None)


def test_a_bundle_is_a_batch_for_each_target_with_windows() -> None:
    told = bundle([(0, 1), (10, 2), (30, 3)], [0, 2, 2, 3, 3])
    found = [(name, batch.level, batch.own().starts.tolist()) for name, batch in told.batches()]
    assert found == [("a", 0, [0, 10]), ("a", 1, [30])]
    one = ResultBundle.of("b", ResultBatch(1, told.columns, 1, 3))
    assert [(name, batch.level, batch.own().starts.tolist()) for name, batch in batches_of([one])] == [
        ("b", 1, [10, 30])
    ]


ROWS = st.lists(st.tuples(st.integers(0, 5).map(lambda n: 30 * n), st.integers(0, 99)), max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("bundle"), ROWS, st.lists(st.integers(0, 6), min_size=3, max_size=3)),
    st.tuples(st.just("batch"), ROWS, st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["read", "version", "clear", "settle"]), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("close"), st.none(), st.none()),
)


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=14), st.sampled_from([1, 5, 1 << 20]))
def test_stores_read_as_if_each_had_got_its_part_at_once(steps: list[tuple[str, object, object]], held: int) -> None:
    """Any order of bundles, batches past the shelf, reads and changes; shelves that hold little and much."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "_HELD", held)
        stores, plain = ({name: store(name) for name in NAMES} for _ in range(2))
        shelves = Shelves()
        for kind, first, second in steps:
            match kind, first, second:
                case "bundle", list() as rows, list() as cuts:
                    inner = [min(cut, len(rows)) for cut in sorted(cuts)]
                    told = bundle(rows, [0, *inner, len(rows)])
                    shelves.of(TARGETS, lambda name: (stores[name], None)).put(told)
                    for name, batch in told.batches():
                        plain[name].apply([batch])
                case "batch", list() as rows, str() as name:
                    batch = ResultBatch(0, bundle(rows, [0, len(rows)]).columns, 0, len(rows))
                    stores[name].apply([batch])
                    plain[name].apply([batch])
                case "read", str() as name, _:
                    assert content(stores[name]) == content(plain[name])
                case "version", str() as name, _:
                    assert bool(stores[name].version) == bool(plain[name].version)
                case "clear", str() as name, _:
                    stores[name].clear()
                    plain[name].clear()
                case "settle", str() as name, _:
                    stores[name].settle()
                case _:
                    shelves.close()
        for name in NAMES:
            for level in (0, 1):
                assert content(stores[name], level) == content(plain[name], level)


def test_listeners_hear_of_bundles_with_something_for_their_store() -> None:
    stores = {name: store(name) for name in NAMES}
    heard: list[str] = []
    cancels = [stores["a"].subscribe(lambda: heard.append("a"))]
    own = on_shelves(stores)
    cancels.append(stores["b"].subscribe(lambda: heard.append("b")))
    own.put(bundle([(0, 1)], [0, 1, 1, 1, 1]))
    assert heard == ["a"]
    assert [stores[name].version for name in NAMES] == [1, 0, 0]
    own.put(bundle([(0, 1), (0, 2)], [0, 0, 1, 1, 2]))
    assert heard == ["a", "b"]
    for cancel in cancels:
        cancel()
    own.put(bundle([(0, 5), (0, 6)], [0, 1, 2, 2, 2]))
    assert heard == ["a", "b"]
    assert [content(stores[name]) for name in NAMES] == [{0: 5}, {0: 6}, {0: 2}]


def test_what_every_store_has_taken_is_dropped() -> None:
    stores = {name: store(name) for name in NAMES}
    own = on_shelves(stores)
    for value in range(3):
        own.put(bundle([(0, value)] * 4, [0, 1, 2, 3, 4]))
    assert len(own._waiting) == 3
    assert content(stores["a"]) == content(stores["b"]) == {0: 2}
    assert len(own._waiting) == 3
    assert content(stores["c"]) == {0: 2}
    assert (len(own._waiting), own._rows) == (0, 0)


def test_nobodys_targets_and_other_levels_are_left_out() -> None:
    """Levels go by their labels where the writer counts by others than the store."""
    one = store("a", (Level("30 s", 30, 30),))
    own = Shelves().of(TARGETS, lambda name: (one, ("10 s", "30 s")) if name == "a" else None)
    own.put(bundle([(0, 1), (0, 2), (0, 3), (0, 4)], [0, 1, 2, 3, 4]))
    assert content(one) == {0: 3}
    nobody = Shelves().of(TARGETS, lambda name: None)
    nobody.put(bundle([(0, 1)], [0, 1, 1, 1, 1]))
    assert not nobody._waiting


def test_a_level_that_comes_or_goes_meanwhile_changes_no_place() -> None:
    """What waits was put by the levels there were then."""
    one = store("a", LEVELS[:1])
    own = Shelves().of(TARGETS, lambda name: (one, ("10 s", "30 s")) if name == "a" else None)
    own.put(bundle([(0, 1), (0, 2), (0, 3), (0, 4)], [0, 1, 2, 3, 4]))
    one.add_level(Level("5 s", 5, 5), 0)
    assert [content(one, level) for level in (0, 1)] == [{}, {0: 1}]
    own.put(bundle([(10, 7), (0, 2), (0, 3), (0, 4)], [0, 1, 2, 3, 4]))
    one.drop_level(0)
    assert content(one) == {0: 1, 10: 7}


def test_readers_and_the_writer_do_not_disturb_each_other() -> None:
    stores, faults = {name: store(name) for name in NAMES}, []
    own, stop = on_shelves(stores), threading.Event()

    def read(name: str) -> None:
        before = 0
        while not stop.is_set():
            found = content(stores[name])
            if len(found) < before or any(start != value for start, value in found.items()):
                faults.append((name, found))
            before = len(found)

    readers = [threading.Thread(target=read, args=(name,)) for name in ("a", "b", "a")]
    for reader in readers:
        reader.start()
    for start in range(0, 3_000, 10):
        own.put(bundle([(start, start)] * 4, [0, 1, 2, 3, 4]))
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults
    assert all(len(content(each)) == 300 for each in stores.values())
