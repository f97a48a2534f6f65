"""How times are written, and how the place of a fault in a text is shown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from inprocess import InProcessRunner

from workbench.errors import Span, underline
from workbench.notebook.dashboards import live_view
from workbench.session import Session
from workbench.time import LIMIT, format_time
from workbench.widgets import picture


@pytest.mark.parametrize(
    "micros", [0, -1, 10**18, 253_402_300_799_999_999, 253_402_300_800_000_000, -(10**17), LIMIT]
)
def test_a_time_is_written_as_numpy_writes_it(micros: int) -> None:
    """From before the year 0 to the year 148108."""
    whole = str(np.datetime64(micros, "us")).replace("T", " ")
    assert format_time(micros) == whole.removesuffix(".000000")


def test_the_first_years_have_four_digits() -> None:
    assert format_time(-62_135_596_800_000_000) == "0001-01-01 00:00:00"


def test_seconds_taken_for_milliseconds_can_be_looked_at() -> None:
    """Rows of the year 33658: whoever made that mistake sees it, in the status, the card, the table, the picture."""
    stamps = pa.array([10**18, 10**18 + 1_000_000], pa.timestamp("us", "UTC"))
    session = Session(launch=InProcessRunner)
    session.source("events", pa.table({"ts": stamps, "v": [1.0, 2.0]}), time="ts")
    sql = "SELECT sum(v) AS total FROM events GROUP BY window(ts, '2 seconds')"
    (handle,) = session.start(session.parse(sql, name="q"))
    assert "latest row 33658-09-27 01:46:41" in str(handle.status())
    assert "33658-09-27 01:46:41" in handle._repr_html_()
    view = live_view(handle)
    view.controls.views.active = 2
    view.refresh()
    assert "33658-09-27 01:46:40 &ndash; 01:46:42</td>" in view.controls.table.text
    assert "33658-09-27" in picture(handle.store)


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_times_that_python_does_not_know_are_keys_as_others_are(kind: pa.DataType) -> None:
    """Two rows of the year 29349 (of days) or 1970 (of microseconds), one of today, one of the year 200000; NULL."""
    far = 70_000_000 if kind == pa.date32() else 6_250_000_000_000_000_000
    keys = pa.array([10_000_000, 19_000, far, 10_000_000, None], pa.int32() if kind == pa.date32() else pa.int64())
    stamps = pa.array([0, 1, 2, 3, 4], pa.timestamp("us", "UTC"))
    session = Session(launch=InProcessRunner)
    session.source("events", pa.table({"ts": stamps, "k": keys.cast(kind), "v": [1, 2, 4, 8, 16]}), time="ts")
    sql = "SELECT k, sum(v) AS total FROM events GROUP BY k, window(ts, '2 seconds')"
    (handle,) = session.start(session.parse(sql, name="q"))
    table = handle.results(format="arrow")
    found = dict(zip(table["k"].cast(keys.type).to_pylist(), table["total"].to_pylist(), strict=True))
    assert found == {10_000_000: 9, 19_000: 2, far: 4, None: 16}
    view = live_view(handle)
    view.refresh()
    assert view.drawn


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_place_in_a_text_is_underlined_whatever_ends_its_lines(end: str) -> None:
    text = end.join(["SELECT a", "FROM here", "WHERE b"])
    place = text.index("here")
    assert underline(text, Span(place, place + 4)) == "   2 | FROM here\n            ^^^^"
