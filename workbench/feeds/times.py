"""Times as a stream has them: int64 microseconds, UTC, with nothing cut off."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import SourceError

MICROS = pa.timestamp("us", tz="UTC")


def to_micros(column: Any, name: str, where: str) -> Any:
    """A timestamp column in microseconds, UTC; without a zone it counts as UTC. ``where`` is the file, for errors.

    Raises SourceError where the unit is finer than a microsecond and would lose digits, or the time does not fit.
    """
    try:
        return column.cast(MICROS)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"the column `{name}` of `{where}` does not fit into microseconds: {error}",
            hint="round it to microseconds before it is written; nothing is cut off silently",
        ) from None


class TooFineError(pa.ArrowInvalid):  # type: ignore[misc]
    """Times with more digits than microseconds have."""


def stamps(texts: Any) -> Any:
    """Times of texts as in ISO 8601, all with a zone or all without, which counts as UTC; NULL stays NULL.

    Columns that are times already are left alone. Up to nine digits of a second may be written. Raises pyarrow's
    ArrowInvalid, as TooFineError where they are not whole microseconds.
    """
    if not pa.types.is_string(texts.type):
        return texts
    for kind in (pa.timestamp("us"), MICROS, pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            times = texts.cast(kind)
        except pa.ArrowInvalid as error:
            reason = error
        else:
            return whole_micros(times)
    raise reason


def whole_micros(times: Any) -> Any:
    """Times in microseconds, UTC. Raises TooFineError where that would cut digits off."""
    try:
        return times.cast(MICROS)
    except pa.ArrowInvalid:
        fine = pc.not_equal(pc.floor_temporal(times, unit="microsecond"), times)
        first = times.filter(fine)[0].cast(pa.string())
        raise TooFineError(f"'{first}' has more digits than microseconds") from None


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type stand as texts in lines and messages: times and dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def from_text(column: Any, kind: pa.DataType) -> Any:
    """Values of a type for which :func:`is_text` holds, of their texts. Raises pyarrow's ArrowInvalid."""
    return stamps(column).cast(kind) if pa.types.is_timestamp(kind) else column.cast(kind)
