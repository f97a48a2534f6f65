"""A stage for browser tests: cells that fill a result store in the background and show its dashboard."""

from __future__ import annotations

#: Fills a store by one simulated minute every 50 ms: 20 per second, three levels, six keys.
FILL = '''
import threading, time
import numpy as np, pyarrow as pa
from workbench.results import Level, QueryResults, ResultBatch, Schema
from workbench.time import DAY, HOUR, MINUTE, SECOND, parse_duration
from workbench.widgets import Backing, DashboardView, LiveDashboard, Roles

levels = (Level("15 minutes / 1 minute", 15 * MINUTE, MINUTE), Level("2 hours / 10 minutes", 2 * HOUR, 10 * MINUTE),
          Level("1 day / 1 hour", DAY, HOUR))
values = (("mean_delay", pa.float64()), ("least", pa.float64()), ("worst", pa.float64()), ("n", pa.int64()))
results = QueryResults(Schema("delays", levels, (("carrier", pa.string()),), values))
carriers = ["AA", "B6", "DL", "EV", "UA", "WN"]
began = 1_356_998_400 * SECOND

def put(first, last):
    """Windows of all levels that start in a range; the ones still open are provisional."""
    batches = []
    for position, level in enumerate(levels):
        low = max(began, first - level.size) // level.slide * level.slide
        starts = np.arange(low, last, level.slide)
        for number, carrier in enumerate(carriers):
            hours = starts / HOUR
            mean = 14 + 9 * np.sin(hours / 3.1 + number) + 3 * np.sin(hours * 2.3 + 5 * number)
            count = np.round(40 + 25 * np.sin(hours / 4 + number) ** 2).astype(np.int64)
            status = np.where(starts + level.size > last, 1, 2)
            batches.append(ResultBatch.of(position, starts, (pa.array([carrier] * len(starts)),),
                (pa.array(mean), pa.array(mean - count / 5), pa.array(mean + count), pa.array(count)),
                status.astype(np.int8), np.zeros(len(starts), np.int16)))
    results.apply(batches)

state = dict(state="running", rows_per_second=48_210, watermark=began, late_rows=17, lag=10 * MINUTE,
             batch_seconds=0.41, state_bytes=1_250_000)

def add_level(label):
    """A finer level, filled at once."""
    level = Level(label, *(parse_duration(part) for part in label.split(" / ")))
    results.add_level(level, 0)
    globals()["levels"] = (level, *levels)
    put(*live.view.visible)

backing = Backing(lambda: state, Roles({"mean_delay": ("least", "worst")}, "n"),
                  lambda: {"SQL": "SELECT carrier, avg(dep_delay) AS mean_delay", "Python": "import workbench"},
                  lambda: "<b>no plan stands behind this stage</b>", add_level)

def fill():
    last = began + 40 * HOUR
    put(began, last)
    while running:
        time.sleep(0.05)
        put(last, last + MINUTE)
        last += MINUTE
        state["watermark"] = last - 10 * MINUTE

running = True
writer = threading.Thread(target=fill, daemon=True)
writer.start()
'''
SHOW = 'live = LiveDashboard.show("delays", DashboardView(results, "Flight delays by carrier", backing))'
#: Ends the writer of a stage that was filled before in the same kernel.
REST = """
if "writer" in globals():
    running = False
    writer.join()
    live.close()
"""
#: A table of rides, a day of them.
RIDES = """
import numpy as np, pyarrow as pa
from tests.inprocess import InProcessRunner, SteppingRunner
from workbench.notebook import api, dashboards
from workbench.session import Session
seconds = np.arange(0, 86_400, 20)
rides = pa.table({
    "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
    "zone": [f"zone {n % 5}" for n in range(len(seconds))],
    "vendor": [n % 2 for n in range(len(seconds))],
    "fare": 12 + 8 * np.sin(seconds / 9_000) + seconds % 7,
    "distance": 3 + np.cos(seconds / 5_000),
})
"""
#: A session without Spark, with a source of rides, for the form.
FORM = (
    RIDES
    + """
session = Session(launch=InProcessRunner)
session.source("rides", rides, time="ts")
api.default_session = lambda: session
"""
)
#: A query on a source that sends only when it is told to.
SILENT = (
    RIDES
    + """
session = Session(launch=SteppingRunner)
session.source("rides", rides, time="ts", delay="0 s")
sql = "SELECT zone, avg(fare) AS fare FROM rides GROUP BY zone, zoom(ts, '30 minutes / 10 minutes')"
(live,) = session.start(session.parse(sql, name="fares"))
def send(steps):
    for _ in range(steps):
        SteppingRunner.started[-1].step(10)
"""
)
BUSY = "import time\nend = time.time() + 20\nwhile time.time() < end: sum(range(1000))\nprint('done')"
STOP = (
    "running = False\nwriter.join()\nlive.close()\nprint([t.name for t in threading.enumerate() if 'dash' in t.name])"
)
