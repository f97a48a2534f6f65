"""Where results go: stores by way of shelves and past them, sinks, and what becomes of them when outlets change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from workbench.results import Level, QueryResults, ResultBatch, ResultBundle, ResultColumns, Schema, Status, Targets
from workbench.runtime.wire import Report, decode_report, encode_report
from workbench.session.outlets import Delivery, Outlet, Outlets, Turn

NAMES = tuple(f"q{number}" for number in range(10))
LABELS = ["10 s", "30 s"]


class Written:
    """A sink that keeps what it gets: run, batch, and start and value of each result."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, list[tuple[int, int]]]] = []

    def write(self, run: int, batch: int, results: list[ResultBatch], labels: list[str]) -> None:
        assert labels == LABELS
        owns = [each.own() for each in results]
        rows = [row for own in owns for row in zip(own.starts.tolist(), own.values[0].to_pylist(), strict=True)]
        self.told.append((run, batch, rows))

    def fill(self, run: int, kept: pa.Table) -> None:
        raise AssertionError("nobody attaches it here")


def outlets(labels: dict[int, list[str]] | None = None) -> Outlets:
    levels = tuple(Level(label, int(label[:2]), int(label[:2])) for label in LABELS)
    schema = Schema("q", levels, (), (("v", pa.int64()),))
    return {name: Outlet(QueryResults(schema), dict(labels or {0: LABELS})) for name in NAMES}


def report(rows: list[tuple[int, int]], *, plan: int = 1, names: tuple[str, ...] = NAMES, **facts: Any) -> Report:
    """As it comes from a bucket: the same rows for all queries at their first level, as one bundle."""
    starts, values = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    status = np.full(len(rows), Status.FINAL, np.int8)
    columns = ResultColumns(starts, (), (pa.array(values),), status, np.zeros(len(rows), np.int16))
    lows = np.zeros(len(names), np.int64)
    bundles = [ResultBundle(Targets(names, (0,) * len(names)), columns, lows, lows + len(rows))]
    told: dict[str, Any] = {"rows": 1, "ahead": 0, "watermark": 0, "max_event": 0, "late": {}, "slices": 0}
    told |= {"tuples": 0, "state_bytes": 0, "finished": False, "plan": plan} | facts
    return decode_report(encode_report(Report(**told, bundles=bundles)))


def content(outlet: Outlet) -> dict[int, int]:
    table = outlet.store.table(0)
    return dict(zip(table["window_start"].cast(pa.int64()).to_pylist(), table["v"].to_pylist(), strict=True))


def test_bundles_of_many_and_of_few_reach_their_stores_in_order() -> None:
    there = outlets()
    deliver = Delivery(there, 1, Turn())
    deliver([report([(0, 1), (10, 2)]), report([(20, 3)])])
    deliver([report([(0, 4)], names=NAMES[:2]), report([(0, 5)], names=NAMES[1:2])])
    deliver([report([(10, 6)])])
    assert content(there["q0"]) == {0: 4, 10: 6, 20: 3}
    assert content(there["q1"]) == {0: 5, 10: 6, 20: 3}
    assert content(there["q9"]) == {0: 1, 10: 6, 20: 3}


def test_a_sink_gets_what_a_micro_batch_has_in_one_piece_and_the_others_their_part() -> None:
    there, sink = outlets(), Written()
    deliver = Delivery(there, 3, Turn())
    deliver([report([(0, 1)])])
    there["q4"].sinks.append(sink)
    deliver([report([(10, 2)], batch=7), report([(20, 3)], batch=7)])
    deliver([report([(30, 4)], batch=8)])
    # `batch` does not travel: the host puts it in.
    assert [(run, rows) for run, _, rows in sink.told] == [(3, [(10, 2), (20, 3)]), (3, [(30, 4)])]
    assert all(content(there[name]) == {0: 1, 10: 2, 20: 3, 30: 4} for name in NAMES)


def test_a_query_that_goes_keeps_what_it_had_and_a_new_one_of_its_name_begins_with_its_plan() -> None:
    there = outlets()
    deliver = Delivery(there, 1, Turn())
    deliver([report([(0, 1)])])
    gone = there.pop("q3")
    deliver([report([(10, 2)])])
    assert content(gone) == {0: 1}
    there["q3"] = outlets({2: LABELS})["q3"]
    deliver([report([(20, 3)]), report([(30, 4)], plan=2)])
    assert content(there["q3"]) == {30: 4}, "results of the older plan are not for it"
    assert content(there["q2"]) == {0: 1, 10: 2, 20: 3, 30: 4}


def test_levels_of_a_newer_plan_go_by_their_labels() -> None:
    there = outlets({0: ["30 s", "10 s"]})
    deliver = Delivery(there, 1, Turn())
    deliver([report([(0, 1)])])
    for name in NAMES:
        there[name].labels[2] = LABELS
    deliver([report([(30, 2)]), report([(60, 3)], plan=2)])
    found = there["q5"].store.table()
    starts = found["window_start"].cast(pa.int64()).to_pylist()
    assert list(zip(found["level"].to_pylist(), starts, found["v"].to_pylist(), strict=True)) == [
        ("10 s", 60, 3),
        ("30 s", 0, 1),
        ("30 s", 30, 2),
    ]


def test_after_its_end_a_run_leaves_nothing_on_the_way() -> None:
    there = outlets()
    first, second = (Delivery(there, run, Turn()) for run in (1, 2))
    first([report([(0, 1)])])
    first.close()
    second([report([(0, 2)])])
    assert all(len(outlet.store._shelves) == 1 for outlet in there.values())
    first([report([(10, 9)])])  # a last word of the older plan
    assert all(content(outlet) == {0: 2, 10: 9} for outlet in there.values())
