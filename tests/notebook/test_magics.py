"""The magics in a real IPython shell, on the in-process runner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from inprocess import InProcessRunner
from IPython.core.interactiveshell import InteractiveShell

from workbench.notebook import api, magics
from workbench.session import LiveQuery, Session

TABLE = pa.table(
    {"ts": pa.array([0, 1_000_000], pa.timestamp("us", "UTC")), "carrier": ["UA", "B6"], "v": [1.0, 2.0]}
)
SQL = "SELECT carrier, sum(v) AS total FROM events GROUP BY carrier, window(ts, '2 seconds')"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    session = Session(launch=InProcessRunner)
    session.source("events", TABLE, time="ts")
    for module in (api, magics):
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


def test_several_statements_are_several_handles(shell: InteractiveShell) -> None:
    assert run(shell, f"%%winquery pair\n{SQL};\n{SQL.replace('sum', 'max')};").success
    assert {"pair", "pair_2"} <= shell.user_ns.keys()


def test_one_wrong_statement_starts_nothing(shell: InteractiveShell) -> None:
    """Case E4."""
    before = len(InProcessRunner.started)
    assert not run(shell, f"%%winquery pair\n{SQL};\nSELECT nothing FROM events").success
    assert not run(shell, "%%winquery empty\n-- only a comment").success
    assert len(InProcessRunner.started) == before


def test_line_commands(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, f"%%winquery totals\n{SQL}")
    capsys.readouterr()
    for line, expected in [
        ("%winquery", "totals on events: finished"),
        ("%winquery sources", "Source `events`: 2 rows"),
        ("%winquery status totals", "totals: finished"),
        ("%winquery explain totals", "SharedPlan of `events`"),
        ("%winquery plan totals", "SharedPlan of `events`"),
    ]:
        assert run(shell, line).success
        assert expected in capsys.readouterr().out
    assert not run(shell, "%winquery stopp").success
    assert not run(shell, "%winquery stop total").success
    capsys.readouterr()
    assert run(shell, "%winquery stop totals").success
    run(shell, "%winquery list")
    assert "no query is running" in capsys.readouterr().out
