"""What disorder costs slices and the alternatives: share and size of the delays (*General Stream Slicing* Fig. 12).

Twenty tumbling windows of 1 to 20 s, the sum of an integer, 100,000 rows a second of event time. M rows/s of
processor time of one thread:

- ``share_P_SIDE``: P percent of the rows are delayed by up to 2 s;
- ``delay_D_SIDE``: 20% of the rows are delayed by up to D seconds;
- SIDE is ``slices`` (the whole operator, results in their stores), ``buckets``, ``tuple_buffer`` or
  ``aggregate_tree`` (:mod:`benchmarks.alternatives`: bare loops over arrays, on fewer rows, since they are slow).

All sides' sums of the first case are compared first.
"""

from __future__ import annotations

from benchmarks import alternatives
from benchmarks.workload import Figures, Workload
from benchmarks.workloads import slicing
from workbench.runtime.engine import Engine
from workbench.time import SECOND

WINDOWS = 20
SHARES = (0, 20, 40, 60, 80, 100)
DELAYS = (0.5, 1, 2, 4, 8)
ROWS, QUICK_ROWS, FEW_ROWS = 4_000_000, 1_000_000, 200_000


def run(quick: bool) -> Figures:
    """All cases; a quick run leaves out the alternatives that take a microsecond and more a row."""
    figures: dict[str, float] = {}
    for share in SHARES[:2] if quick else SHARES:
        figures |= _case(f"share_{share}", quick, share / 100, slicing.DELAY)
    for delay in () if quick else DELAYS:
        figures |= _case(f"delay_{delay:g}", quick, 0.2, int(delay * SECOND))
    return figures


def _case(name: str, quick: bool, share: float, delay: int) -> Figures:
    table = slicing.rows(QUICK_ROWS if quick else ROWS, late=True, share=share, delay=delay)
    few = slicing.rows(FEW_ROWS, late=True, share=share, delay=delay)
    figures = {f"{name}_slices": slicing.speed(slicing.plan(WINDOWS, table.schema, delay=delay), table)}
    for side in ("buckets",) if quick else alternatives.NAMES:
        figures[f"{name}_{side}"] = slicing.alternative_speed(side, few, WINDOWS)
    return figures


def warm_up(quick: bool) -> None:
    """Compile the kernels, and compare the sides."""
    few = slicing.rows(FEW_ROWS // 10, late=True)
    compiled = slicing.plan(WINDOWS, few.schema)
    engine = Engine(compiled)
    engine.compile()
    engine.run([few])
    for side in alternatives.NAMES:
        for place, sums in enumerate(slicing.by_alternative(side, few, WINDOWS)):
            table = engine.results[f"q{place}"].table()
            assert [total for total in sums.tolist() if total] == table["t"].to_pylist(), (side, place)


WORKLOAD = Workload(
    name="slicing-disorder",
    summary="share and size of delays, 20 windows, against buckets, a tuple buffer and an aggregate tree",
    group="kernels",
    run=run,
    warm_up=warm_up,
    headline=("share_0_slices", "share_20_slices", "share_20_buckets"),
)
