"""Signals over streaming DataFrames: each point once, as pandas has it, from any checkpoint on, below a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench
from tests.spark.events import wait_for
from tests.spark.test_backfill import ODD
from workbench.errors import SourceError
from workbench.session import Session

pytestmark = pytest.mark.spark

FILES, DELAY, LATE = 6, pd.Timedelta("20s"), 3
SCHEMA = "ts timestamp, symbol string, price double"


@pytest.fixture(scope="module")
def trades() -> pd.DataFrame:
    """Two prices a second of five symbols, one time a row, in an order of arrival that is off by less than DELAY."""
    random = np.random.default_rng(11)
    seconds = np.sort(random.choice(10_000, 4_000, replace=False)) / 10
    arrival = np.argsort(seconds + random.uniform(0, DELAY.total_seconds(), len(seconds)), kind="stable")
    stamps = pd.to_datetime(seconds * 1e6, unit="us", utc=True)
    symbols = random.choice(["A", "B", "C", "D", None], len(seconds), p=[0.4, 0.3, 0.2, 0.099, 0.001])
    rows = pd.DataFrame({"ts": stamps, "symbol": symbols, "price": random.integers(1, 100, len(seconds)) * 1.0})
    return rows.iloc[arrival].reset_index(drop=True)


def write(rows: pd.DataFrame, folder: Path, first: int, last: int) -> None:
    """Some of the FILES files of the rows, read in the order of their numbers."""
    folder.mkdir(exist_ok=True)
    for number in range(first, last):
        piece = rows[number * len(rows) // FILES : (number + 1) * len(rows) // FILES]
        piece.to_parquet(folder / f"{number}.parquet", coerce_timestamps="us", index=False)


def files(spark: Any, folder: Path) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(frame: Any, out: Path) -> Any:
    """All that is available, into Parquet, with a checkpoint beside it; the query that has ended."""
    writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{out}-checkpoint")
    query = writer.start(str(out), format="parquet")
    query.awaitTermination()
    return query


def fast_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean of the last minute of each symbol and the price before, by pandas."""
    found = []
    for _, own in rows.sort_values("ts").groupby("symbol", dropna=False):
        mean = own.rolling("60s", on="ts")["price"].mean()
        found.append(own.assign(mean=mean, before=own["price"].shift()))
    return pd.concat(found).sort_values("ts", ignore_index=True)


def trend() -> Any:
    price = workbench.signal("price")
    return workbench.signals(mean=price.window("1 minute").mean(), before=price.previous())


def test_each_point_once_also_from_a_checkpoint(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    """Half of the files, then the others by another query from the same checkpoint; three rows are too late."""
    rows = trades.copy()
    passed = rows.index >= len(rows) // 2
    lost = rows.index[passed][100 : 100 + LATE]
    rows.loc[lost, "ts"] -= pd.Timedelta("3 minutes")
    late = 0
    for first, last in ((0, FILES // 2), (FILES // 2, FILES)):
        write(rows, tmp_path / "in", first, last)
        frame = trend().on_spark(files(spark, tmp_path / "in"), time="ts", by="symbol", delay=DELAY, buckets=3)
        query = run(frame, tmp_path / "out")
        told = [progress.observedMetrics.values() for progress in query.recentProgress]
        late += sum(row["late"] or 0 for rows in told for row in rows)
    assert late == LATE
    found = pd.read_parquet(tmp_path / "out").sort_values("ts", ignore_index=True)
    wanted = fast_of(rows.drop(index=lost))
    wanted = wanted[wanted["ts"] < rows["ts"].max() - DELAY]
    assert len(found) == len(wanted) > 3_500
    assert (found["ts"].dt.tz_localize("UTC").reset_index(drop=True) == wanted["ts"].reset_index(drop=True)).all()
    assert (found["symbol"].fillna("") == wanted["symbol"].fillna("")).all()
    np.testing.assert_allclose(found["mean"], wanted["mean"], rtol=1e-12)
    np.testing.assert_array_equal(found["before"], wanted["before"])


def test_windows_over_signals(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    """The signals are the source of a query: one Spark query with the state of both."""
    write(trades, tmp_path / "in", 0, FILES)
    points = trend().on_spark(files(spark, tmp_path / "in"), time="ts", by="symbol", delay=DELAY)
    session = Session()
    session.source("trend", points, time="ts", delay="0 s", trigger="available_now")
    sql = "SELECT symbol, max(mean) AS high, count(*) AS n FROM trend GROUP BY symbol, window(ts, '1 minute')"
    (handle,) = session.start(session.parse(sql, name="q"))
    handle.wait(120)
    assert handle.status().state == "finished", handle.status()
    found = handle.results(format="arrow").to_pandas().set_index(["window_start", "symbol"]).sort_index()
    wanted = fast_of(trades)
    wanted = wanted[wanted["ts"] < trades["ts"].max() - DELAY]
    minutes = wanted.groupby([wanted["ts"].dt.floor("1min").rename("window_start"), "symbol"], dropna=False)
    expected = minutes.agg(high=("mean", "max"), n=("mean", "size")).sort_index()
    assert found["n"].tolist() == expected["n"].tolist()
    np.testing.assert_allclose(found["high"], expected["high"], rtol=1e-12)


def test_two_tables_join_in_time(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    """Each trade with the quote that held, as pandas joins them; as streams, one ahead of the other, and batches."""
    quotes = trades.assign(ts=trades["ts"] + pd.Timedelta("350ms"), price=trades["price"] + 0.5)
    quotes = quotes[quotes["symbol"] != "C"].iloc[: len(quotes) * 2 // 3]
    write(trades, tmp_path / "trades", 0, FILES)
    write(quotes, tmp_path / "quotes", 0, FILES)
    bid, price = workbench.signal("price", of="quotes"), workbench.signal("price", of="trades")
    over = workbench.signals(over=price - bid, high=bid.window("10 s").max(), at="trades")
    streams = {name: files(spark, tmp_path / name) for name in ("quotes", "trades")}
    run(over.on_spark(streams, time="ts", by="symbol", delay=DELAY), tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out").sort_values("ts", ignore_index=True)
    whole = {name: spark.read.parquet(str(tmp_path / name)) for name in streams}
    batch = over.on_spark(whole, time="ts", by="symbol").toPandas().sort_values("ts", ignore_index=True)
    sides = [
        each.fillna({"symbol": ""}).sort_values("ts") for each in (trades, quotes.rename(columns={"price": "bid"}))
    ]
    wanted = pd.merge_asof(*sides, on="ts", by="symbol")
    assert len(batch) == len(wanted)
    np.testing.assert_allclose(batch["over"], wanted["price"] - wanted["bid"])
    settled = wanted[wanted["ts"] < quotes["ts"].max() - DELAY]
    assert len(found) == len(settled) > 2_000
    np.testing.assert_allclose(found["over"], settled["price"] - settled["bid"])
    pd.testing.assert_frame_equal(found, batch[: len(found)])


def test_a_session_with_settings_of_its_own_gives_the_same(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    """As a batch, whose functions run in that session; by a key that is an instant, too."""
    theirs = spark.newSession()
    for name, value in ODD.items():
        theirs.conf.set(name, value)
    rows = trades.dropna().assign(day=lambda each: each["ts"].dt.floor("1h"))
    write(rows, tmp_path / "in", 0, FILES)
    schema = f"{SCHEMA}, day timestamp".replace("timestamp", "timestamp_ltz")
    frame = theirs.read.schema(schema).parquet(str(tmp_path / "in"))
    trend().on_spark(frame, time="ts", by=["symbol", "day"]).write.parquet(str(tmp_path / "out"))
    found, wanted = pd.read_parquet(tmp_path / "out").sort_values("ts", ignore_index=True), fast_of(rows)
    assert found["symbol"].tolist() == wanted["symbol"].tolist()
    for column in ("ts", "day"):
        assert found[column].dt.tz_localize("UTC").tolist() == wanted[column].tolist()
    np.testing.assert_allclose(found[["mean", "before"]], wanted[["mean", "before"]])


def test_a_checkpoint_of_other_buckets_is_refused(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    write(trades, tmp_path / "in", 0, 2)
    run(trend().on_spark(files(spark, tmp_path / "in"), time="ts", by="symbol", buckets=2), tmp_path / "out")
    write(trades, tmp_path / "in", 2, 3)
    with pytest.raises(Exception, match=r"the checkpoint has the keys in 2 buckets, not in 3"):
        run(trend().on_spark(files(spark, tmp_path / "in"), time="ts", by="symbol", buckets=3), tmp_path / "out")


def test_what_is_for_streams_alone(spark: Any) -> None:
    batch = spark.createDataFrame([], SCHEMA)
    with pytest.raises(SourceError, match="streaming"):
        trend().on_spark(batch, time="ts", by="symbol", delay="1 s")
    with pytest.raises(SourceError, match="no column `when`"):
        trend().on_spark(batch, time="when", by="symbol")
    with pytest.raises(SourceError, match="reads no table `row`"):
        trend().on_spark({"row": batch}, time="ts", by="symbol")
    with pytest.raises(SourceError, match="read its DataFrames, got `list`"):
        trend().on_spark([1], time="ts", by="symbol")
    with pytest.raises(SourceError, match="there is no DataFrame `rows`"):
        trend().on_spark({}, time="ts", by="symbol")


def test_a_second_query_on_signals_that_run(spark: Any, trades: pd.DataFrame, tmp_path: Path) -> None:
    """The plan changes while it runs: the points go on where they were, each once, for both queries."""
    write(trades, tmp_path / "in", 0, FILES // 2)
    points = trend().on_spark(files(spark, tmp_path / "in"), time="ts", by="symbol", delay=DELAY)
    session = Session()
    session.source("trend", points, time="ts", delay="0 s")
    sql = "SELECT count(*) AS n, sum(before) AS total FROM trend GROUP BY window(ts, '10 s')"
    handles = [session.start(session.parse(sql, name="first"))[0]]
    assert handles[0].wait_for_results(120)
    handles += session.start(session.parse(sql.replace("n,", "m,"), name="second"))
    write(trades, tmp_path / "in", FILES // 2, FILES)
    wanted = fast_of(trades)
    wanted = wanted[wanted["ts"] < trades["ts"].max() - DELAY]
    whole = wanted.groupby(wanted["ts"].dt.floor("10s").rename("window_start"))["before"].agg(["size", "sum"])
    whole = whole[:-1]  # the last window is still open
    ends = [whole.index.max()] * 2
    wait_for(lambda: [final(each).index.max() for each in handles] == ends, 120, "the last windows")
    first, second = map(final, handles)
    session.stop_all()
    assert first["n"].tolist() == whole["size"].tolist()
    np.testing.assert_allclose(first["total"], whole["sum"])
    later = whole[whole.index >= second.index.min()]
    assert 10 < len(later) < len(whole)
    assert second["m"].tolist() == later["size"].tolist()


def final(handle: Any) -> pd.DataFrame:
    return handle.results(status="final", format="arrow").to_pandas().set_index("window_start").sort_index()
