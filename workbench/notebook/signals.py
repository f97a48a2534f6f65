"""Signals in a notebook: time-centric programs over tables, streams of tables and Spark DataFrames."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from workbench.errors import SourceError
from workbench.session.frames import classic, is_frame
from workbench.temporal import Expression, duration, program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from workbench.runtime.signal_stream import SignalStream


class Signals:
    """Named expressions over one time domain, compiled to one loop on first use.

    ``print(signals)`` shows them as TiLT writes them, the rows that a stretch of time depends on, and the loop.
    """

    def __init__(self, outputs: Mapping[str, Expression], every: str | timedelta | None, at: str | None) -> None:
        self.program = program(outputs, None if every is None else duration(every, "`every`"), at)

    def __repr__(self) -> str:
        return str(self.program)

    def run(self, data: Any, *, time: str, by: str | Sequence[str] = (), threads: int | None = None) -> Any:
        """All values over a table: pandas, polars, whatever gives Arrow, or a mapping of such by the signals' names.

        ``time`` is the column of times, ``by`` those that tell one series from another. Without ``every`` there is a
        row for each row of the table, in its order (pandas: with its index); with it, by key and time. Rows need no
        order. Cost: a sort where they have none, and one pass. The first run of a program compiles it (some seconds,
        kept on disk); time is cut into pieces, which ``threads`` (all processors) compute without waiting.
        """
        from workbench.runtime.signal_tables import run

        given = dict(data) if isinstance(data, Mapping) else {self.program.at: data}
        tables = {name: _arrow(each) for name, each in given.items()}
        found = run(self.program, tables, time, _names(by), threads=threads, aligned=True)
        main = given[self.program.at]
        if isinstance(main, pd.DataFrame):
            frame = found.to_pandas()
            return frame.set_index(main.index) if self.program.every is None else frame
        polars = sys.modules.get("polars")  # who has a table of it has it
        return polars.from_arrow(found) if polars is not None and isinstance(main, polars.DataFrame) else found

    def stream(
        self, *, time: str, by: str | Sequence[str] = (), delay: str | timedelta | None = None
    ) -> SignalStream:
        """The same over rows that keep coming: ``push(table)`` gives the points that are settled, each once.

        Rows may be out of order by ``delay``; those further behind are counted in ``late``.
        """
        from workbench.runtime.signal_stream import SignalStream

        behind = 0 if delay is None else duration(delay, "`delay`")
        return SignalStream(self.program, time, _names(by), behind)

    def on_spark(
        self,
        frame: DataFrame | Mapping[str, DataFrame],
        *,
        time: str,
        by: str | Sequence[str] = (),
        cut: str | timedelta = "1 hour",
        delay: str | timedelta | None = None,
        buckets: int | None = None,
    ) -> DataFrame:
        """All values over a DataFrame of Spark's, or several by the signals' names, by key and time. Lazy.

        A batch: keys and pieces of time are its tasks. Each piece of ``cut`` gets its own rows and those around it
        that boundary resolution asks for, so no task waits for another.

        A stream: points come as soon as they are settled, each once, in append mode; rows may be out of order by
        ``delay``, those further behind are counted as ``late`` in the query's observed metrics. The rows that points
        to come depend on are Spark's state. Keys are dealt to ``buckets`` (one for each core), whose number belongs
        to a checkpoint. The result has a session of its own, with the settings that state needs.
        """
        given = dict(frame) if isinstance(frame, Mapping) else {self.program.at: frame}
        for each in given.values():
            if not is_frame(each):
                raise SourceError(
                    f"signals on Spark read its DataFrames, got `{type(each).__name__}`", hint="`.run(...)`"
                )
        frames = {name: classic(each) for name, each in given.items()}
        from workbench.spark.signals import on_spark

        behind = None if delay is None else duration(delay, "`delay`")
        return on_spark(self.program, frames, time, _names(by), duration(cut, "`cut`"), behind, buckets)


def signals(
    outputs: Mapping[str, Expression] | None = None,
    *,
    every: str | timedelta | None = None,
    at: str | None = None,
    **named: Expression,
) -> Signals:
    """Put expressions of :func:`workbench.signal` together, to be computed at once.

    ``every``: a value at each multiple of that duration, from the first row of a series to its last. Left out: at
    the time of each row, of the table ``at`` where there are several.
    """
    return Signals({**(outputs or {}), **named}, every, at)


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else (by,)
    wrong = next((each for each in names if not isinstance(each, str)), None)
    if wrong is not None:
        raise SourceError(f"`by` is the name of a column, or a list of such, got {wrong!r}")
    return names


def _arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pd.DataFrame):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
        # Views of texts, as polars has them, are what few functions of Arrow take.
        kinds = [pa.string() if pa.types.is_string_view(field.type) else field.type for field in table.schema]
        return table.cast(pa.schema(zip(table.column_names, kinds, strict=True)))
    raise SourceError(
        f"signals are read from a pandas, polars or Arrow table, got `{type(data).__name__}`",
        hint="for files: pandas.read_csv(...), pandas.read_parquet(...); for a Spark DataFrame: `.on_spark(...)`",
    )
