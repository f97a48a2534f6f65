"""Programs of signals against their definition: random expressions, rows, cuts of time."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from temporal.programs import (
    SECOND,
    Drawn,
    arrow,
    computed,
    expected,
    expressions,
    interpreted,
    listed,
    near,
    rows_of,
)

from workbench.codegen import signals as codegen
from workbench.errors import EngineError, QueryError
from workbench.runtime import wire
from workbench.runtime.signal_stream import SignalStream
from workbench.temporal import Expression, Program, program, signal


def drawn_program(outputs: list[Expression], every: int | None) -> Program:
    """The program of some expressions, of those that there can be."""
    try:
        return program({f"o{n}": each for n, each in enumerate(outputs)}, every)
    except QueryError:
        reject()  # windows over what is still to come; test_boundaries has what is refused


def same(found: list[Any], wanted: list[Any]) -> None:
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    for (key, time, mine), (_, _, its) in zip(found, wanted, strict=True):
        assert all(map(near, mine, its)), (key, time, mine, its)


def store(stream: SignalStream, blocks: dict[int, bytes]) -> bytes:
    """Bring the blocks of a stream up to date; the head of its state."""
    changes = stream.changes()
    for block in changes.remove:
        del blocks[block]
    assert not blocks.keys() & changes.put.keys()
    blocks |= changes.put
    return changes.meta


@settings(max_examples=200)
@given(st.data())
def test_random_programs_equal_their_definition(data: st.DataObject) -> None:
    """One or two sources, a domain by rows or by time, time cut into pieces of few points."""
    names = data.draw(st.sampled_from([("rows",), ("a", "b")]))
    outputs = data.draw(st.lists(expressions(names), min_size=1, max_size=2))
    every = data.draw(st.none() | st.sampled_from([SECOND, 700_000]))
    made = drawn_program(outputs, every)
    keys = data.draw(st.integers(1, 2))
    drawn = {name: data.draw(rows_of(keys)) for name in made.sources}
    wanted = expected(made, drawn, keys)
    same(listed(computed(made, drawn, keys, cut=data.draw(st.integers(1, 5)), threads=1)), wanted)
    span = tuple(sorted(data.draw(st.tuples(st.integers(-70, 130), st.integers(-70, 130)))))
    low, high = (bound * SECOND // 10 for bound in span)
    part = computed(made, drawn, keys, cut=data.draw(st.integers(1, 5)), threads=1, span=(low, high))
    same(listed(part), [row for row in wanted if low < row[1] <= high])


@settings(max_examples=100)
@given(st.data())
def test_a_stream_gives_the_points_of_the_whole_table(data: st.DataObject) -> None:
    """Rows in batches, out of order within the delay: each point once, as if all rows had been there.

    Now and then the stream is stored, and another one goes on from that.
    """
    names = data.draw(st.sampled_from([("rows",), ("a", "b")]))
    outputs = data.draw(st.lists(expressions(names), min_size=1, max_size=2))
    every = data.draw(st.none() | st.sampled_from([SECOND, 700_000]))
    made = drawn_program(outputs, every)
    keys = data.draw(st.integers(1, 2))
    drawn = {name: data.draw(rows_of(keys)) for name in made.sources}
    delay = data.draw(st.integers(0, 40))
    flat = [
        (name, (key, *row))
        for name, own in drawn.items()
        for key, run in own.items()
        for row in sorted(run, key=lambda row: row[0])
    ]
    # At most `delay` behind: sorted by a time that is off by less.
    offsets = data.draw(st.lists(st.integers(0, delay), min_size=len(flat), max_size=len(flat)))
    arrived = [flat[n] for n in sorted(range(len(flat)), key=lambda n: (flat[n][1][1] + offsets[n], n))]

    def batch(rows: list[tuple[str, tuple[Any, ...]]]) -> Any:
        """Rows by source, sources without one sometimes among them; the only source as it is."""
        own = {name: [row for of, row in rows if of == name] for name in made.sources}
        if len(own) == 1:
            return arrow(own[made.at])
        return {name: arrow(each) for name, each in own.items() if each or data.draw(st.booleans())}

    stream, left = SignalStream(made, "ts", ["key"], delay * SECOND // 10), list(arrived)
    with mock.patch.object(codegen, "load", interpreted):
        found, blocks = [stream.push({name: arrow([]) for name in made.sources})], dict[int, bytes]()
        while left:
            count = data.draw(st.integers(1, len(left)))
            found += [stream.push(batch(left[:count])), stream.push({})]
            left = left[count:]
            if data.draw(st.booleans()):
                meta, stream = store(stream, blocks), SignalStream(made, "ts", ["key"], delay * SECOND // 10)
                stream.load(meta, blocks.values())
        found.append(stream.finish())
    assert stream.late == 0
    # Rows of one time count in the order of arrival.
    sources: dict[str, Drawn] = {name: {key: [] for key in own} for name, own in drawn.items()}
    for name, (key, *row) in arrived:
        sources[name][key].append((row[0], row[1], row[2]))
    got = sorted(
        (
            (row["key"], row["ts"], [row[name] for name in made.outputs])
            for table in found
            for row in table.set_column(1, "ts", table.column("ts").cast(pa.int64())).to_pylist()
        ),
        key=lambda row: row[:2],
    )
    same(got, expected(made, sources, keys))


def test_a_window_over_a_shifted_column_counts_what_is_there() -> None:
    """By hand: 2 at 0 s and 3 at 2 s, a second later each; at 0 s there is nothing yet."""
    moved = signal("x").shift("1 second").window("3 seconds")
    made = program({"n": moved.count(), "sum": moved.sum()}, SECOND)
    with mock.patch.object(codegen, "load", interpreted):
        found = listed(computed(made, {"rows": {0: [(0, 2.0, None), (20, 3.0, None)]}}, 1, cut=5, threads=1))
    # At 1 s and 2 s the first value holds, so three points have it in the end.
    assert [row[2] for row in found] == [[0.0, None], [1.0, 2.0], [2.0, 4.0]]


def test_what_is_stored_stays_near_what_is_kept() -> None:
    """Pushes of ten rows, and now and then one of a second key: few blocks, few of them written again."""
    made = program({"sum": signal("x").window("20 seconds").sum()}, None)
    stream, blocks, written, rows = SignalStream(made, "ts", ["key"]), dict[int, bytes](), 0, 0
    with mock.patch.object(codegen, "load", interpreted):
        for push in range(300):
            drawn = [(0, 10 * push + n, 1.0, None) for n in range(10)]
            drawn += [(1, 10 * push, 1.0, None)] if push % 50 == 0 else []
            stream.push(arrow(drawn))
            before = set(blocks)
            store(stream, blocks)
            written += sum(_rows(blocks[new]) for new in blocks.keys() - before)
            rows += len(drawn)
            assert len(blocks) <= 17
            assert sum(map(_rows, blocks.values())) <= 2 * stream.kept
    assert stream.kept < 250
    assert written < 4 * rows


def _rows(block: bytes) -> int:
    return len(wire.unpack(wire.Kind.SIGNALS_BLOCK, block)[1][0])


def test_the_state_of_another_program_is_refused() -> None:
    sums, counts = (
        program({"x": getattr(signal("x").window("2 seconds"), name)()}, None) for name in ("sum", "count")
    )
    stream = SignalStream(sums, "ts", ["key"])
    with mock.patch.object(codegen, "load", interpreted):
        stream.push(arrow([]))
    with pytest.raises(EngineError, match="another program of signals"):
        SignalStream(counts, "ts", ["key"]).load(stream.changes().meta, [])
