"""The magics in a real IPython shell, on the in-process runner."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from inprocess import InProcessRunner
from IPython.core.interactiveshell import InteractiveShell

from workbench.errors import WorkbenchError
from workbench.notebook import api, commands, completion, magics
from workbench.notebook.failed import FailedQuery
from workbench.session import LiveQuery, Session

TABLE = pa.table(
    {"ts": pa.array([0, 1_000_000], pa.timestamp("us", "UTC")), "carrier": ["UA", "B6"], "v": [1.0, 2.0]}
)
SQL = "SELECT carrier, sum(v) AS total FROM events GROUP BY carrier, window(ts, '2 seconds')"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    session = Session(launch=InProcessRunner)
    session.source("events", TABLE, time="ts")
    for module in (api, commands, completion, magics):
        monkeypatch.setattr(module, "default_session", lambda: session)
    shell = InteractiveShell.instance()
    magics.load_ipython_extension(shell)
    magics.load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, code: str) -> Any:
    return shell.run_cell(code)


def test_a_cell_leaves_a_handle(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, f"%%winquery totals --source events\n{SQL}").success
    handle = shell.user_ns["totals"]
    assert isinstance(handle, LiveQuery)
    assert len(handle.results()) == 2
    assert "totals.results()" in capsys.readouterr().out


def test_a_dry_run_starts_nothing(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, f"%%winquery dry --dry-run\n{SQL}").success
    assert "SharedPlan of `events`" in capsys.readouterr().out
    assert "dry" not in shell.user_ns


def test_a_users_mistake_shows_no_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    """Cases E1 and M4: the typo is underlined, the nearest name offered, the cell has failed, nothing runs."""
    before = len(InProcessRunner.started)
    result = run(shell, f"%%winquery bad --source events\n{SQL.replace('carrier,', 'carier,', 1)}")
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert not result.success
    assert "Traceback" not in text
    assert "did you mean `carrier`?" in text
    assert "^^^^^^" in text
    assert len(InProcessRunner.started) == before


def test_fast_numerics_are_asked_for_beside_the_sql(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    sliding = SQL.replace("'2 seconds'", "'10 seconds', '1 second'")
    assert run(shell, f"%%winquery totals --numerics fast --explain\n{sliding}").success
    handle = shell.user_ns["totals"]
    assert "  fast    totals: f0.p1 as differences of prefixes" in capsys.readouterr().out
    assert "  fast    totals: f0.p1 as differences of prefixes" in handle.explain()
    assert 'name="totals", numerics="fast")' in handle.python()
    assert len(handle.results()) == 20
    assert run(shell, f"%%winquery totals --explain\n{sliding}").success
    assert "  fast " not in capsys.readouterr().out
    assert "numerics" not in shell.user_ns["totals"].python()
    assert api.bind(sliding, "q", "events", numerics="fast") == (
        api.query("events")
        .group_by("carrier")
        .window("10 seconds", "1 second")
        .select("carrier", total="sum(v)")
        .numerics("fast")
        .build("q"),
    )


def test_several_statements_are_several_handles(shell: InteractiveShell) -> None:
    assert run(shell, f"%%winquery pair\n{SQL};\n{SQL.replace('sum', 'max')};").success
    assert {"pair", "pair_2"} <= shell.user_ns.keys()


def test_one_wrong_statement_starts_nothing(shell: InteractiveShell) -> None:
    """Case E4."""
    before = len(InProcessRunner.started)
    assert not run(shell, f"%%winquery pair\n{SQL};\nSELECT nothing FROM events").success
    assert not run(shell, "%%winquery empty\n-- only a comment").success
    assert len(InProcessRunner.started) == before


def test_a_handle_under_a_name_of_its_own(shell: InteractiveShell) -> None:
    """Case M1: the variable holds the handle, of several statements a list."""
    assert run(shell, f"%%winquery totals -o mine\n{SQL}").success
    assert shell.user_ns["mine"] is shell.user_ns["totals"]
    assert run(shell, f"%%winquery both << --source events\n{SQL}; {SQL}").success
    assert [handle.name for handle in shell.user_ns["both"]] == ["both", "both_2"]
    assert run(shell, f"%%winquery <<\n{SQL}").success is False


@pytest.mark.parametrize("line", ["-o mine", "mine <<", "other --out mine"])
def test_a_failed_query_is_held_with_its_error(shell: InteractiveShell, line: str) -> None:
    """Case M1: on failure the variable holds the failed query, not the one before."""
    assert run(shell, f"%%winquery {line}\n{SQL}").success
    assert not run(shell, f"%%winquery {line}\n{SQL.replace('sum', 'summ')}").success
    failed = shell.user_ns["mine"]
    assert isinstance(failed, FailedQuery)
    assert isinstance(failed.error, WorkbenchError)
    assert "unknown function `summ`" in repr(failed)
    assert "summ(v)" in failed.sql


def test_what_cannot_be_drawn_is_refused_before_it_runs(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(InProcessRunner.started)
    assert not run(
        shell, f"%%winquery names --live\n{SQL.replace('sum(v) AS total', 'max(carrier) AS last')}"
    ).success
    shown = capsys.readouterr()
    assert "nothing to plot: `last`" in shown.out + shown.err
    assert len(InProcessRunner.started) == before


def test_what_a_failed_query_is_asked_for_is_answered_with_its_error(shell: InteractiveShell) -> None:
    run(shell, f"%%winquery bad <<\n{SQL.replace('sum', 'smu')}")
    failed = shell.user_ns["bad"]
    with pytest.raises(AttributeError, match="`bad` has no `results`, as its cell failed: unknown function `smu`"):
        failed.results()
    assert copy.copy(failed) == failed


@pytest.mark.parametrize("line", ["class", "5x", "q -o class", "q -o b.c"])
def test_a_query_has_a_name_that_python_can_say(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    before = len(InProcessRunner.started)
    assert not run(shell, f"%%winquery {line}\n{SQL}").success
    shown = capsys.readouterr()
    assert f"`{line.split()[-1]}` cannot name a query" in shown.out + shown.err
    assert len(InProcessRunner.started) == before


def test_a_fault_of_ours_shows_its_trace_and_how_to_report_it(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case M4."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(api, "bind", broken)
    assert not run(shell, f"%%winquery totals\n{SQL}").success
    shown = capsys.readouterr().out
    assert "Traceback" in shown
    assert "deep inside" in shown
    assert "please report it" in shown
    assert "workbench doctor" in shown


def test_parameters(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    """Case M2: `{{name}}` is a variable of the notebook or an option, bound as a constant; nothing else is."""
    sql = "SELECT count(*) AS n FROM events WHERE carrier = {{who}} AND v > {{low}} GROUP BY window(ts, '1 minute')"
    run(shell, "who, low = \"UA' OR '1' = '1\", 0.5")
    assert run(shell, f"%%winquery found\n{sql}").success
    assert len(shell.user_ns["found"].results()) == 0
    assert run(shell, f"%%winquery found --param who=UA -p low=-1\n{sql}").success
    assert shell.user_ns["found"].results()["n"].tolist() == [1]
    assert run(
        shell, "%%winquery text --param who=B6\n" + SQL.replace("GROUP", "WHERE carrier <> '{who} :who $who' GROUP")
    )
    assert len(shell.user_ns["text"].results()) == 2
    capsys.readouterr()
    assert not run(shell, f"%%winquery found --param lo=1\n{sql.replace('low', 'loww')}").success
    assert "did you mean `low`?" in capsys.readouterr().out


def test_options_are_read_as_they_are_meant(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    """Case E3: a negative number as a value, quotes, and a typo in an option."""
    where = "v > {{low}} OR carrier = {{a}}"
    sql = f"SELECT count(*) AS n FROM events WHERE {where} GROUP BY window(ts, '1 minute');  -- end"
    for value in ("\"a='x y'\"", "a='x y'", "'a=x y'"):
        assert run(shell, f"%%winquery found --param low=-5 --param {value}\n{sql}").success
        assert "carrier = 'x y'" in str(shell.user_ns["found"].query)
        assert "v > -5.0" in str(shell.user_ns["found"].query)
    for line, hint in [
        ("found --lvie", "did you mean `--live`?"),
        ("found --param low", "write it as `--param name=value`"),
        ("found other", "`%winquery --help` lists the options"),
        ("found --param a='x", "`%winquery --help` lists the options"),
        ("1st", "use letters, digits and `_`"),
        ("found --save kept", "leave it out"),
        ("--save kept --live", "leave it out"),
        ("found --source evens", "did you mean `events`?"),
        ("found --numerics fats", "did you mean `fast`?"),
        ("--save kept --numerics fast", "leave it out"),
    ]:
        capsys.readouterr()
        assert not run(shell, f"%%winquery {line}\n{SQL}").success
        assert hint in capsys.readouterr().out


def test_help(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("%%winquery --help\nSELECT", "%winquery --help"):
        assert run(shell, line).success
        shown = capsys.readouterr().out
        assert shown.startswith("%%winquery [--source")
        assert all(option in shown for option in completion.OPTIONS)
    assert run(shell, "%winquery help").success
    shown = capsys.readouterr().out
    assert all(f"%winquery {name} " in shown for name in commands.COMMANDS)
    assert run(shell, "%winquery help functions").success
    assert "date_trunc" in capsys.readouterr().out
    assert not run(shell, "%winquery help fnctions").success
    assert "--dry-run" in shell.find_line_magic("winquery").__doc__  # what `%winquery?` shows


def test_snippets(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    saved = "%%winquery --save big\nSELECT ts, carrier AS who, v FROM events WHERE v > {{low}}"
    use = "SELECT who, sum(v) AS total FROM big GROUP BY who, window(ts, '1 minute')"
    assert not run(shell, saved).success  # `low` has no value yet
    assert run(shell, "low = 1.5").success
    assert run(shell, saved).success
    assert "saved `big` (ts, who, v): use it with --with big" in capsys.readouterr().out
    assert run(shell, f"%%winquery totals --with big\n{use}").success
    assert shell.user_ns["totals"].results()["who"].tolist() == ["B6"]
    assert run(shell, f"%%winquery totals --with big --param low=0\n{use}").success
    assert sorted(shell.user_ns["totals"].results()["who"]) == ["B6", "UA"]
    capsys.readouterr()
    assert not run(shell, f"%%winquery totals\n{use}").success
    assert "add `--with big`" in capsys.readouterr().out
    assert run(shell, "%winquery snippets").success
    assert "SELECT ts, carrier AS who" in capsys.readouterr().out
    assert not run(shell, f"%%winquery --save windows\n{SQL}").success
    assert not run(shell, "%%winquery --save two\nSELECT ts FROM events; SELECT ts FROM events").success
    assert not run(shell, f"%%winquery totals --with bik\n{use}").success


def test_a_snippet_with_the_name_of_a_source(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    """Case M3: it says which one is used: the snippet where `--with` names it, the source elsewhere."""
    count = "SELECT count(*) AS n FROM events GROUP BY window(ts, '1 minute')"
    assert run(shell, "%%winquery --save events\nSELECT ts FROM events WHERE v > 1").success
    assert "`events` is a source as well" in capsys.readouterr().out
    assert run(shell, f"%%winquery one --with events\n{count}").success
    assert "here FROM events is the snippet" in capsys.readouterr().out
    assert run(shell, f"%%winquery all\n{count}").success
    assert "snippet" not in capsys.readouterr().out
    assert shell.user_ns["one"].results()["n"].tolist() == [1]
    assert shell.user_ns["all"].results()["n"].tolist() == [2]


def test_line_commands(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, f"%%winquery totals\n{SQL}")
    capsys.readouterr()
    for line, expected in [
        ("%winquery", "totals on events: finished"),
        ("%winquery sources", "Source `events`: 2 rows"),
        ("%winquery status totals", "totals: finished"),
        ("%winquery explain totals", "SharedPlan of `events`"),
        ("%winquery plan totals", "SharedPlan of `events`"),
        ("%winquery levels", "totals: 2 seconds: 2 windows"),
        ("%winquery logs totals", "totals: finished, nothing went wrong"),
        ("%winquery tables", "no table yet: workbench.table(name, data)"),
        ("%winquery snippets", "no snippet yet"),
    ]:
        assert run(shell, line).success
        assert expected in capsys.readouterr().out
    assert len(run(shell, "%winquery results totals").result) == 2
    assert run(shell, "kept = %winquery results").success
    assert len(shell.user_ns["kept"]) == 2
    assert not run(shell, "%winquery sources evens").success
    assert not run(shell, "%winquery stopp").success
    assert not run(shell, "%winquery stop total").success
    capsys.readouterr()
    assert run(shell, "%winquery stop totals").success
    run(shell, "%winquery list")
    assert "no query is running" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["pa", "-o pa", "pa <<"])
def test_a_query_never_takes_the_place_of_a_module(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """`%%winquery workbench` would leave the notebook without the package."""
    assert run(shell, "import pyarrow as pa").success
    assert not run(shell, f"%%winquery {line}\n{SQL}").success
    said = capsys.readouterr()
    assert "`pa` is a module in this notebook" in said.out + said.err
    assert shell.user_ns["pa"] is pa


def test_saving_a_snippet_of_snippets_says_what_it_needs(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, "%%winquery --save some\nSELECT ts, v FROM events WHERE v > 1").success
    assert run(shell, "%%winquery --save twice --with some\nSELECT ts, v * 2 AS w FROM some").success
    use = "use it with --with some,twice"
    assert use in capsys.readouterr().out
    cell = "SELECT max(w) AS w FROM twice GROUP BY window(ts, '1 minute')"
    assert run(shell, f"%%winquery most --with some,twice\n{cell}").success
    assert shell.user_ns["most"].results()["w"].tolist() == [4.0]


def test_asking_a_failed_cell_shows_no_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run(shell, f"%%winquery bad <<\n{SQL.replace('carrier,', 'carier,', 1)}").success
    capsys.readouterr()
    assert not run(shell, "bad.results()").success
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "`bad` has no `results`, as its cell failed" in said.out + said.err
    assert not hasattr(shell.user_ns["bad"], "results")


@pytest.mark.parametrize("missing", ["pd.NaT", "pd.NA", "None", "np.datetime64('NaT')"])
def test_a_missing_value_of_pandas_is_null(shell: InteractiveShell, missing: str) -> None:
    assert run(shell, f"import numpy as np, pandas as pd\nlimit = {missing}").success
    cell = "SELECT count(*) AS n FROM events WHERE v > 0 AND {{limit}} IS NULL GROUP BY window(ts, '1 minute')"
    assert run(shell, f"%%winquery known\n{cell}").success
    assert shell.user_ns["known"].results()["n"].tolist() == [2]


def test_a_widget_is_told_from_its_value(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shell, "import ipywidgets\nlimit = ipywidgets.FloatSlider(1.5)").success
    cell = "SELECT count(*) AS n FROM events WHERE v > {{limit}} GROUP BY window(ts, '1 minute')"
    assert not run(shell, f"%%winquery some\n{cell}").success
    said = capsys.readouterr()
    assert "put its `.value` into a variable" in said.out + said.err
    assert run(shell, "limit = limit.value").success
    assert run(shell, f"%%winquery some\n{cell}").success
    assert shell.user_ns["some"].results()["n"].tolist() == [1]
