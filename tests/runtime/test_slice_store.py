"""The slice store against a dictionary: slices that come in any order, leave, and make room for others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from workbench.algebra import PARTIALS
from workbench.runtime.branches.store import SliceStore

KINDS = [PARTIALS["count"], PARTIALS["max_int"]]
#: How far time goes on, how far back some of the slices are, how many are new, and how many are kept.
STEPS = st.tuples(st.integers(1, 60), st.integers(0, 40), st.integers(1, 60), st.integers(0, 90))


@given(st.lists(STEPS, max_size=25), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_store_holds_what_was_merged_and_not_evicted(
    steps: list[tuple[int, int, int, int]], keyed: bool, seed: int
) -> None:
    random, now = np.random.default_rng(seed), 0
    store = SliceStore(KINDS, [pa.int64()] if keyed else [])
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for forward, back, count, kept in steps:
        now += forward
        starts = np.unique(np.append(now, now - random.integers(0, back + 1, count)))
        names = random.integers(0, 12 if keyed else 1, len(starts))
        rows, values = random.integers(1, 9, len(starts)), random.integers(-50, 50, len(starts))
        numbers = store.number_keys(pa.record_batch([pa.array(names)], names=["0"]))
        store.merge(starts, numbers, [rows, values])
        for start, name, n, value in zip(*map(np.ndarray.tolist, (starts, names, rows, values)), strict=True):
            known = expected.get((start, name), (0, value))
            expected[start, name] = known[0] + n, max(known[1], value)
        store.evict(now - kept)
        expected = {place: cell for place, cell in expected.items() if place[0] >= now - kept}
        begun, keys, *fields = (column.tolist() for column in store.entries(-(2**62), 2**62))
        known_keys = store.table.arrays()[0].to_pylist() if keyed else [0]
        found = zip(begun, [known_keys[key] for key in keys], *fields, strict=True)
        assert {(start, name): (n, value) for start, name, n, value in found} == expected
        assert (store.rows(np.array([now])) == store.end - 1).all() or kept == 0
        for kind, matrices in zip(KINDS, (store.partials(0), store.partials(1)), strict=True):
            assert (matrices[0][store.end :] == kind.identity[0]).all(), "room holds the identity"
