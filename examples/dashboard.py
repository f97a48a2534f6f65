"""The quickstart's query without a notebook: watch it in a browser and in the terminal, keep the picture.

    python examples/dashboard.py

The year 2013 passes at a month a second. A line per second says how far it has come; at the end the worst days are
printed and the picture is kept as ``delays.html``, a file that needs nothing else and can be zoomed.
"""

from __future__ import annotations

import workbench

SQL = """
SELECT carrier, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst, count(*) AS n
FROM flights WHERE dep_delay IS NOT NULL
GROUP BY carrier, zoom(ts, '15 minutes / 1 minute', '2 hours / 10 minutes', '1 day / 1 hour')
"""


def main() -> None:
    workbench.source("flights", workbench.datasets.flights(), time="ts", replay="30 days/s")
    board = workbench.dashboard(SQL, name="delays")
    page = board.serve()
    print(f"watch it live: {page.url}\n\n{board.query.explain()}\n")
    while not board.wait(timeout=1):
        status = board.query.status()
        print(f"{status.state}: {status.rows:,} flights, {status.rows_per_s:,.0f} a second")
    days = board.query.results(level="1 day / 1 hour", status="final")
    print(days[days["n"] >= 50].sort_values("mean_delay", ascending=False).head(10).to_string(index=False))
    print(f"kept: {board.save('delays.html')}")
    page.stop()
    board.stop()


if __name__ == "__main__":
    main()
