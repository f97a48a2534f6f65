"""Spark DataFrames as sources: a streaming one is a stream, a batch one or a table is one that has ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import QueryError, SourceError, did_you_mean
from workbench.logical.joins import StaticTable
from workbench.plan import SharedPlan, explain
from workbench.session.sources import Source, check_name, make_source, make_stream, make_table
from workbench.time import parse_duration

if TYPE_CHECKING:
    from workbench.spark.frames import FrameOptions

_VARIANTS = ("auto", "arrow", "tungsten")
#: What the options of recorded data are where nobody gives them.
_USUAL = {"replay": "max", "max_rows": None, "follow": False}


@dataclass(frozen=True)
class FrameSource(Source):
    """A DataFrame of the user's under a name; ``options`` say how it is run."""

    options: FrameOptions = field(kw_only=True)

    @property
    def is_streaming(self) -> bool:
        """Whether rows go on coming."""
        return bool(self.options.frame.isStreaming)

    @property
    def rewinds(self) -> bool:
        """A stream begins where its own source says: a second run of it may see other rows."""
        return not self.is_streaming

    @property
    def own_options(self) -> dict[str, object]:
        level1 = self.options.level1
        return {"trigger": self.options.trigger, "level1": None if level1 == "auto" else level1}

    def level1(self, plan: SharedPlan) -> str:
        """How the rows of a plan become partials, and why so: a line of ``explain``."""
        if self.is_streaming:
            return "arrow: Spark hands the columns of the plan to Python, in the tasks that read them"
        from workbench.spark.tungsten import chosen

        variant, reason = chosen(plan, self.options.level1)
        return f"{variant}: {reason}"

    def __repr__(self) -> str:
        columns = ", ".join(f"{each.name} {each.type}" for each in self.stream.schema)
        kind = "a streaming DataFrame" if self.is_streaming else "a batch DataFrame"
        return f"Source `{self.name}`: {kind}, event time `{self.stream.time}` ({columns})"


def explained(source: Source, plan: SharedPlan) -> str:
    """The printed form of a plan over a source."""
    text = explain(plan)
    return f"{text}\n  level 1 {source.level1(plan)}" if isinstance(source, FrameSource) else text


def is_frame(data: object) -> bool:
    """Whether something is a Spark DataFrame of whatever kind. Imports nothing."""
    return _kind(data) is not None


def _kind(data: object) -> Literal["classic", "connect", "pandas"] | None:
    for base in type(data).__mro__:
        if base.__name__ == "DataFrame" and base.__module__.startswith("pyspark."):
            parts = base.__module__.split(".")
            return "connect" if "connect" in parts else "pandas" if parts[1] == "pandas" else "classic"
    return None


def classic(data: Any) -> Any:
    """A DataFrame that can be a source. Raises SourceError for those of Spark Connect and of pandas on Spark."""
    kind = _kind(data)
    if kind == "connect":
        raise SourceError(
            "this DataFrame is one of Spark Connect, whose callbacks cannot reach the notebook",
            hint="use a classic session: `SparkSession.builder.master('local[*]').getOrCreate()` in a fresh kernel",
        )
    if kind == "pandas":
        raise SourceError("this is a DataFrame of pandas on Spark", hint="`df.to_spark()` is one of Spark")
    return data


def source_of(
    name: str,
    data: Any,
    *,
    trigger: str | None = None,
    level1: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Source:
    """A source from whatever can be one: a Spark DataFrame, or what :func:`make_source` takes.

    Raises SourceError for options that do not apply to the data.
    """
    if checkpoint is not None:
        if is_frame(data) and not classic(data).isStreaming:
            raise SourceError("`checkpoint` is for streams: a batch DataFrame is read once, from its first row")
        made = source_of(name, data, trigger=trigger, level1=level1, **options)
        if made.backfill:
            raise SourceError("`checkpoint` is for streams: a backfill reads all rows in one job")
        return replace(made, checkpoint=Path(checkpoint).expanduser().resolve())
    if is_frame(data):
        return _frame_source(name, classic(data), trigger, level1, **options)
    if trigger is not None or level1 != "auto":
        option = "trigger" if trigger is not None else "level1"
        raise SourceError(f"`{option}` is for Spark DataFrames, `{name}` is made of recorded data")
    return make_source(name, data, **options)


def table_of(name: str, data: Any) -> StaticTable:
    """A static table from whatever can be one: a batch DataFrame, or what :func:`make_table` takes."""
    if not is_frame(data):
        return make_table(name, data)
    if classic(data).isStreaming:
        raise SourceError(
            f"the table `{name}` cannot be a streaming DataFrame: its rows do not change",
            hint="`spark.read` makes batch ones; a stream is defined by `workbench.source`",
        )
    return make_table(name, data.toArrow())


def _frame_source(
    name: str,
    data: Any,
    trigger: str | None,
    level1: str,
    *,
    time: str | None = None,
    delay: str | None = None,
    lateness: str | None = None,
    future: str | None = None,
    store: str = "auto",
    **recorded: object,
) -> FrameSource:
    """A source from a DataFrame; options of ``recorded`` data are refused, unless they are the usual ones."""
    from workbench.spark.frames import FrameOptions, check_time, schema_of

    check_name(name, "a source")
    for option, value in recorded.items():
        if value != _USUAL.get(option):
            raise SourceError(
                f"`{option}` is for recorded data, not for a DataFrame", hint="Spark reads it as its own source says"
            )
    schema = schema_of(data)
    stream = make_stream(name, schema, check_time(data, time, name), delay, lateness, future, store=store)
    if level1 not in _VARIANTS:
        raise SourceError(f"no level 1 `{level1}`", hint=did_you_mean(level1, _VARIANTS))
    if data.isStreaming:
        if level1 == "tungsten":
            raise SourceError(
                "level 1 `tungsten` is for batch DataFrames, this one is streaming",
                hint="on a stream Spark's own aggregation holds results back: leave `level1` out",
            )
        _check_trigger(trigger)
    elif trigger is not None:
        raise SourceError(
            "`trigger` is for streaming DataFrames, this one is batch",
            hint="`spark.readStream` makes streaming ones; a batch one is read once, and all its windows are final",
        )
    options = FrameOptions(data, trigger, level1)
    return FrameSource(stream, (), None, None, None, options=options)


def _check_trigger(trigger: str | None) -> None:
    if trigger in (None, "available_now"):
        return
    try:
        parse_duration(str(trigger))
    except QueryError as error:
        raise SourceError(
            f"cannot read the trigger: {error.message}", hint="`available_now`, or how often, such as `5 seconds`"
        ) from None
