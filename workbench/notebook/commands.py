"""``%winquery COMMAND``: what can be asked of sources, tables, snippets and running queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from IPython.display import display

from workbench.algebra import AGGREGATES
from workbench.errors import QueryError, did_you_mean
from workbench.language.over_functions import OVER_FUNCTIONS
from workbench.language.windows import window_forms
from workbench.logical.functions import SYNTAX_ONLY, THEMES
from workbench.notebook import api
from workbench.session import LiveQuery, default_session


@dataclass(frozen=True)
class Command:
    """A word behind ``%winquery``. ``run`` gets the words after it and may give what the cell shows."""

    run: Callable[[list[str]], Any]
    arguments: str
    help: str


def run_command(words: list[str]) -> Any:
    """Do what a line says; without a word it is ``list``. Raises QueryError for an unknown one."""
    name, arguments = (words[0], words[1:]) if words else ("list", [])
    if name not in COMMANDS:
        raise QueryError(f"no command `{name}`", hint=did_you_mean(name, COMMANDS, "command"))
    return COMMANDS[name].run(arguments)


def running(name: str) -> LiveQuery:
    """The running query of a name."""
    handles = {handle.name: handle for handle in api.queries()}
    if name not in handles:
        raise QueryError(f"no running query `{name}`", hint=did_you_mean(name, handles, "running query"))
    return handles[name]


def _handles(names: list[str]) -> list[LiveQuery]:
    handles = [running(name) for name in names] or api.queries()
    if not handles:
        print("no query is running")
    return handles


def _list(names: list[str]) -> None:
    for handle in _handles(names):
        where = ", in the background" if handle.in_background else ""
        print(f"{handle.name} on {handle.query.stream.name}: {handle.progress().state}{where}")


def _status(names: list[str]) -> None:
    for handle in _handles(names):
        print(handle.status())


def _plan(names: list[str]) -> None:
    for handle in _handles(names):
        display(handle.plan())


def _explain(names: list[str]) -> None:
    for handle in _handles(names):
        print(handle.explain())


def _stop(names: list[str]) -> None:
    handles = _handles(names)
    if names:
        for handle in handles:
            handle.stop()
    else:  # at once: what is stopped alone does not go on from a checkpoint
        api.stop_all()
    for handle in handles:
        print(f"stopped {handle.name}")


def _levels(names: list[str]) -> None:
    for handle in _handles(names):
        for label, counts in handle.status().windows.items():
            print(f"{handle.name}: {label}: {sum(counts.values()):,} windows")


def _results(names: list[str]) -> pd.DataFrame | None:
    handles = _handles(names)
    if len(handles) > 1:
        raise QueryError("of which query?", hint=f"running: {', '.join(handle.name for handle in handles)}")
    return handles[0].results() if handles else None


def _logs(names: list[str]) -> None:
    for handle in _handles(names):
        progress = handle.progress()
        print(f"{handle.name}: {progress.state}, {progress.error or 'nothing went wrong'}")
        if progress.details:
            print(f"\nall that Spark said:\n{progress.details}")


def _sources(names: list[str]) -> None:
    _show(api.sources(), names, "source", "workbench.source(name, data, time=...)")


def _tables(names: list[str]) -> None:
    _show(api.tables(), names, "table", "workbench.table(name, data)")


def _snippets(names: list[str]) -> None:
    shown = {name: f"{name}:\n{sql.strip()}" for name, sql in default_session().snippets.items()}
    _show(shown, names, "snippet", "%%winquery --save NAME")


def _show(known: dict[str, Any], names: list[str], noun: str, how: str) -> None:
    """Print all, or those of some names."""
    for name in names:
        if name not in known:
            raise QueryError(f"no {noun} `{name}`", hint=did_you_mean(name, known, noun))
    chosen = [known[name] for name in names or known]
    print("\n".join(map(str, chosen)) or f"no {noun} yet: {how}")


def _help(topics: list[str]) -> None:
    if topics and topics[0] not in ("functions", "function"):
        raise QueryError(
            f"no help on `{topics[0]}`", hint="`%winquery help` and `%winquery help functions` are there"
        )
    print(functions_text() if topics else usage())


def usage() -> str:
    """What can be written behind ``%winquery`` and ``%%winquery``, in a screenful."""
    width = max(len(f"{name} {command.arguments}") for name, command in COMMANDS.items())
    lines = [f"  %winquery {f'{name} {each.arguments}':{width}}  {each.help}" for name, each in COMMANDS.items()]
    return "\n".join(
        [
            "%%winquery NAME      run the SQL of the cell; `NAME` becomes its handle",
            "%winquery --help     options of a cell",
            "",
            *lines,
        ]
    )


def functions_text() -> str:
    """The names of all functions by theme, aggregates and window forms."""
    themes = {
        theme: sorted(name for each in functions for name in (each.name, *each.aliases) if name not in SYNTAX_ONLY)
        for theme, functions in THEMES.items()
    }
    themes |= {"aggregates": sorted(AGGREGATES), "before OVER": sorted(OVER_FUNCTIONS)}
    themes |= {"window forms": sorted(window_forms())}
    return "\n".join(f"{theme}: {', '.join(names)}" for theme, names in themes.items())


COMMANDS = {
    "list": Command(_list, "", "the running queries"),
    "status": Command(_status, "[NAME ...]", "how queries are doing: rows, watermark, windows, late rows"),
    "levels": Command(_levels, "[NAME ...]", "the zoom levels of queries and how many windows each has"),
    "results": Command(_results, "[NAME]", "the results of a query so far, as a table"),
    "explain": Command(_explain, "[NAME ...]", "the shared plan that queries run in"),
    "plan": Command(_plan, "[NAME ...]", "the same as a picture"),
    "logs": Command(_logs, "[NAME ...]", "why a query failed, with the trace of Spark"),
    "stop": Command(_stop, "[NAME ...]", "stop queries, all without a name; their results stay"),
    "sources": Command(_sources, "[NAME ...]", "the streams that FROM can name"),
    "tables": Command(_tables, "[NAME ...]", "the static tables that JOIN can name"),
    "snippets": Command(_snippets, "[NAME ...]", "the statements kept by `%%winquery --save NAME`"),
    "help": Command(_help, "[functions]", "this text, or the names of all functions"),
}
