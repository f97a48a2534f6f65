"""The compiled loop: as the definition has it, and as pandas and pencil have it, in threads and on Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporal.programs import SECOND, arrays, expected, listed, near, rows_of

import workbench
from workbench.errors import DataError, QueryError, SourceError
from workbench.runtime.signals import evaluate
from workbench.temporal import Expression, program, signal

x, y = signal("x"), signal("y")
spread = (x - x.window("3 s").mean()).abs()
#: Between them every reduction, operation on neighbours, and a window of windows.
PROGRAMS: dict[str, tuple[dict[str, Expression], int | None]] = {
    "windows": (
        {
            "n": x.window("2 s").count(),
            "sum": (x * y).window("2 s").sum(),
            "low": x.window("3 s").min(),
            "high": y.tumbling("3 s").max(),
            "var": x.window("3 s").var().shift("1 s"),
            "kurtosis": x.window("10 s").kurtosis(),
        },
        None,
    ),
    "neighbours": (
        {"line": x.interpolate(), "lag": x.previous(2), "lead": y.following(), "fresh": signal("x", hold="2 s") + 1},
        SECOND,
    ),
    "inner": ({"spread": spread.window("5 s").mean(), "skewness": x.window("5 s").skewness()}, None),
}


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=30)
@given(st.data())
def test_the_compiled_loop_equals_the_definition(name: str, data: st.DataObject) -> None:
    made = program(*PROGRAMS[name])
    drawn = {"rows": data.draw(rows_of(2))}
    rows = arrays(drawn["rows"])
    # All columns as those with gaps, so that each program is compiled once.
    full = {column: np.ones(len(rows), np.bool_) for column in ("x", "y")}
    rows = type(rows)(rows.keys, rows.times, rows.columns, full | dict(rows.present))
    found = listed(evaluate(made, {"rows": rows}, 2, threads=2, cut=data.draw(st.integers(1, 8))))
    wanted = expected(made, drawn, 2)
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    for (key, time, mine), (_, _, its) in zip(found, wanted, strict=True):
        assert all(map(near, mine, its)), (key, time, mine, its)


@pytest.fixture(scope="module")
def trades() -> pd.DataFrame:
    """A price a second or so for two symbols, in no order; one time a row."""
    random = np.random.default_rng(7)
    times = random.choice(40_000_000_000, 20_000, replace=False)
    prices = random.integers(1, 1000, 20_000).astype(float)
    stamps = pd.to_datetime(times, unit="us", utc=True)
    return pd.DataFrame({"ts": stamps, "symbol": random.choice(["A", "B"], 20_000), "price": prices})


def test_means_and_deviations_equal_those_of_pandas(trades: pd.DataFrame) -> None:
    """As pandas rolls over time, per symbol, rows back in the order they came in, with their index."""
    price = workbench.signal("price")
    trades = trades.set_index(np.arange(len(trades)) * 3)
    wanted = workbench.signals(mean=price.window("20 s").mean(), std=price.window("1 minute").std())
    found = wanted.run(trades, time="ts", by="symbol")
    assert found.index.equals(trades.index)
    assert found["ts"].equals(trades["ts"].astype("datetime64[us, UTC]"))
    for _, own in trades.sort_values("ts").groupby("symbol"):
        rolled = own.set_index("ts")["price"].rolling
        np.testing.assert_allclose(found.loc[own.index, "mean"], rolled("20s").mean())
        np.testing.assert_allclose(found.loc[own.index, "std"], rolled("60s").std(), atol=1e-6)


def test_a_spike_leaves_nothing_behind(trades: pd.DataFrame) -> None:
    """After 1e90 and an infinity, windows without them are what they were (design: numerics)."""
    price = workbench.signal("price")
    rows = trades[trades.symbol == "A"].sort_values("ts").reset_index(drop=True)
    spiked = rows.copy()
    spiked.loc[100, "price"], spiked.loc[5000, "price"] = 1e90, np.inf
    made = workbench.signals(sum=price.window("30 s").sum(), var=price.window("30 s").var())
    plain, other = (made.run(each, time="ts") for each in (rows, spiked))
    near_spike = sum((rows.ts >= rows.ts[n]) & (rows.ts < rows.ts[n] + pd.Timedelta("30s")) for n in (100, 5000)) > 0
    assert near_spike.sum() > 2
    pd.testing.assert_series_equal(plain["sum"][~near_spike], other["sum"][~near_spike], rtol=0, atol=0)


def test_two_tables_join_in_time() -> None:
    """By hand: a trade and the quote that holds at its time."""
    quotes = pa.table({"ts": _times(1, 5, 9), "bid": [10.0, 20.0, 30.0]})
    trades = pa.table({"ts": _times(0, 1, 6, 9), "price": [1.0, 12.0, 21.0, 33.0]})
    bid, price = workbench.signal("bid", of="quotes"), workbench.signal("price", of="trades")
    over = workbench.signals(over=price - bid, at="trades")
    assert over.run({"quotes": quotes, "trades": trades}, time="ts")["over"].to_pylist() == [None, 2.0, 1.0, 3.0]


def test_whatever_gives_arrow_can_be_read() -> None:
    """As polars does: a stream of Arrow whose texts are views; no key is one as well. Sums by hand."""

    class Table:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            keys = pa.array(["a", None, "a", None]).cast(pa.string_view())
            table = pa.table({"ts": _times(0, 1, 2, 3), "k": keys, "x": [1.0, 2.0, 4.0, 8.0]})
            return table.__arrow_c_stream__(requested_schema)

    found = workbench.signals(sum=workbench.signal("x").window("10 s").sum()).run(Table(), time="ts", by="k")
    assert found.column("k").to_pylist() == ["a", None, "a", None]
    assert found.column("sum").to_pylist() == [1.0, 2.0, 5.0, 10.0]


def test_resampling_by_hand() -> None:
    """0 at 0 s, 4 at 4 s, then 10 at 6 s: a straight line between them, the last value at its own time alone."""
    rows = pd.DataFrame({"ts": pd.to_datetime([0, 4, 6], unit="s"), "v": [0.0, 4.0, 10.0]})
    made = workbench.signals(v=workbench.signal("v").interpolate(), every="1 s")
    assert made.run(rows, time="ts")["v"].tolist() == [0, 1, 2, 3, 4, 7, 10]


def test_spark_gives_the_same(spark: Any, trades: pd.DataFrame) -> None:
    """Cut by key and time into tasks, each with the rows that it needs."""
    price = workbench.signal("price", hold="1 minute")
    made = workbench.signals(high=price.window("5 minutes").max(), off=price - price.window("1 minute").mean())
    frame = made.on_spark(spark.createDataFrame(trades), time="ts", by="symbol", cut="1 hour")
    found = frame.toPandas().sort_values(["symbol", "ts"]).reset_index(drop=True)
    wanted = made.run(trades, time="ts", by="symbol").sort_values(["symbol", "ts"]).reset_index(drop=True)
    assert len(found) == 20_000
    np.testing.assert_array_equal(found["ts"].astype("datetime64[us]"), wanted["ts"].dt.tz_localize(None))
    for name in ("high", "off"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"time": "when"}, SourceError, "no column `when`"),
        ({"time": "price"}, SourceError, "not a timestamp"),
        ({"by": "sym"}, SourceError, "did you mean `symbol`"),
        ({"data": [1, 2]}, SourceError, "pandas, polars or Arrow"),
        ({"output": signal("symbol")}, SourceError, "a signal is a number"),
        ({"null": True}, DataError, "1 rows have no `ts`"),
        ({"name": "ts"}, QueryError, "name it otherwise"),
    ],
)
def test_bad_input_says_what_and_why(
    trades: pd.DataFrame, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    output = change.pop("output", signal("price"))
    data = change.pop("data", trades)
    if change.pop("null", False):
        data = data.copy()
        data.loc[3, "ts"] = pd.NaT
    made = workbench.signals({change.pop("name", "out"): output})
    with pytest.raises(error, match=message):
        made.run(data, **({"time": "ts", "by": "symbol"} | change))


def _times(*seconds: int) -> pa.Array:
    return pa.array([second * SECOND for second in seconds]).cast(pa.timestamp("us"))
