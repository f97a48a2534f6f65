"""What the values of a column are to a plot: numbers, whole numbers, truths or times; their axis, their text."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
from bokeh.models import (
    BasicTicker,
    CustomJSHover,
    CustomJSTickFormatter,
    DatetimeTicker,
    DatetimeTickFormatter,
    FixedTicker,
    LinearAxis,
    TickFormatter,
)

from workbench.time import DAY

#: Numbers at an axis, all in one form: plain ones with marks between thousands, unless powers of ten are shorter.
_NUMBERS = r"""
const power = (number) => Math.floor(Math.log10(Math.abs(number)) + 1e-9)
const most = Math.max(...ticks.map(Math.abs))
const steps = ticks.slice(1).map((each, place) => Math.abs(each - ticks[place])).filter((step) => step > 0)
const last = power(steps.length ? Math.min(...steps) : most || 1)
const places = Math.max(0, -last)
const plain = (number) => number.toLocaleString("en", {minimumFractionDigits: places, maximumFractionDigits: places})
const short = (number) => {
  const digits = Math.min(15, Math.max(0, power(number) - last))
  return Math.abs(number) < 10 ** last / 2 ? "0" : number.toExponential(digits).replace("e+", "e")
}
const widest = (write) => Math.max(...ticks.map((each) => write(each).length))
const fits = places < 16 && (most === 0 || most >= 1e-3) && most < 1e16
return (fits && widest(plain) <= Math.max(9, widest(short) + 2) ? plain : short)(tick).replaceAll("-", "\u2212")
"""
_TRUTHS = 'return tick === 1 ? "true" : "false"'
_SAID_NUMBER = """
const whole = Number.isInteger(value) && Math.abs(value) < 1e15
return whole ? value.toLocaleString("en") : value.toPrecision(6)
"""
_SAID_TRUTH = 'return value ? "true" : "false"'
_SAID_TIME = """
return new Date(value).toISOString().replace("T", " ").replace(/( 00:00:00)?[.]000Z$/, "").replace("Z", "")
"""


class Kind(Enum):
    """How the values of a column are written."""

    NUMBER = "number"
    WHOLE = "whole"
    TRUTH = "truth"
    TIME = "time"


def kind_of(kind: pa.DataType) -> Kind:
    """The kind of a column of this type."""
    if pa.types.is_boolean(kind):
        return Kind.TRUTH
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Kind.TIME
    return Kind.WHOLE if pa.types.is_integer(kind) else Kind.NUMBER


def scale_of(kind: pa.DataType) -> float:
    """What a kept value is multiplied by for its axis: times are milliseconds there, as BokehJS has them."""
    if pa.types.is_date(kind):
        return DAY / 1_000
    return 1e-3 if pa.types.is_timestamp(kind) else 1.0


def measure(axis: LinearAxis, kind: Kind) -> None:
    """Give a value axis ticks and numbers of a kind. No tick stands between two whole numbers."""
    if kind is Kind.TRUTH:
        axis.update(ticker=FixedTicker(ticks=[0, 1]), formatter=CustomJSTickFormatter(code=_TRUTHS))
    elif kind is Kind.TIME:
        axis.update(ticker=DatetimeTicker(), formatter=_times())
    else:
        ticker = BasicTicker(min_interval=1) if kind is Kind.WHOLE else BasicTicker()
        axis.update(ticker=ticker, formatter=CustomJSTickFormatter(code=_NUMBERS))


def said(kind: Kind) -> CustomJSHover:
    """How the value under the mouse is written."""
    return CustomJSHover(code={Kind.TRUTH: _SAID_TRUTH, Kind.TIME: _SAID_TIME}.get(kind, _SAID_NUMBER))


def _times() -> TickFormatter:
    """Times at a value axis, where there is one line for each: the day as well as the clock."""
    clock, seconds = "%d %b %H:%M", "%d %b %H:%M:%S"
    return DatetimeTickFormatter(
        microseconds="%H:%M:%S.%3N", milliseconds="%H:%M:%S.%3N", seconds=seconds, minsec=seconds,
        minutes=clock, hourmin=clock, hours=clock, days="%d %b %Y", months="%b %Y", years="%Y",
    )  # fmt: skip
