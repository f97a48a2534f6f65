"""Files of CSV and JSON as people have them: what is found out about them, and what is asked instead of guessed."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import AmbiguousError, SourceError
from workbench.feeds import clocks
from workbench.feeds.dialect import Dialect
from workbench.feeds.formats import read_block, scan
from workbench.session.sources import Source, make_source, source_arguments

TEN = datetime(2024, 3, 1, 10, 0, tzinfo=UTC)
LATER = datetime(2024, 3, 14, 9, 5, 30, tzinfo=UTC)


def rows_of(source: Source) -> list[dict[str, Any]]:
    """All rows of a recording."""
    files = [scan(str(path), source.format, source.stream.schema, source.dialect) for path in source.paths]
    blocks = [(file, block) for file in files for block in file.blocks]
    schema = source.stream.schema
    tables = [read_block(file.path, file.format, block, schema, file.dialect) for file, block in blocks]
    return [dict(row) for table in tables for row in table.to_pylist()]


def sourced(folder: Path, content: str | bytes, time: str = "when", name: str = "a.csv", **options: Any) -> Source:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return make_source("s", path, time=time, **options)


GERMAN = "Datum;Filiale Süd;Umsatz €;Stück\n01.03.2024 10:00:00;Köln;1.234,50;3\n14.03.2024 09:05:30;;-2,5;1.200\n"
GERMAN_ROWS = [
    {"Datum": TEN, "Filiale Süd": "Köln", "Umsatz €": 1234.5, "Stück": 3},
    {"Datum": LATER, "Filiale Süd": None, "Umsatz €": -2.5, "Stück": 1200},
]
FORMAT = (("Datum", "dd.MM.yyyy HH:mm:ss"),)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_what_a_german_excel_writes(tmp_path: Path, encoding: str) -> None:
    """Semicolons, decimal commas, points between thousands, day first, an empty cell; in four encodings."""
    source = sourced(tmp_path, GERMAN.encode(encoding), time="Datum")
    kept = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert source.dialect == Dialect(";", ",", ".", kept, times=FORMAT)
    assert rows_of(source) == GERMAN_ROWS
    assert "read with sep=';', decimal=',', thousands='.'" in repr(source)
    # The Python that rebuilds it says all of it, and reads the same.
    said = eval(f"dict({', '.join(source_arguments(source)[1:])})")
    again = make_source("s", source.paths[0], **said)
    assert (again.dialect, rows_of(again)) == (source.dialect, GERMAN_ROWS)


@pytest.mark.parametrize(
    ("content", "options", "row"),
    [
        ("when\tv\n2024-03-01 10:00:00\t1.5\n", {"sep": "\t"}, {"v": 1.5}),
        ("when|v\n2024-03-01 10:00|1\n", {"sep": "|"}, {"v": 1}),
        ('when,v\n2024-03-01T10:00:00Z,"1,234.50"\n', {"thousands": ","}, {"v": 1234.5}),
        ('when,v\n2024-03-01 10:00,"1,5"\n', {"decimal": ","}, {"v": 1.5}),
        ("when;v\n2024-03-01 10:00;1'234.50\n", {"sep": ";", "thousands": "'"}, {"v": 1234.5}),
        ("when;v\n2024-03-01 10:00;12\u00a0345,5\n", {"sep": ";", "decimal": ",", "thousands": " "}, {"v": 12345.5}),
        ("when,v\n1709287200,1\n", {"time_format": "epoch s"}, {"v": 1}),
        ("when,v\n1709287200000,1\n", {"time_format": "epoch ms"}, {"v": 1}),
        ("when,v\n1709287200000000000,1\n", {"time_format": "epoch ns"}, {"v": 1}),
        ("when,v\n1709287200.000,1\n", {"time_format": "epoch s"}, {"v": 1}),
        ("when,v\n01/03/2024 10:00,1\n13/03/2024 10:00,1\n", {"time_format": "dd/MM/yyyy HH:mm"}, {"v": 1}),
        ("when,v\n03/01/2024 10:00 AM,1\n03/13/2024 1:00 pm,1\n", {"time_format": "MM/dd/yyyy hh:mm a"}, {"v": 1}),
        ("when,v\n1.3.24 10:00,1\n", {"time_format": "dd.MM.yy HH:mm"}, {"v": 1}),
        ("when,v\n20240301100000,1\n", {"time_format": "yyyyMMddHHmmss"}, {"v": 1}),
        ("when,v\n01-Mar-2024 10:00:00,1\n", {"time_format": "dd-MMM-yyyy HH:mm:ss"}, {"v": 1}),
        (
            "when,v\n01/Mar/2024:11:00:00 +0100,1\n02/Mar/2024:10:00:00 -0530,1\n",
            {"time_format": "dd/MMM/yyyy:HH:mm:ss Z"},
            {"v": 1},
        ),
        (
            'when,v\n"Fri, 01 Mar 2024 10:00:00 GMT",1\n',
            {"time_format": "EEE, dd MMM yyyy HH:mm:ss Z"},
            {"v": 1},
        ),
        ("when,v\n01.03.2024 11:30+01:30,1\n", {"time_format": "dd.MM.yyyy HH:mmZ"}, {"v": 1}),
        ("when,v\n01 March 2024 10:00,1\n", {"time_format": "dd MMMM yyyy HH:mm"}, {"v": 1}),
        ('when,v\n"2024-03-01 10:00:00,000",1\n', {"time_format": "yyyy-MM-dd HH:mm:ss,SSSSSS"}, {"v": 1}),
        ("when, v\n2024-03-01 10:00, 5\n", {}, {"v": 5}),
        ("when,a b,größe\n2024-03-01 10:00,x,1\n", {}, {"a b": "x", "größe": 1}),
        ("when,v\n2024-03-01 10:00,\n2024-03-01 11:00,7\n", {}, {"v": None}),
    ],
)
def test_what_is_found_out(tmp_path: Path, content: str, options: dict[str, Any], row: dict[str, Any]) -> None:
    source = sourced(tmp_path, content)
    assert source.dialect.options() == options
    first = rows_of(source)[0]
    assert {**first, "when": first["when"].replace(tzinfo=UTC)} == {"when": TEN, **row}


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2068, 12, 31)),
    st.integers(-15 * 60, 15 * 60),
    st.sampled_from(
        [
            "%Y-%m-%d %H:%M:%S.%f",
            "%d/%b/%Y:%H:%M:%S %z",
            "%A %d %B %Y %I:%M %p",
            "%a, %d %b %Y %H:%M:%S %z",
            "%y%m%d%H%M%S",
        ]
    ),
)
def test_formats_of_python_mean_what_they_mean_there(moment: datetime, minutes: int, format: str) -> None:
    text = moment.replace(tzinfo=timezone(timedelta(minutes=minutes))).strftime(format)
    read = clocks.read(pa.array([text, None]), format).to_pylist()
    expected = datetime.strptime(text, format)
    assert read == [expected if expected.tzinfo else expected.replace(tzinfo=UTC), None]


def test_what_is_no_such_time() -> None:
    """No such zone, no such name; and `May` is not asked about, short and whole as it is."""
    for text, format in (
        ("01/Mar/2024 10:00 +1600", "%d/%b/%Y %H:%M %z"),
        ("01/Mar/2024 10:00 CET", "%d/%b/%Y %H:%M %z"),
        ("Freitag 01 March 2024", "%A %d %B %Y"),
        ("01 Mar 2024", "%d %B %Y"),
    ):
        with pytest.raises(pa.ArrowInvalid, match="is no time like"):
            clocks.read(pa.array([text]), format)
    assert clocks.guesses(pa.array(["01 May 2024", "31 May 2024"])) == ("dd MMM yyyy",)


def test_a_packed_file_is_read_as_it_lies(tmp_path: Path) -> None:
    plain = sourced(tmp_path, GERMAN, time="Datum")
    packed = sourced(tmp_path, gzip.compress(GERMAN.encode()), time="Datum", name="b.csv.gz")
    assert rows_of(packed) == rows_of(plain)
    with pytest.raises(SourceError, match="cannot read"):
        sourced(tmp_path, gzip.compress(GERMAN.encode())[:40], time="Datum", name="cut.csv.gz")


def test_a_file_without_names(tmp_path: Path) -> None:
    """Its first row is a row, whether its columns are given names or get some."""
    lines = "\ufeff2024-03-01 10:00:00,Köln,1.5\n2024-03-14 09:05:30,Bonn,2\n"
    source = sourced(tmp_path, lines, time="column_1")
    assert source.dialect.options() == {"names": ["column_1", "column_2", "column_3"]}
    assert [row["column_2"] for row in rows_of(source)] == ["Köln", "Bonn"]
    named = sourced(tmp_path, lines, time="at", names=["at", "shop", "amount"])
    assert [row["amount"] for row in rows_of(named)] == [1.5, 2.0]
    assert rows_of(named)[0]["at"].replace(tzinfo=UTC) == TEN
    renamed = sourced(tmp_path, "t,x\n2024-03-01 10:00:00,1\n", time="at", names=["at", "n"], header=True)
    assert [row["n"] for row in rows_of(renamed)] == [1]
    # Years as names of columns are names, since another column has words on top of numbers.
    years = sourced(tmp_path, "when,2023,2024\n2024-03-01 10:00:00,1,2\n")
    assert years.stream.schema.names == ["when", "2023", "2024"]


@pytest.mark.parametrize(
    ("content", "option", "readings"),
    [
        (
            "when,v\n1/1/2024 10:00,0\n3/4/2024 10:00,1\n5/4/2024 11:00,2\n",
            "time_format",
            {"dd/MM/yyyy HH:mm": "3 April 2024", "MM/dd/yyyy HH:mm": "4 March 2024"},
        ),
        (
            "when,v\n03/04/05,1\n",
            "time_format",
            {"dd/MM/yy": "3 April 2005", "MM/dd/yy": "4 March 2005", "yy/MM/dd": "5 April 2003"},
        ),
        ("when;v\n2024-03-01;1.234\n", "decimal", {",": "1234", ".": "1.234"}),
        ('when,v\n2024-03-01,"1,234"\n', "decimal", {",": "1.234", ".": "1234"}),
        (
            "when;a;b\n2024-03-01;1,5;2.5\n",
            "decimal",
            {",": "`a` as numbers, `b` as texts", ".": "`b` as numbers, `a` as texts"},
        ),
        ("when,a;b\n2024-03-01,1;2\n", "sep", {",": "2 fields a line", ";": "2 fields a line"}),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked(
    tmp_path: Path, content: str, option: str, readings: dict[str, str]
) -> None:
    with pytest.raises(AmbiguousError, match=r"ways|numbers like") as caught:
        sourced(tmp_path, content)
    assert (caught.value.option, caught.value.readings) == (option, readings)
    # Each answer that the error names is one.
    for value, what in readings.items():
        assert f"`{option}={value!r}` reads {what}" in str(caught.value)
        if option != "sep":
            assert rows_of(sourced(tmp_path, content, **{option: value}))


def test_the_answers_read_what_they_say(tmp_path: Path) -> None:
    slashed = "when,v\n3/4/2024,1\n"
    for format, month, day in (("dd/MM/yyyy", 4, 3), ("MM/dd/yyyy", 3, 4), ("%m/%d/%Y", 3, 4)):
        (row,) = rows_of(sourced(tmp_path, slashed, time_format=format))
        assert row["when"] == datetime(2024, month, day, tzinfo=UTC)
    dotted = "when;v\n2024-03-01;1.234\n"
    for decimal, value in ((",", 1234), (".", 1.234)):
        (row,) = rows_of(sourced(tmp_path, dotted, decimal=decimal))
        assert row["v"] == value


def test_the_last_lines_tell_day_from_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.feeds.lines._LINES", 2)
    source = sourced(tmp_path, "when,v\n3/1/2024,1\n3/2/2024,1\n3/3/2024,1\n3/31/2024,1\n")
    assert source.dialect.times == (("when", "MM/dd/yyyy"),)
    assert rows_of(source)[0]["when"] == datetime(2024, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("when,v\n13/03/2024,1\n3/31/2024,1\n", {}, "column `when` of type `string` is not a timestamp"),
        ("when,v\n13/03/2024,1\n3/31/2024,1\n", {"time_format": "dd/MM/yyyy"}, "'3/31/2024' is no time like"),
        ("when,v\n30.02.2024,1\n", {"time_format": "dd.MM.yyyy"}, "'30.02.2024' is no time like `dd.MM.yyyy`"),
        ("when;v\n2024-03-01;1.2.3\n", {"schema": "when TIMESTAMP, v INT", "thousands": "."}, "value '1.2.3'"),
        (
            "when,v\n1709287200.1234567,1\n",
            {"time_format": "epoch s"},
            "is no number since 1970",
        ),
        ("when,v,v\n2024-03-01,1,2\n", {}, "two columns `v`\nhint: give the source other `names=[...]`"),
        ("when,v\n2024-03-01,\u0110\n".encode("cp1258"), {"encoding": "utf-8"}, "in another encoding"),
        (b"when,v\n2024-03-01,\x81\n", {}, "in another encoding"),
        ("when,v\n2024-03-01,1\n", {"sep": "::"}, "`sep` is one character, got '::'"),
        ("when,v\n2024-03-01,1\n", {"decimal": ";"}, "`decimal` is '.' or ',', got ';'"),
        ("when,v\n2024-03-01,1\n", {"encoding": "utf8x"}, "no encoding `utf8x`\nhint: did you mean `utf-8`?"),
        ("when,v\n2024-03-01,1\n", {"time_format": "dd.MM.yyyy QQ"}, "has `QQ`, which is not known"),
        ("when,v\n2024-03-01,1\n", {"time_format": "HH:mm"}, "has no year"),
        ("when,v\n2024-03-01,1\n", {"names": "when"}, "`names` is a list of different names"),
    ],
)
def test_what_does_not_fit_is_told(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        rows_of(sourced(tmp_path, content, **options))
    assert message in str(caught.value)


def test_a_number_of_another_kind_further_down_says_what_to_give(tmp_path: Path) -> None:
    content = 'when,v\n2024-03-01,5.5\n2024-03-02,"1,234.5"\n'
    with pytest.raises(SourceError, match=r"hint: .*`thousands=','` where thousands are marked"):
        rows_of(sourced(tmp_path, content, thousands="", schema="when TIMESTAMP, v DOUBLE"))
    assert [row["v"] for row in rows_of(sourced(tmp_path, content))] == [5.5, 1234.5]


def test_json_with_numbers_since_1970(tmp_path: Path) -> None:
    source = sourced(tmp_path, '{"when": 1709287200000, "v": 1}\n{"when": 1709287200500, "v": 2}\n', name="a.jsonl")
    assert source.dialect.times == (("when", "epoch ms"),)
    assert [row["when"] for row in rows_of(source)] == [TEN, TEN.replace(microsecond=500_000)]
    seconds = sourced(tmp_path, '{"when": 1709287200.123456}\n{"when": 1709287200}\n', name="b.jsonl")
    assert [row["when"].microsecond for row in rows_of(seconds)] == [123_456, 0]
    with pytest.raises(SourceError, match="`sep` has no meaning for JSON"):
        sourced(tmp_path, "{}\n", name="c.jsonl", sep=";")


def test_a_growing_folder_is_read_in_its_dialect(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GERMAN)
    source = make_source("s", tmp_path, time="Datum", follow=True)
    feed = source.feed.open("Datum", tmp_path / "log", lambda: clock[0])
    clock = [0.0]
    position, _ = feed.advance(feed.initial(), None)
    clock[0] = 5.0
    position, _ = feed.advance(position, None)
    assert position == {"row": 2}
    again = source.feed.open("Datum", tmp_path / "log", lambda: 0.0)
    from workbench.feeds import Tally

    for each in (feed, again):
        (pieces,) = each.pieces(each.initial(), position, 1)
        tables = [pa.Table.from_batches(piece.read(source.stream.schema, Tally())) for piece in pieces]
        assert pa.concat_tables(tables).to_pylist() == GERMAN_ROWS
    empty = make_source(
        "s",
        tmp_path / "log",
        time="at",
        follow=True,
        format="csv",
        schema="at TIMESTAMP",
        sep=";",
        time_format="%d.%m.%Y",
    )
    assert empty.dialect == Dialect(";", times=(("at", "%d.%m.%Y"),))


def test_options_of_lines_are_for_lines() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(SourceError, match="`sep` has no meaning for data that is not CSV or JSON"):
        make_source("s", table, time="ts", sep=";")
