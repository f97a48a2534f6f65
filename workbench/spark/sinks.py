"""Results into any sink of Spark's, micro-batch by micro-batch, in the same pass as into the store.

A sink may see a micro-batch twice, after a crash or where the plan changed while it ran. In a folder each has a
place by its number that is written over, so its rows are there exactly once; a function gets the number and can do
the same; a table gets it as a column. A result is identified by level, key and window start, or window number
(:func:`~workbench.results.rows.columns_of`), wherever it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from workbench.errors import QueryError, did_you_mean
from workbench.results import QueryResults, ResultBatch
from workbench.results.rows import rows_of
from workbench.results.told import Told

#: What is called with the results of a micro-batch and its number.
Function = Callable[[DataFrame, int], object]
#: The number of the results that were out before the sink was attached.
BEFORE = -1

_FILES = ("parquet", "orc", "json", "csv")
_FORMATS = (*_FILES, "table", "console")


@dataclass
class SparkSink:
    """Writes results of one query to ``target``: a function, a folder (of a format of files), a table, the console.

    ``status`` is ``"final"`` (final ones and what revises or withdraws them) or ``"all"`` (provisional ones too).
    ``lateness`` is that of the stream, None where the ends of windows are no times at which they could be settled.
    """

    session: SparkSession
    results: QueryResults
    target: Function | str | None
    format: str = "parquet"
    status: Literal["final", "all"] = "final"
    lateness: int | None = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    _run: int = -1
    #: What came up to this micro-batch was out when the sink was attached.
    _filled: int = -1
    _told: Told | None = None

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise QueryError(
                f"no sink of format `{self.format}`",
                hint=did_you_mean(self.format, _FORMATS) + "; a function of (DataFrame, batch) writes to any other",
            )
        if self.status not in ("final", "all"):
            raise QueryError(f"no status `{self.status}` of a sink", hint="`final`, or `all`, provisional ones too")
        if not (self.target is None or isinstance(self.target, str) or callable(self.target)):
            raise QueryError(
                f"a sink is a folder, a table's name or a function, got {self.target!r}",
                hint="a function is called with a DataFrame and the number of the micro-batch",
            )
        if self.target is None and self.format != "console":
            raise QueryError(f"a sink of format `{self.format}` needs a target", hint="a folder, or a table's name")
        own = [name for name, _ in (*self.results.schema.keys, *self.results.schema.values)]
        if self.format in (*_FILES, "table") and not callable(self.target) and "batch" in map(str.casefold, own):
            raise QueryError(
                "a folder or table has the number of the micro-batch as `batch`, as a result column is called too",
                hint="give that one another name with AS, or write by a function",
            )
        if self._is_folder and self._places():
            raise QueryError(
                f"the folder `{self.target}` is not empty, so it would not tell which results are of this query",
                hint="name another one, or empty it",
            )

    @property
    def _statuses(self) -> tuple[str, ...]:
        return ("final", "revised") if self.status == "final" else ("provisional", "final", "revised")

    @property
    def _is_folder(self) -> bool:
        return isinstance(self.target, str) and self.format in _FILES

    def fill(self, run: int, kept: pa.Table, latest: int) -> None:
        """Write the results that were out when the sink was attached, as micro-batch -1: those up to ``latest``."""
        self._begin(run, latest)
        self._put(kept, BEFORE)

    def _begin(self, run: int, filled: int) -> None:
        self._run, self._filled = run, filled
        if self.lateness is not None and (self.lateness or self.status == "all"):
            self._told = Told(self.results.schema, self._statuses, self.lateness)

    def write(self, run: int, batch: int, results: list[ResultBatch], labels: list[str]) -> None:
        """Write the results of a micro-batch. A later run tells everything again, so what is there of others goes.

        A micro-batch that runs again, but was out when the sink was attached, is there already.
        """
        if run < self._run or (run == self._run and batch <= self._filled):
            return
        if run > self._run:
            if self._is_folder:
                self._clear()
            self._begin(run, -1)
        self._put(rows_of(self.results.schema, results, labels), batch)

    def _put(self, rows: pa.Table, batch: int) -> None:
        if self._told is None:
            wanted = (*self._statuses, "absent") if self.lateness is None else self._statuses
            rows = rows.filter(pc.is_in(rows["status"], pa.array(wanted)))
        else:
            rows = self._told.fitting(rows, batch)
        if not len(rows):
            return
        frame = self.session.createDataFrame(rows)
        if callable(self.target):
            self.target(frame, batch)
        elif self.format == "console":
            print(f"batch {batch}")
            frame.show(n=20, truncate=False)
        elif self.format == "table":
            from pyspark.sql import functions as F

            frame.withColumn("batch", F.lit(batch)).write.options(**self.options).mode("append").saveAsTable(
                str(self.target)
            )
        else:
            place = f"{self.target}/batch={batch}"
            frame.coalesce(1).write.format(self.format).options(**self.options).mode("overwrite").save(place)

    def _places(self) -> list[Any]:
        """What is in the folder, on whatever file system it is."""
        folder, system = self._folder()
        return list(system.listStatus(folder)) if system.exists(folder) else []

    def _clear(self) -> None:
        _, system = self._folder()
        for place in self._places():
            system.delete(place.getPath(), True)

    def _folder(self) -> tuple[Any, Any]:
        jvm = self.session._jvm
        folder = jvm.org.apache.hadoop.fs.Path(self.target)
        return folder, folder.getFileSystem(self.session._jsc.hadoopConfiguration())
