"""What level 1 gains by looking at its rows, where these change in the middle of the stream (*Grizzly* Fig. 12, 13).

**Conditions.** Three of equal cost, ``LIKE`` on a text each, that 1%, 50% and 90% of the rows pass; from the middle
on 90%, 50% and 1%. Batches of 65,536 rows, the filter alone:

- ``where_adaptive_m_s``: M rows a second with the order that the filter finds; ``where_all_m_s`` with every condition
  asked about every row, as it was before; ``where_best_m_s``, ``where_worst_m_s`` the fixed orders, of all six, that
  are the fastest and the slowest over the whole stream; ``where_ideal_m_s`` the best of each half.
- ``where_by_all``, ``where_by_worst``, ``where_by_best``, ``where_by_ideal``: adaptive by each of these.

**Keys.** 65,536 rows a batch of 10,000 integer keys, from the middle on of 100,000; count and sum a second and key,
two buckets, the whole of level 1:

- ``keys_adaptive_m_s``, ``keys_before_m_s``: M rows a second with what is learned kept from batch to batch, and as it
  was before, with a hash for the bucket of each key of each batch; ``keys_by_before``; ``keys_given_up``: how many
  ranges had to be given up.
- ``pairs_...``: the same for 100 x 90 combinations of two columns, which do not change, and were numbered by a hash.

Clock: processor time; medians of 3 interleaved rounds. The rows that pass are compared with Python's first.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import peers
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload
from workbench.language import parse_queries
from workbench.logical import Expression, Stream
from workbench.logical import Workload as Queries
from workbench.plan import SharedPlan, compile_workload
from workbench.runtime.expressions import evaluate_filter
from workbench.runtime.keyrange import KeyProfile
from workbench.runtime.level1 import Level1, folders_of
from workbench.runtime.predicates import Order, Sampling
from workbench.runtime.selection import Filter
from workbench.time import SECOND

ROWS, QUICK_ROWS, BATCHES, ROUNDS, QUICK_ROUNDS = 1 << 16, 1 << 13, 32, 3, 2
SHARES = (0.01, 0.5, 0.9)
KEYS, MORE_KEYS, PAIRS, BUCKETS = 10_000, 100_000, (100, 90), 2
STAMP = pa.timestamp("us", "UTC")
FIELDS = [("ts", STAMP), *((name, pa.string()) for name in "abc"), ("k", pa.int64()), ("j", pa.int64())]
TEXTS = Stream("t", pa.schema(FIELDS), "ts", 0)
WHERE = "a LIKE '%yes%' AND b LIKE '%yes%' AND c LIKE '%yes%'"


def texts(rows: int, shares: Sequence[float]) -> pa.RecordBatch:
    """Rows of which a share in each column passes its condition."""
    random = np.random.default_rng(5)
    words = np.array(["nothing of that here", "or perhaps yes there"])
    columns = [pa.array(words[(random.random(rows) < share).astype(int)]) for share in shares]
    return pa.record_batch([pa.array(np.arange(rows)).cast(STAMP), *columns], names=["ts", *"abc"])


def keyed(rows: int, number: int, first: int, second: int) -> pa.RecordBatch:
    """Rows of one second with keys below ``first`` and ``second``."""
    random = np.random.default_rng(number)
    times = np.sort(random.integers(0, SECOND, rows)) + number * SECOND
    columns = [pa.array(random.integers(0, most, rows)) for most in (first, second)]
    return pa.record_batch([pa.array(times).cast(STAMP), *columns], names=["ts", "k", "j"])


def plan_of(select: str) -> SharedPlan:
    """The plan of one statement."""
    return compile_workload(Queries(TEXTS, parse_queries(select, {"t": TEXTS}, name="q")))


def whole() -> Expression:
    """The condition."""
    where = plan_of(f"SELECT count(*) AS n FROM t WHERE {WHERE} GROUP BY window(ts, '1 s')").folds[0].where
    assert where is not None
    return where


def filter_of() -> Filter:
    """A filter that has seen nothing."""
    return Filter(whole(), frozenset({"ts"}))


def fixed(order: tuple[int, ...], batch: pa.RecordBatch) -> Filter:
    """A filter of one order, which takes rows out as the adaptive one does and never learns."""
    made = filter_of()
    made(batch)
    assert made.profile is not None
    dear = statistics.mean(each.cost for each in made.profile.predicates)
    rest = tuple(dear * (len(order) - place) for place in range(len(order)))
    moved = tuple(Sampling.move * (1 + len(order) - place) for place in range(len(order)))
    made.profile.sampling = Sampling(least=1 << 62)
    made.profile.order = Order(order, rest, moved)
    return made


def run(quick: bool) -> Figures:
    """Conditions, then keys."""
    rows, rounds = (QUICK_ROWS, QUICK_ROUNDS) if quick else (ROWS, ROUNDS)
    return conditions(rows, rounds) | keys(rows, rounds)


def conditions(rows: int, rounds: int) -> dict[str, float]:
    """Every fixed order in each half, the adaptive filter and the whole condition over the stream."""
    halves = [texts(rows, SHARES), texts(rows, SHARES[::-1])]
    stream = [half for half in halves for _ in range(BATCHES // 2)]
    where, condition = filter_of(), whole()
    orders = {order: fixed(order, halves[0]) for order in permutations(range(len(SHARES)))}
    cases: dict[str, Callable[[], object]] = {
        "adaptive": lambda: [where(batch) for batch in stream],
        "all": lambda: [batch.filter(evaluate_filter(condition, batch)) for batch in stream],
    }
    for order, one in orders.items():
        for number, half in enumerate(halves):
            cases[f"{order} {number}"] = partial(_all, one, half)
    times = interleaved(cases, rounds)
    both = {order: np.add(times[f"{order} 0"], times[f"{order} 1"]) for order in orders}
    ranked = sorted(orders, key=lambda order: float(np.median(both[order])))
    first, second = (min((times[f"{order} {n}"] for order in orders), key=statistics.median) for n in (0, 1))
    ideal = np.add(first, second)
    named = {"best": both[ranked[0]], "worst": both[ranked[-1]], "ideal": ideal}
    told = {
        "adaptive": times["adaptive"],
        "all": times["all"],
        **{name: each.tolist() for name, each in named.items()},
    }
    figures = {f"where_{name}_m_s": rate(rows * BATCHES, each) / 1e6 for name, each in told.items()}
    others = [name for name in told if name != "adaptive"]
    return figures | {f"where_by_{name}": speedup(told, "adaptive", name) for name in others}


def _all(one: Callable[[pa.RecordBatch], object], half: pa.RecordBatch) -> None:
    for _ in range(BATCHES // 2):
        one(half)


def keys(rows: int, rounds: int) -> dict[str, float]:
    """Level 1 over keys whose range grows, and over pairs of keys."""
    half = BATCHES // 2
    growing = [keyed(rows, n, KEYS if n < half else MORE_KEYS, 2) for n in range(BATCHES)]
    figures = _against_before("keys", "k", growing, rows // 4, rounds)
    figures |= _against_before("pairs", "k, j", [keyed(rows, n, *PAIRS) for n in range(BATCHES)], 0, rounds)
    return figures | {"keys_given_up": folded(key_plan("k"), growing, KeyProfile()).violations}


def _against_before(name: str, by: str, stream: Sequence[pa.RecordBatch], most: int, rounds: int) -> dict[str, float]:
    plan, rows = key_plan(by), sum(map(len, stream))
    cases: dict[str, Callable[[], object]] = {
        "adaptive": lambda: folded(plan, stream, KeyProfile()),
        "before": lambda: folded(plan, stream, Before(most)),
    }
    times = interleaved(cases, rounds)
    figures = {f"{name}_{case}_m_s": rate(rows, each) / 1e6 for case, each in times.items()}
    return figures | {f"{name}_by_before": speedup(times, "adaptive", "before")}


class Before(KeyProfile):
    """Keys as they were done before anything was learned."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def most(self, rows: int) -> int:
        """The same for every batch."""
        return self._most

    def buckets(self, keys: pa.RecordBatch, buckets: int, hashed: Callable[[pa.RecordBatch], Any]) -> Any:
        """A hash for each key."""
        return hashed(keys)


def key_plan(by: str) -> SharedPlan:
    """Count and sum by some keys."""
    return plan_of(f"SELECT {by}, count(*) AS n, sum(k) AS total FROM t GROUP BY {by}, window(ts, '1 s')")


def folded(plan: SharedPlan, stream: Sequence[pa.RecordBatch], learned: KeyProfile) -> KeyProfile:
    """Level 1, each batch a task of its own that goes on with what is ``learned``."""
    folders = folders_of(plan)
    folders[0].learned_keys = learned
    for batch in stream:
        level1 = Level1(plan, BUCKETS, folders=folders)
        level1.fold(batch)
        level1.messages()
    return learned


def warm_up(quick: bool) -> None:
    """Compile the fold, and compare the rows that pass and the sums of keys with NumPy."""
    for by in ("k", "k, j"):
        for folder in folders_of(key_plan(by)):
            folder.compile()
    made = filter_of()
    for shares in (SHARES, SHARES[::-1]):
        batch = texts(QUICK_ROWS, shares)
        kept = np.logical_and.reduce([["yes" in text for text in batch.column(name).to_pylist()] for name in "abc"])
        peers.same("rows that pass", made.mask(batch).astype(float), kept.astype(float))


WORKLOAD = Workload(
    name="adaptive",
    summary="conditions whose shares swap and keys whose range grows in the middle of a stream, against fixed ways",
    group="kernels",
    run=run,
    warm_up=warm_up,
    repeats=1,
    bars=(
        Bar("where_by_all", ">=", 1.3),
        Bar("where_by_worst", ">=", 1.3),
        Bar("keys_by_before", ">=", 1.2),
        Bar("pairs_by_before", ">=", 1.5),
    ),
)
