"""The runner of the benchmarks on made-up workloads: lines, medians, bars, comparison. Nothing here is timed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from benchmarks import runner
from benchmarks.__main__ import main
from benchmarks.compare import compare
from benchmarks.workload import Bar, Figures, Workload
from benchmarks.workloads import WORKLOADS


def workload(values: Iterator[float], *bars: Bar, calls: list[str] | None = None) -> Workload:
    log: list[str] = [] if calls is None else calls

    def run(quick: bool) -> Figures:
        log.append("run")
        return {"seconds": next(values)}

    return Workload("sample", "made up", run, bars, repeats=3, warm_up=lambda quick: log.append("warm up"))


def test_it_warms_up_once_and_ends_with_the_medians() -> None:
    calls: list[str] = []
    out = io.StringIO()
    assert runner.run(workload(iter([3.0, 1.0, 2.0]), Bar("seconds", "<=", 2), calls=calls), False, [out])
    assert calls == ["warm up", "run", "run", "run"]
    *lines, last = out.getvalue().splitlines()
    assert last == "sample seconds=2 bar=seconds<=2 ok"
    records = [json.loads(line) for line in lines]
    assert [record["value"] for record in records] == [3.0, 1.0, 2.0]
    assert all(len(record["load"]) == 3 and record["cpus"] >= 1 and record["python"] for record in records)


def test_a_missed_bar_is_short() -> None:
    out = io.StringIO()
    assert not runner.run(workload(iter([5.0]), Bar("seconds", "<=", 2)), True, [out])
    assert out.getvalue().splitlines()[-1] == "sample seconds=5 bar=seconds<=2 short"


def test_nan_keeps_no_bar() -> None:
    assert not Bar("ratio", ">=", 1).holds(float("nan"))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123456, "0.01235"), (2.0, "2"), (1234.56, "1235"), (8_423_119.4, "8_423_119")]
)
def test_figures_are_short(value: float, text: str) -> None:
    assert runner.short(value) == text


def test_compare_shows_before_after_and_what_only_one_has(tmp_path: Path) -> None:
    before, after = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    line = '{"workload": "w", "figure": "f", "value": %s}\n'
    before.write_text(line % 4 + line % 2 + line % 3 + "w f=3 bar=none ok\n")
    after.write_text(line % 6 + '{"workload": "w", "figure": "g", "value": 1}\n')
    _, first, second = (row.split() for row in compare(before, after).splitlines())
    assert first == ["w", "f", "3", "6", "2.00"]
    assert second == ["w", "g", "-", "1", "-"]


def test_list_names_every_workload_and_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for name, each in WORKLOADS.items():
        assert name in shown
        assert all(str(bar) in shown for bar in each.bars)


def test_bars_are_on_figures_of_their_own_workload() -> None:
    """A bar on a misspelt figure would fail only at the end of a long run."""
    with pytest.raises(KeyError):
        runner.run(workload(iter([1.0]), Bar("second", "<=", 2)), True, [io.StringIO()])


def test_of_many_bars_the_last_line_names_the_missed() -> None:
    figures = {f"f{number}": float(number) for number in range(20)}
    bars = tuple(Bar(name, ">=", 2) for name in figures)
    out = io.StringIO()
    assert not runner.run(Workload("sample", "made up", lambda quick: figures, bars, repeats=1), False, [out])
    assert out.getvalue().splitlines()[-1].endswith("f19=19 bar=18 of 20, not f0>=2,f1>=2 short")


def test_of_many_figures_the_last_line_shows_those_with_a_bar_or_the_headline() -> None:
    figures = {f"f{number}": float(number) for number in range(20)}
    barred = Workload("sample", "made up", lambda quick: figures, (Bar("f7", ">=", 2),))
    assert barred.shown(figures) == ("f7",)
    assert Workload("sample", "made up", lambda quick: figures).shown(figures) == tuple(figures)
    assert Workload("sample", "made up", lambda quick: figures, headline=("f1",)).shown(figures) == ("f1",)


def test_what_a_workload_says_about_itself_is_in_every_line() -> None:
    out = io.StringIO()
    about = Workload("sample", "made up", lambda quick: {"s": 1.0}, repeats=1, about=lambda: {"data": "random walk"})
    assert runner.run(about, False, [out])
    first, last = out.getvalue().splitlines()
    assert json.loads(first)["data"] == "random walk"
    assert last == "sample s=1 data='random walk' bar=none ok"


def test_workloads_of_a_group_are_listed_together() -> None:
    groups = [workload.group for workload in WORKLOADS.values()]
    assert [group for group, _ in groupby(groups)] == ["product", "kernels", "papers", "spark"]
