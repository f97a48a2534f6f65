"""A notebook that is written for a file: what it finds out about the file, and that its cells are right."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inprocess import InProcessRunner

from workbench import template
from workbench.__main__ import main
from workbench.errors import SourceError
from workbench.session import Session
from workbench.session.sources import make_source
from workbench.time import DAY, HOUR, MINUTE, SECOND

BEGAN = datetime(2024, 3, 1, tzinfo=UTC)


def sales(folder: Path, name: str = "My sales.csv") -> Path:
    """Ten days of a sale every five minutes: 863,700 s from the first to the last."""
    path = folder / name
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["when", "number", "shop", "amount", "note"])
        for n in range(2_880):
            at = BEGAN + n * timedelta(minutes=5)
            writer.writerow([at.strftime("%Y-%m-%d %H:%M:%S"), n, f"shop {n % 3}", n % 7 + 0.5, f"sale {n}"])
    return path


def code(path: Path) -> list[str]:
    """The code cells of a notebook that is valid."""
    sheet = nbformat.read(path, as_version=4)
    nbformat.validate(sheet)
    return [cell.source for cell in sheet.cells if cell.cell_type == "code"]


def test_a_notebook_for_a_file_of_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sales(tmp_path)
    assert main(["new", "My sales.csv"]) == 0
    assert capsys.readouterr().out.startswith("wrote My sales.ipynb: open it")
    cells = code(tmp_path / "My sales.ipynb")
    assert cells[0] == (
        "%load_ext workbench\nimport workbench\n\n"
        "workbench.source('my_sales', 'My sales.csv', time='when')"
    )  # fmt: skip
    # `shop` has three names, `note` one for each row. A 150th of the ten days is 1.6 hours, a 1,000th 14.4 minutes.
    assert cells[1].splitlines()[0] == "%%winquery my_sales_by_shop --source my_sales --live"
    assert "'2 hours / 15 minutes'" in cells[1]
    assert "'12 hours / 2 hours'" in cells[1]
    for value in ("avg(amount) AS avg_amount", "avg(number) AS avg_number", "count(*) AS n"):
        assert value in cells[1]
    assert cells[2:] == ["my_sales_by_shop", "workbench.builder('my_sales')"]


def test_its_query_is_right(tmp_path: Path) -> None:
    """The cell's SQL over the same rows in one process: sales of half a day, each shop's a third of them."""
    path = sales(tmp_path)
    cells = code(template.write(path, tmp_path / "sheet.ipynb"))
    head, sql = cells[1].split("\n", 1)
    rows = pa.table(_columns(path))
    session = Session(launch=InProcessRunner)
    session.source("my_sales", rows, time="when")
    (handle,) = session.start(session.parse(sql, name=head.split()[1]))
    table = handle.results("12 hours / 2 hours", format="arrow").to_pylist()
    midnight = [row for row in table if row["window_start"] == BEGAN]
    assert {row["shop"]: row["n"] for row in midnight} == {"shop 0": 48, "shop 1": 48, "shop 2": 48}


def _columns(path: Path) -> dict[str, object]:
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    times = [datetime.fromisoformat(row["when"]).replace(tzinfo=UTC) for row in rows]
    return {
        "when": pa.array(times, pa.timestamp("us", "UTC")),
        "number": pa.array([int(row["number"]) for row in rows]),
        "shop": [row["shop"] for row in rows],
        "amount": [float(row["amount"]) for row in rows],
    }


def german(folder: Path, dates: str = "%d.%m.%Y %H:%M") -> Path:
    """What Excel writes in German, the newest row first: ten days of a sale every five minutes."""
    path = folder / "Umsätze März.csv"
    with path.open("w", newline="", encoding="cp1252") as lines:
        writer = csv.writer(lines, delimiter=";")
        writer.writerow(["Datum", "Filiale Süd", "Umsatz €"])
        for n in reversed(range(2_880)):
            at = BEGAN + n * timedelta(minutes=5)
            writer.writerow([at.strftime(dates), f"Köln {n % 3}", f"1.{n % 7:03},50"])
    return path


def test_a_notebook_for_what_excel_writes_in_german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that was found out stands in the cell; rows that come newest first are waited for."""
    monkeypatch.chdir(tmp_path)
    german(tmp_path)
    assert main(["new", "Umsätze März.csv"]) == 0
    cells = code(tmp_path / "Umsätze März.ipynb")
    assert cells[0].splitlines()[-1] == (
        "workbench.source('umsatze_marz', 'Umsätze März.csv', time='Datum', sep=';', decimal=',', thousands='.', "
        "encoding='cp1252', time_format='dd.MM.yyyy HH:mm', delay='2 weeks')"
    )
    assert cells[1].startswith("%%winquery umsatze_marz_by_filiale_sud --source umsatze_marz --live\n")
    assert "GROUP BY `Filiale Süd`, zoom(Datum, '2 hours / 15 minutes', '12 hours / 2 hours')" in cells[1]
    assert "avg(`Umsatz €`) AS" in cells[1]


def test_what_can_be_read_in_two_ways_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a terminal by the commands that answer, in the launcher by a question."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.csv").write_text("at,km\n3/4/2024,1\n3/4/2024,2\n")
    assert main(["new", "trips.csv"]) == 1
    said = capsys.readouterr().err
    assert "times like `3/4/2024` of the column `at` of " in said
    assert "  python -m workbench new trips.csv --time-format dd/MM/yyyy  # 3 April 2024\n" in said
    question = json.loads(template.offer("trips.csv", {}))
    assert question["option"] == "time_format"
    assert question["readings"] == {"dd/MM/yyyy": "3 April 2024", "MM/dd/yyyy": "4 March 2024"}
    assert json.loads(template.offer("trips.csv", {"time_format": "MM/dd/yyyy"})) == {"path": "trips.ipynb"}
    assert "time='at', time_format='MM/dd/yyyy')" in code(tmp_path / "trips.ipynb")[0]
    assert json.loads(template.offer("trips.csv", {})) == {"path": "trips.ipynb"}, "it is there already"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("id,Day,v\n1,1.3.2024,1.5\n2,13.3.2024,2.5\n", "Day"),
        ("id,ts,v\n1700000000,1709287200,1\n1700000001,1709287260,2\n", "ts"),
        ("n,v\n1709287200,1\n1709287260,2\n", "n"),
        ("2024-03-01,1\n2024-03-02,2\n", "column_1"),
    ],
)
def test_times_in_whatever_form_are_found(tmp_path: Path, content: str, found: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(content)
    assert template.time_of(path) == found


def test_a_folder_of_parquet_without_a_key_and_with_few_rows(tmp_path: Path) -> None:
    (tmp_path / "2024 log").mkdir()
    stamps = pa.array([0, 30_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"value": [1.0, 2.0], "at": stamps}), tmp_path / "2024 log" / "a.parquet")
    cells = code(template.write(tmp_path / "2024 log", tmp_path / "sheet.ipynb"))
    assert "workbench.source('events_2024_log', '2024 log', time='at')" in cells[0]
    assert cells[1].startswith("%%winquery events_2024_log_over_time --source events_2024_log --live\n")
    assert "zoom(`at`, '5 minutes / 30 seconds')" in cells[1].replace("zoom(at", "zoom(`at`"), "rows are 30 s apart"


def test_times_are_found_among_texts_and_days(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("id,Day,v\n1,2024-03-01,1.5\n2,2024-03-02,2.5\n")
    assert template.time_of(texts) == "Day"
    source = make_source("days", str(texts), time="Day")
    sample = template.sample_of(source)
    assert sample.last - sample.first == sample.gap == DAY
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text('{"v": 1, "at": "2024-03-01T10:00:00Z"}\n{"v": 2, "at": "2024-03-01T11:30:00+01:00"}\n')
    assert template.time_of(mixed) == "at"


@pytest.mark.parametrize(
    ("span", "gap", "levels"),
    [
        (0, 0, ((1 * SECOND, 5 * SECOND), (1 * SECOND, 5 * SECOND))),
        (150 * MINUTE, 0, ((1 * MINUTE, 5 * MINUTE), (10 * SECOND, 1 * MINUTE))),
        (30 * DAY, 0, ((6 * HOUR, DAY), (HOUR, 6 * HOUR))),
        (30 * DAY, DAY, ((DAY, 7 * DAY), (DAY, 7 * DAY))),
        (3_000 * DAY, 0, ((30 * DAY, 30 * DAY), (7 * DAY, 7 * DAY))),
    ],
)
def test_levels_fit_the_length_of_the_recording(span: int, gap: int, levels: tuple[tuple[int, int], ...]) -> None:
    assert tuple(template.level_of(span, gap, *shape) for shape in template.LEVELS) == levels


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,x\n", "no column of `f.csv` holds times: `a`, `b`"),
        ("ts,b\n", "holds times|has no row"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(content)
    with pytest.raises(SourceError, match=message):
        template.write(path, tmp_path / "f.ipynb")
    assert not (tmp_path / "f.ipynb").exists()


def test_no_notebook_is_written_over_and_no_file_guessed(tmp_path: Path) -> None:
    path = sales(tmp_path)
    target = tmp_path / "kept.ipynb"
    target.write_text("mine")
    with pytest.raises(SourceError, match="already"):
        template.write(path, target)
    assert target.read_text() == "mine"
    with pytest.raises(SourceError, match=r"no file .*My sale\.csv") as told:
        template.write(tmp_path / "My sale.csv", tmp_path / "other.ipynb")
    assert "My sales.csv" in str(told.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere/a.ipynb", "cannot write `nowhere/a.ipynb`: No such file or directory\nhint: name another one"),
        ("a.txt", "`a.txt` is no name of a notebook"),
        (".", "`.` is no name of a notebook"),
    ],
)
def test_a_notebook_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sales(tmp_path)
    assert main(["new", "My sales.csv", "--to", target]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "when,shop\n"])
def test_a_file_without_rows_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "f.csv").write_text(content)
    assert main(["new", str(tmp_path / "f.csv")]) == 1
    assert "has no rows" in capsys.readouterr().err
