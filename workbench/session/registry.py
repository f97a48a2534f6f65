"""A session: the sources and running queries that names stand for."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from workbench.errors import QueryError, SourceError, did_you_mean
from workbench.language import Catalog, bind_snippet, parse_queries
from workbench.language.relations import Relation
from workbench.logical import Query, Workload
from workbench.logical.joins import StaticTable
from workbench.plan import SharedPlan, compile_workload
from workbench.session.columns import check_options
from workbench.session.frames import explained, source_of, table_of
from workbench.session.launch import Launch, on_spark
from workbench.session.live import LastWord, LiveQuery
from workbench.session.sources import Data, Source
from workbench.session.stream import SharedStream


class Session:
    """Sources by name, and the queries that run on them by name. Thread-safe.

    ``launch`` sets plans running; it is on Spark unless a test says otherwise.
    """

    def __init__(self, launch: Launch = on_spark) -> None:
        self._launch = launch
        self._lock = threading.RLock()
        self._streams: dict[str, SharedStream] = {}
        self._live: dict[str, LiveQuery] = {}
        self._stopped: WeakValueDictionary[str, LiveQuery] = WeakValueDictionary()
        self._tables: dict[str, StaticTable] = {}
        self._snippets: dict[str, str] = {}

    def is_cold(self) -> bool:
        """Whether the next query must wait for Spark to come up first."""
        if self._launch is not on_spark:
            return False
        from workbench.spark.session import is_running

        return not is_running()

    @property
    def sources(self) -> dict[str, Source]:
        """The sources by name."""
        with self._lock:
            return {name: stream.source for name, stream in self._streams.items()}

    def source(self, name: str, data: Data, **options: Any) -> Source:
        """Define a source; see :func:`workbench.source`. An older one of that name ends with its queries."""
        check_options(options)
        made = source_of(name, data, **options)
        with self._lock:
            if name in self._tables:
                raise SourceError(f"`{name}` is a static table", hint="give the source another name")
            older = self._streams.pop(name, None)
            if older is not None:
                older.stop()
            self._streams[name] = SharedStream(made, self._launch)
        return made

    @property
    def tables(self) -> dict[str, StaticTable]:
        """The static tables by name."""
        with self._lock:
            return dict(self._tables)

    def table(self, name: str, data: Data) -> StaticTable:
        """Define a static table; see :func:`workbench.table`. Running queries keep the one they began with."""
        made = table_of(name, data)
        with self._lock:
            if name in self._streams:
                raise SourceError(f"`{name}` is a source", hint="give the table another name")
            self._tables[name] = made
        return made

    @property
    def snippets(self) -> dict[str, str]:
        """The saved statements by name."""
        with self._lock:
            return dict(self._snippets)

    def save(self, name: str, sql: str, **asked: Any) -> Relation:
        """Keep a statement without windows under a name, after a look whether it is one; see :meth:`parse`."""
        if not name.isidentifier():
            raise QueryError(f"`{name}` cannot name a snippet", hint="use letters, digits and `_`")
        relation = bind_snippet(name, sql, self._catalog(**asked), asked.get("source"))
        with self._lock:
            self._snippets[name] = sql
        return relation

    def parse(
        self,
        sql: str,
        *,
        name: str,
        source: str | None = None,
        snippets: Collection[str] = (),
        parameters: Mapping[str, object] | None = None,
    ) -> tuple[Query, ...]:
        """The queries of a piece of SQL on the session's sources. Raises QueryError; starts nothing.

        ``source`` is read by a statement without FROM; ``snippets`` are the names of saved statements that FROM may
        use, before sources of the same name; ``parameters`` the values of ``{{name}}``.
        """
        catalog = self._catalog(source=source, snippets=snippets, parameters=parameters)
        return parse_queries(sql, catalog, name=name, default_stream=source)

    def _catalog(
        self,
        source: str | None = None,
        snippets: Collection[str] = (),
        parameters: Mapping[str, object] | None = None,
    ) -> Catalog:
        streams, saved = {key: entry.stream for key, entry in self.sources.items()}, self.snippets
        if source is not None and source not in streams:
            raise QueryError(f"no source `{source}`", hint=did_you_mean(source, streams, "source"))
        for name in snippets:
            if name not in saved:
                raise QueryError(f"no snippet `{name}`", hint=did_you_mean(name, saved, "snippet"))
        used = {name: saved[name] for name in snippets}
        return Catalog(streams, self.tables, used, [name for name in saved if name not in used], parameters or {})

    def plan(self, queries: tuple[Query, ...]) -> SharedPlan:
        """The shared plan that these queries would run in, beside those that run already. Starts nothing."""
        stream = self._stream(queries)
        kept = {query.name: query for query in stream.queries} | {query.name: query for query in queries}
        return compile_workload(Workload(stream.source.stream, tuple(kept.values())))

    def explain(self, queries: tuple[Query, ...]) -> str:
        """The printed form of :meth:`plan`."""
        return explained(self._stream(queries).source, self.plan(queries))

    def start(self, queries: tuple[Query, ...], *, history: bool | None = None) -> list[LiveQuery]:
        """Run queries in the shared plan of their source. A name in use is taken over from the older query.

        ``history``: from the first row of the source on, rather than from now on; by default where the source can be
        read again; see :class:`SharedStream`.
        """
        with self._lock:
            stream = self._stream(queries)
            self._let_go()
            before = dict(self._stopped)  # with a checkpoint any of them may run again
            before |= {query.name: self._live[query.name] for query in queries if query.name in self._live}
            older = {name: (handle, handle.last_word()) for name, handle in before.items()}
            elsewhere = {
                query.name for other in self._streams.values() if other is not stream for query in other.queries
            }
            try:
                stream.add(queries, history=history, elsewhere=elsewhere)
            except KeyboardInterrupt:  # perhaps in the waiting for what runs all the same
                self._take(stream, queries, older)
                raise
            return self._take(stream, queries, older)

    def _take(
        self, stream: SharedStream, queries: tuple[Query, ...], before: Mapping[str, tuple[LiveQuery, LastWord]]
    ) -> list[LiveQuery]:
        """Handles for those of the queries that run; only now, as they do, are those ``before`` them left behind.

        What goes on in the background has a handle of the session's, too.
        """
        asked = [query for query in queries if query in stream.queries]
        known = {handle.store for handle in self._live.values()}
        others = [each for each in stream.queries if each.name in stream.background]
        running = [*asked, *(each for each in others if stream.store_of(each.name) not in known)]
        handles = [LiveQuery(query, stream.store_of(query.name), stream) for query in running]
        for newer in handles:
            older, word = before.get(newer.name, (newer, None))
            if word is not None and older.store is not newer.store:
                if older.query.stream.name != newer.query.stream.name:
                    older.stop()
                older.leave(word)
        self._live |= {handle.name: handle for handle in handles}
        return handles[: len(asked)]

    def _let_go(self) -> None:
        """Queries that have stopped stay, with their results, only while somebody has their handles."""
        running = self._running()
        for name in [name for name in self._live if name not in running]:
            self._stopped[name] = self._live.pop(name)

    def _running(self) -> set[str]:
        return {query.name for stream in self._streams.values() for query in stream.queries}

    def queries(self) -> list[LiveQuery]:
        """The handles of the queries that run, of those in the background too."""
        with self._lock:
            running = self._running()
            return [handle for name, handle in self._live.items() if name in running]

    def stop_all(self) -> None:
        """Stop every query; sources stay."""
        with self._lock:
            for stream in self._streams.values():
                stream.stop()

    def _stream(self, queries: tuple[Query, ...]) -> SharedStream:
        names = {query.stream.name for query in queries}
        if len(names) != 1:
            raise QueryError(f"the statements of one cell must read one source, got {len(names)}")
        name = names.pop()
        with self._lock:
            if name not in self._streams:
                raise QueryError(f"no source `{name}`", hint=did_you_mean(name, self._streams, "source"))
            return self._streams[name]


@cache
def default_session() -> Session:
    """The session behind :mod:`workbench`'s functions and the magics; its queries stop with the process."""
    session = Session()
    atexit.register(_stop, session, os.getpid())
    return session


def _stop(session: Session, process: int) -> None:
    if os.getpid() == process:  # a fork that ends is not the end of the queries
        session.stop_all()
