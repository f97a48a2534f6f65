"""Tab completion, asked the way a notebook asks: the cell and the place of the cursor."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest
from inprocess import InProcessRunner
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from workbench.notebook import api, commands, completion, magics
from workbench.session import Session

ODD = pa.table({"when": pa.array([0], pa.timestamp("us", "UTC")), "odd name": [1], "a`b": [2], "a.c": [3]})
TABLE = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "carrier": ["UA"], "dep_delay": [1.0]})


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    session = Session(launch=InProcessRunner)
    session.source("flights", TABLE, time="ts")
    session.source("odd", ODD, time="when")
    session.table("airlines", pd.DataFrame({"code": ["UA"], "title": ["United"]}))
    session.save("late", "SELECT ts, carrier FROM flights WHERE dep_delay > 0")
    with pytest.MonkeyPatch.context() as patch:
        for module in (api, commands, completion, magics):
            patch.setattr(module, "default_session", lambda: session)
        shell = InteractiveShell.instance()
        magics.load_ipython_extension(shell)
        magics.load_ipython_extension(shell)
        shell.push({"limit": 30, "frame": TABLE, "_hidden": 1})
        shell.run_cell("%%winquery delays\nSELECT count(*) AS n FROM flights GROUP BY window(ts, '1 hour')")
        yield shell
        InteractiveShell.clear_instance()


def completed(shell: InteractiveShell, cell: str) -> list[str]:
    """What the piece before the cursor, written `|`, becomes."""
    before, _, after = cell.partition("|")
    with provisionalcompleter():
        return [each.text for each in shell.Completer.completions(before + after, len(before))]


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("%%winquery x --so|", ["--source"]),
        ("%%winquery x --source |", ["flights", "odd"]),
        ("%%winquery x --with la|", ["late"]),
        ("%%winquery x\nSELECT count(*) FROM fl|", ["flights"]),
        ("%%winquery x --with late\nSELECT count(*) FROM la|", ["late"]),
        ("%%winquery x\nSELECT car| FROM flights", ["carrier"]),
        ("%%winquery x\nSELECT count(*) FROM flights AS f WHERE f.de|", ["f.dep_delay"]),
        ("%%winquery x\nSELECT count(*) FROM flights JOIN air|", ["airlines"]),
        ("%%winquery x\nSELECT count(*) FROM flights JOIN airlines a ON carrier = a.c|", ["a.code"]),
        ("%%winquery x\nSELECT count(*) FROM flights WHERE date_t|", ["date_trunc("]),
        ("%%winquery x\nSELECT count_d|", ["count_distinct("]),
        ("%%winquery x\nSELECT count(*) FROM flights GROUP BY zo|", ["zoom("]),
        ("%%winquery x\nSELECT count(*) FROM flights HAV|", ["HAVING"]),
        ("%%winquery x\nSELECT count(*) FROM flights WHERE dep_delay > {{lim|", ["limit"]),
        ("%%winquery x --source odd\nSELECT odd|", ["`odd name`"]),
        ("%%winquery x --source odd\nSELECT max(whe|", ["WHEN", "WHERE", "`when`"]),
        ("%%winquery x --source odd\nSELECT `odd|", ["odd name`"]),
        ("%%winquery x --source odd\nSELECT `odd na|` FROM odd", ["odd name"]),
        ("%%winquery x --source odd\nSELECT `a|", ["a.c`", "a``b`"]),
        ("%%winquery x\nSELECT max(o.odd| FROM odd AS o", ["o.`odd name`"]),
        ("%winquery stat|", ["status"]),
        ("%winquery stop de|", ["delays"]),
        ("%winquery tables |", ["airlines"]),
        ("%winquery help |", ["functions"]),
    ],
)
def test_completes(shell: InteractiveShell, cell: str, wanted: list[str]) -> None:
    assert completed(shell, cell) == wanted


def test_a_value_that_is_no_constant_is_not_offered(shell: InteractiveShell) -> None:
    assert completion.complete("%%winquery x\nSELECT {{fr", "", shell.user_ns) == ("fr", [])
    assert completion.complete("%%winquery x\nSELECT {{_hi", "", shell.user_ns) == ("_hi", [])


def test_nothing_of_ours_between_quotes_and_in_other_cells(shell: InteractiveShell) -> None:
    for cell in (
        "%%winquery x\nSELECT 'car|",
        "%%winquery x\nSELECT 1 -- car|",
        "car|",
    ):
        assert "carrier" not in completed(shell, cell)


def test_every_option_is_offered() -> None:
    parser = magics.WinqueryMagics.winquery.parser
    long = {word for action in parser._actions for word in action.option_strings if word.startswith("--")}
    assert long == set(completion.OPTIONS)
