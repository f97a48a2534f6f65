"""Many sliding windows over one event stream, one shared plan on Spark, live zoomable plots in Jupyter.

The names below load on first use: an executor that only folds rows never imports a plotting library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from workbench import datasets, results
    from workbench.errors import DataError, EngineError, QueryError, SourceError, WorkbenchError
    from workbench.notebook import (
        aggregate,
        explain,
        load_ipython_extension,
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
    from workbench.notebook.dashboards import builder, dashboard
    from workbench.notebook.signals import signals
    from workbench.session import LiveQuery
    from workbench.session.topics import KafkaTopic, MqttTopic
    from workbench.temporal import signal

_WHERE = {
    "DataError": "errors",
    "EngineError": "errors",
    "KafkaTopic": "session.topics",
    "LiveQuery": "session",
    "MqttTopic": "session.topics",
    "QueryError": "errors",
    "SourceError": "errors",
    "WorkbenchError": "errors",
    "aggregate": "notebook",
    "builder": "notebook.dashboards",
    "dashboard": "notebook.dashboards",
    "explain": "notebook",
    "load_ipython_extension": "notebook",
    "queries": "notebook",
    "query": "notebook",
    "run": "notebook",
    "signal": "temporal",
    "signals": "notebook.signals",
    "source": "notebook",
    "sources": "notebook",
    "stop_all": "notebook",
    "table": "notebook",
    "tables": "notebook",
    "window_type": "notebook",
}
_MODULES = ("datasets", "results")

__all__ = [
    "DataError",
    "EngineError",
    "KafkaTopic",
    "LiveQuery",
    "MqttTopic",
    "QueryError",
    "SourceError",
    "WorkbenchError",
    "aggregate",
    "builder",
    "dashboard",
    "datasets",
    "explain",
    "load_ipython_extension",
    "queries",
    "query",
    "results",
    "run",
    "signal",
    "signals",
    "source",
    "sources",
    "stop_all",
    "table",
    "tables",
    "window_type",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"workbench.{name}")
    if name in _WHERE:
        value = getattr(import_module(f"workbench.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    hint = ""
    if not name.startswith("_"):  # such are asked for by tools, which only want to know
        from workbench.errors import did_you_mean

        hint = f"; {did_you_mean(name, __all__)}"
    raise AttributeError(f"module `workbench` has no attribute `{name}`{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
