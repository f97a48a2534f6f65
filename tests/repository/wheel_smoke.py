"""Run by CI with the built wheel installed and no checkout in sight: one small query on Spark, checked by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import workbench

ROWS = pd.DataFrame(
    {
        "ts": pd.to_datetime(["2024-01-01 00:00:10", "2024-01-01 00:00:50", "2024-01-01 00:01:10"], utc=True),
        "room": ["a", "a", "b"],
        "degrees": [20.0, 22.0, 19.0],
    }
)
SQL = "SELECT room, avg(degrees) AS mean, count(*) AS n FROM rooms GROUP BY room, window(ts, '1 minute')"


def main() -> None:
    home = Path(workbench.__file__).parent
    assert "site-packages" in home.parts, f"imported from {home}, not from the wheel"
    assert (home / "py.typed").is_file()
    workbench.source("rooms", ROWS, time="ts", replay="max")
    query = workbench.run(SQL, name="smoke")
    assert query.wait(300), query.status()
    found = query.results(status="final").sort_values(["window_start", "room"])
    assert list(zip(found["room"], found["mean"], found["n"], strict=True)) == [("a", 21.0, 2), ("b", 19.0, 1)], found
    query.stop()
    print(found.to_string(index=False))
    print(f"winquery works from {home}")


if __name__ == "__main__":
    main()
