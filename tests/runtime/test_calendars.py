"""Calendar windows where calendars and clocks are odd: far years, days that a zone left out, no midnight."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from workbench.errors import QueryError
from workbench.language import parse_queries
from workbench.logical import Calendar, Stream, Workload
from workbench.plan import compile_workload, grid_of
from workbench.runtime.engine import Engine

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC"))])


def told(form: str, *times: str) -> list[tuple[str, str, int]]:
    """The days of start and end, and the number of rows, of all windows at the end of the stream."""
    stream = Stream("s", SCHEMA, "ts", 0)
    (query,) = parse_queries(f"SELECT count(*) AS n FROM s GROUP BY {form}", {"s": stream}, name="q")
    table = pa.table([pa.array(np.array(times, "M8[us]")).cast(SCHEMA[0].type)], schema=SCHEMA)
    results = Engine(compile_workload(Workload(stream, (query,)))).run([table])["q"].table()
    start, end = (
        results[side].cast(pa.timestamp("us")).to_numpy().astype(str) for side in ("window_start", "window_end")
    )
    assert set(results["status"].to_pylist()) == {"final"}
    return list(zip(start, end, results["n"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("unit", "first", "last"),
    [
        ("day", ("0001-01-01", "0001-01-02"), ("9999-12-31", "10000-01-01")),
        # The first of January 1 is a Monday, the last of December 9999 a Friday.
        ("week", ("0001-01-01", "0001-01-08"), ("9999-12-27", "10000-01-03")),
        ("month", ("0001-01-01", "0001-02-01"), ("9999-12-01", "10000-01-01")),
        ("quarter", ("0001-01-01", "0001-04-01"), ("9999-10-01", "10000-01-01")),
        ("year", ("0001-01-01", "0002-01-01"), ("9999-01-01", "10000-01-01")),
        ("100 years", ("-030-01-01", "0070-01-01"), ("9970-01-01", "10070-01-01")),
    ],
)
def test_rows_of_the_first_and_the_last_year(unit: str, first: tuple[str, str], last: tuple[str, str]) -> None:
    """9999-12-31 is what many tables write for *never*: such rows were in no window, and told nowhere."""
    times = ("0001-01-01T05:00:00", "2024-02-29T05:00:00", "9999-12-31T05:00:00")
    one, leap, other = told(f"calendar_window(ts, '{unit}')", *times)
    midnight = "T00:00:00.000000"
    assert one == (first[0] + midnight, first[1] + midnight, 1)
    assert (leap[0][:19] <= times[1] < leap[1][:19], leap[2]) == (True, 1)
    assert other == (last[0] + midnight, last[1] + midnight, 1)


def test_milliseconds_taken_for_seconds_are_in_a_window_of_their_year() -> None:
    """The year 56000, in which a clock still changes."""
    ((start, end, n),) = told("calendar_window(ts, 'day', 'Europe/Berlin')", "56000-07-01T00:00:00")
    # 56000 is 2000 and 135 times 400 years: in July midnight is 22 o'clock, UTC.
    assert (start, end, n) == ("56000-06-30T22:00:00.000000", "56000-07-01T22:00:00.000000", 1)


def test_one_row_far_away_does_not_make_all_days_up_to_it_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three million days took half a minute."""
    grid, asked = grid_of(Calendar("day")), []
    start = grid._start  # type: ignore[attr-defined]
    monkeypatch.setattr(grid, "_start", lambda number: asked.append(number) or start(number))
    found = told("calendar_window(ts, 'day')", "2013-01-01T05:00:00", "9999-12-31T05:00:00", "2013-01-01T06:00:00")
    assert [n for *_, n in found] == [2, 1]
    assert len(asked) < 3_000


@pytest.mark.parametrize("fill", ["NULL", "ZERO", "PREVIOUS"])
def test_a_day_that_a_zone_left_out_is_not_filled(fill: str) -> None:
    """Samoa had no 30 December 2011. The window without time took the place of the day before it."""
    found = told(
        f"calendar_window(ts, 'day', 'Pacific/Apia') FILL {fill}", "2011-12-29T12:00:00", "2012-01-01T12:00:00"
    )
    assert [(start[:13], n) for start, _, n in found] == [
        ("2011-12-29T10", 1),
        ("2011-12-30T10", 0),
        ("2011-12-31T10", 0),
        ("2012-01-01T10", 1),
    ]


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("America/Toronto", date(1919, 3, 31)),  # from 23:30 to 00:30
        ("America/Sao_Paulo", date(2018, 11, 4)),  # from 00:00 to 01:00
        ("Asia/Beirut", date(2023, 3, 30)),
        ("Pacific/Apia", date(2011, 12, 31)),  # from the 29th to the 31st
        ("America/Sao_Paulo", date(2018, 2, 18)),  # from 00:00 back to 23:00
        ("America/St_Johns", date(2006, 10, 29)),  # from 00:01 back to 23:01: two midnights
        ("Europe/Dublin", date(2024, 10, 27)),
        ("Australia/Lord_Howe", date(2024, 4, 7)),  # by half an hour
    ],
)
def test_a_day_begins_with_its_first_moment(zone: str, day: date) -> None:
    """By a look at every minute of the days around: the first that a clock in the zone has on the day, or later."""
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
    while moment.astimezone(ZoneInfo(zone)).date() < day:
        moment += timedelta(minutes=1)
    first = f"{moment:%Y-%m-%dT%H:%M}"
    before = f"{moment - timedelta(minutes=1):%Y-%m-%dT%H:%M}"
    earlier, later = told(f"calendar_window(ts, 'day', '{zone}')", before, first)
    assert (earlier[1][:16], later[0][:16]) == (first, first)


def test_windows_longer_than_time_are_refused() -> None:
    with pytest.raises(QueryError, match=r"no calendar window has more than 100,000 years, got `1000000`"):
        Calendar("year", count=1_000_000)
