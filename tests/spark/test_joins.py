"""The Yahoo streaming benchmark's query: views of ads, by the campaign that a static table gives to each ad.

Counted by campaign and window of 10 seconds: by us from Parquet files on Spark, by Spark's batch engine, and by hand.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.events import SECOND
from workbench.feeds import ReplayOptions
from workbench.language import Catalog, parse_queries
from workbench.logical import Stream, Workload
from workbench.logical.joins import StaticTable
from workbench.plan import compile_workload
from workbench.runtime.wire import Report
from workbench.spark.runner import StreamRunner

pytestmark = pytest.mark.spark

SQL = """
SELECT c.campaign, count(*) AS views
FROM events JOIN campaigns AS c ON events.ad = c.ad
WHERE event_type = 'view'
GROUP BY c.campaign, window(ts, '10 seconds')
"""
ADS = [f"ad-{number}" for number in range(40)]
#: Ads that nobody sees, so many that the plan is larger than what Spark hands to a stateful operator.
UNSEEN = [random.Random(number).randbytes(16).hex() for number in range(80_000)]
#: Ten ads a campaign; the last two ads are in no campaign, and the first is in two.
CAMPAIGNS = pa.table(
    {
        "campaign": [f"campaign-{number // 10}" for number in range(38)] + ["campaign-9", "nobody"] + UNSEEN,
        "ad": [*ADS[:38], ADS[0], None, *UNSEEN],
    }
)


def events(rows: int = 3_000) -> pa.Table:
    chance = random.Random(2015)
    times = sorted(chance.randrange(-20 * SECOND, 60 * SECOND) for _ in range(rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "ad": [chance.choice([*ADS, None]) for _ in range(rows)],
            "event_type": [chance.choice(["view", "click", "purchase"]) for _ in range(rows)],
        }
    )


def by_hand(table: pa.Table) -> Counter[tuple[str, int]]:
    campaigns_of: dict[str, list[str]] = {}
    for row in CAMPAIGNS.to_pylist():
        campaigns_of.setdefault(row["ad"], []).append(row["campaign"])
    found: Counter[tuple[str, int]] = Counter()
    for row in table.to_pylist():
        if row["event_type"] == "view" and row["ad"] is not None:
            for campaign in campaigns_of.get(row["ad"], []):
                found[campaign, int(row["ts"].timestamp() // 10 * 10)] += 1
    return found


def test_views_by_campaign(spark: Any, tmp_path: Path) -> None:
    table = events()
    pq.write_table(table, tmp_path / "events.parquet")
    stream = Stream("events", table.schema, "ts", 0)
    catalog = Catalog({"events": stream}, {"campaigns": StaticTable.of("campaigns", CAMPAIGNS)})
    plan = compile_workload(Workload(stream, parse_queries(SQL, catalog, name="q")))
    assert len(pickle.dumps(plan)) > 1 << 20
    found: Counter[tuple[str, int]] = Counter()

    def take(reports: list[Report]) -> None:
        for _, batch in (result for report in reports for result in report.results):
            own = batch.own()
            rows = zip(own.keys[0].to_pylist(), own.starts, own.values[0].to_pylist(), strict=True)
            for campaign, start, views in rows:
                found[campaign, int(start) // SECOND] = views

    runner = StreamRunner(spark, plan, ReplayOptions((str(tmp_path / "events.parquet"),), max_rows=700), take)
    runner.start()
    assert runner.wait(180)
    assert runner.progress().state == "finished", runner.progress().details

    spark.createDataFrame(table).createOrReplaceTempView("events")
    spark.createDataFrame(CAMPAIGNS).createOrReplaceTempView("campaigns")
    batch = spark.sql(SQL.replace("AS views", "AS views, unix_seconds(window.start) AS start")).toArrow().to_pylist()
    assert {(row["campaign"], row["start"]): row["views"] for row in batch} == by_hand(table)
    assert found == by_hand(table)
    assert len(found) > 30
