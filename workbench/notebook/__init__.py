"""What users call: functions for scripts and cells, and the magics. Thin over :mod:`workbench.session`."""

from workbench.notebook.api import (
    aggregate,
    explain,
    queries,
    query,
    run,
    source,
    sources,
    stop_all,
    table,
    tables,
    window_type,
)
from workbench.notebook.magics import load_ipython_extension

__all__ = [
    "aggregate",
    "explain",
    "load_ipython_extension",
    "queries",
    "query",
    "run",
    "source",
    "sources",
    "stop_all",
    "table",
    "tables",
    "window_type",
]
