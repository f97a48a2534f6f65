"""Levels of a query that come and go while its results stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.logical import AnyWindow, Query, Window, Workload
from workbench.plan import compile_workload
from workbench.results import QueryResults
from workbench.runtime.lowering import result_schema


class Levels:
    """The levels of a store, which are those of ``query`` until another query takes it over."""

    def __init__(self, query: Query, store: QueryResults) -> None:
        self._windows: tuple[AnyWindow, ...] = query.windows
        self._store = store

    def widen(self, query: Query) -> None:
        """Make room for levels of ``query`` that are not there yet."""
        (entry,) = compile_workload(Workload(query.stream, (query,))).queries
        for level, window in zip(result_schema(entry).levels, query.windows, strict=True):
            if window not in self._windows:
                windows = in_order((*self._windows, window))
                self._store.add_level(level, windows.index(window))
                self._windows = windows

    def narrow(self, query: Query) -> None:
        """Forget levels that ``query`` does not have."""
        for window in [window for window in self._windows if window not in query.windows]:
            self._store.drop_level(self._windows.index(window))
            self._windows = tuple(each for each in self._windows if each != window)


def in_order(windows: Iterable[AnyWindow]) -> tuple[AnyWindow, ...]:
    """Zoom levels from fine to coarse."""
    regular = [window for window in windows if isinstance(window, Window)]
    return tuple(sorted(regular, key=lambda each: (each.size, each.slide, each.offset)))


def differ_in_levels(one: Query, other: Query) -> bool:
    """Whether two queries are not the same, and nothing but their zoom levels differs."""
    zoom = all(in_order(query.windows) == query.windows for query in (one, other))
    return zoom and one != other and replace(one, windows=other.windows) == other
