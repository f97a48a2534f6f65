"""Two files of JSON lines side by side: medians before and after, and their ratio."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.runner import short

Figure = tuple[str, str]


def medians(path: Path) -> dict[Figure, float]:
    """The median of each figure by (workload, figure); lines that are not JSON objects are passed over."""
    values: dict[Figure, list[float]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            values[record["workload"], record["figure"]].append(record["value"])
    return {figure: statistics.median(found) for figure, found in values.items()}


def compare(before: Path, after: Path) -> str:
    """A table with a line for each figure of either file; ``after / before`` where both have it."""
    old, new = medians(before), medians(after)
    rows: list[tuple[str, ...]] = [("workload", "figure", before.name, after.name, "ratio")]
    for figure in sorted({*old, *new}):
        left, right = old.get(figure), new.get(figure)
        ratio = f"{right / left:.2f}" if left and right is not None else "-"
        rows.append((*figure, *("-" if value is None else short(value) for value in (left, right)), ratio))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
