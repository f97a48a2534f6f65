"""Running queries with their live pictures. The only module that brings Bokeh in, so it is loaded on first use."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from workbench.errors import QueryError, did_you_mean
from workbench.logical import Query
from workbench.notebook import api
from workbench.notebook.api import Asked, bind, run
from workbench.plan.drawing import draw
from workbench.session import LiveQuery, Source
from workbench.widgets import Backing, DashboardView, LiveDashboard, QueryForm, ServerHandle, roles_of, save, serve


class Dashboard:
    """A running query with its live picture, in a notebook or from a script.

    In a notebook the object shows itself; in a script :meth:`serve` opens a page and :meth:`save` writes a file.
    """

    def __init__(self, live: LiveQuery) -> None:
        self.query = live

    def view(self) -> DashboardView:
        """A fresh view, for whoever shows it."""
        return live_view(self.query)

    def serve(self, port: int = 0, *, open_browser: bool = False) -> ServerHandle:
        """A page on this machine that follows the query; ``.url`` says where, ``.stop()`` ends it."""
        return serve(self.view, port, open_browser=open_browser)

    def save(self, path: str | Path) -> Path:
        """The picture as it is now, as ``.html`` or ``.svg``."""
        return save(self.view(), path)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the stream; see :meth:`LiveQuery.wait`."""
        return self.query.wait(timeout)

    def stop(self) -> None:
        """Stop the query; the picture stays."""
        self.query.stop()

    def _ipython_display_(self, **_: Any) -> None:
        show(self.query)

    def __repr__(self) -> str:
        return f"Dashboard of {self.query!r}"


def dashboard(
    asked: Asked | LiveQuery,
    *,
    name: str = "query",
    source: Source | str | None = None,
    parameters: Mapping[str, object] | None = None,
    history: bool | None = None,
    numerics: str | None = None,
) -> Dashboard:
    """Start a query (or take a running one) and give it a live, zoomable picture; see :func:`workbench.run`."""
    if isinstance(asked, LiveQuery):
        return Dashboard(asked)
    queries = bind(asked, name, source, single=True, parameters=parameters, numerics=numerics)
    return Dashboard(_run_pictured(queries, history))


def _run_pictured(queries: Sequence[Query], history: bool | None = None) -> LiveQuery:
    """Start the one query there is, unless it has no picture: then nothing starts."""
    (query,) = queries
    api.require_picture(queries)
    return run(query, name=query.name, history=history)


def builder(source: Source | str | None = None) -> QueryForm:
    """A form that puts a query together by hand: SQL and shared plan follow every change; run it, or take the cell.

    ``source`` is the one to begin with. Raises QueryError where there is no source yet.
    """
    session = api.default_session()
    known = session.sources
    if not known:
        raise QueryError("there is no source yet", hint="define one: workbench.source(name, data, time=...)")
    first = source.name if isinstance(source, Source) else source
    if first is not None and first not in known:
        raise QueryError(f"no source `{first}`", hint=did_you_mean(first, known, "source"))
    names = sorted(known, key=lambda name: name != first)

    def plan(sql: str, name: str) -> str:
        return draw(session.plan(bind(sql, name, None)))

    def run_shown(sql: str, name: str) -> LiveDashboard:
        shell = get_ipython()
        if shell is not None:
            api.check_variable(name, shell.user_ns)
        live = _run_pictured(bind(sql, name, None, single=True))
        if shell is not None:
            shell.push({name: live})
        return LiveDashboard.opened(name, live_view(live))

    return QueryForm({name: known[name].stream for name in names}, plan=plan, create=next_cell, run=run_shown)


def next_cell(cell: str) -> str:
    """Put a cell into the notebook; returns where it will be. Pages show it when the next cell has run."""
    shell = get_ipython()
    if shell is None:
        raise QueryError("there is no notebook to put a cell into", hint="copy the SQL instead")
    shell.set_next_input(cell)
    return "the cell will stand below the next one that you run"


def show(live: LiveQuery) -> LiveDashboard:
    """Display the live picture of a query below the running cell, in place of an older one of its name."""
    return LiveDashboard.show(live.name, live_view(live))


def live_view(live: LiveQuery) -> DashboardView:
    """A view of a running query."""
    return DashboardView(live.store, live.name, backing_of(live))


def backing_of(live: LiveQuery) -> Backing:
    """What a dashboard knows of its query."""
    return Backing(
        status=StripFacts(live),
        roles=roles_of(live.query),
        texts=lambda: texts_of(live),
        plan=lambda: draw(live.plan().shared),
        add_level=live.add_level,
    )


def texts_of(live: LiveQuery) -> dict[str, str]:
    """The SQL and the Python of a query; what has no SQL is told as the plan's text has it."""
    try:
        return {"SQL": live.sql(), "Python": live.python()}
    except QueryError:
        return {"Query": str(live.query)}


class StripFacts:
    """What the status strip of a picture shows, anew at every call; remembers when the last row came."""

    def __init__(self, live: LiveQuery) -> None:
        self._live = live
        self._rows = -1
        self._since = time.monotonic()

    def __call__(self) -> dict[str, Any]:
        progress = self._live.progress()
        if progress.rows != self._rows:
            self._rows, self._since = progress.rows, time.monotonic()
        known = progress.watermark is not None and progress.max_event is not None
        work = {name: getattr(progress, name) for name in ("merges", "splits", "recomputations")}
        return {
            "state": progress.state,
            "rows_per_second": progress.rows_per_s,
            "quiet_seconds": time.monotonic() - self._since if progress.state == "running" else None,
            "watermark": progress.watermark,
            "lag": (progress.max_event or 0) - (progress.watermark or 0) if known else None,
            "late_rows": progress.late.get(self._live.name, 0),
            "batch_seconds": progress.batch_seconds or None,
            "state_bytes": progress.state_bytes or None,
            "kept_rows": progress.tuples or None,
            "reworked": work if any(work.values()) else None,
            "error": progress.error,
            "hint": f"`{self._live.name}.progress().details` has all that Spark said" if progress.details else None,
        }
