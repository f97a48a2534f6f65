"""Running queries with their live pictures. The only module that brings Bokeh in, so it is loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.notebook.api import Asked, run
from workbench.session import LiveQuery, Source
from workbench.widgets import DashboardView, LiveDashboard, ServerHandle, save, serve


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
) -> Dashboard:
    """Start a query (or take a running one) and give it a live, zoomable picture; see :func:`workbench.run`."""
    if isinstance(asked, LiveQuery):
        return Dashboard(asked)
    return Dashboard(run(asked, name=name, source=source, parameters=parameters))


def show(live: LiveQuery) -> LiveDashboard:
    """Display the live picture of a query below the running cell, in place of an older one of its name."""
    return LiveDashboard.show(live.name, live_view(live))


def live_view(live: LiveQuery) -> DashboardView:
    """A view of a running query."""
    return DashboardView(live.store, live.name, lambda: strip_facts(live))


def strip_facts(live: LiveQuery) -> dict[str, Any]:
    """What the status strip of a picture shows."""
    progress = live.progress()
    return {
        "state": progress.state,
        "rows_per_second": progress.rows_per_s,
        "watermark": progress.watermark,
        "late_rows": progress.late.get(live.name, 0),
        "error": progress.error,
    }
