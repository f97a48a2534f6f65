"""Packed buffers against what a page makes of them, and how few they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.widgets.packing import packed

words = st.sampled_from([0, 1, -1, 2**62])
buffers = st.one_of(
    st.binary(max_size=40),
    st.lists(words, max_size=12).map(lambda found: np.array(found, np.int64).tobytes()),
    st.tuples(st.lists(words, max_size=6), st.integers(1, 4)).map(
        lambda found: np.repeat(np.array(found[0], np.int64), found[1]).tobytes()
    ),
)


def unpacked(part: bytes, times: int) -> bytes:
    """What a page makes of a part: every 8 bytes of it so many times."""
    if times == 1:
        return part
    return b"".join(part[at : at + 8] * times for at in range(0, len(part), 8))


@given(st.lists(buffers, max_size=5))
def test_a_page_gets_back_what_was_packed(buffers: list[bytes]) -> None:
    made, parts = packed(buffers)
    assert [unpacked(parts[part], times) for part, times in made] == buffers
    assert len(set(parts)) == len(parts)


def test_times_go_once_for_all_keys_and_figures() -> None:
    """Two figures of three keys and four windows: one column of times, and the values as they are."""
    times = np.arange(4) * 1_000.0
    flat = np.repeat(times, 3).tobytes()
    values = [np.random.default_rng(seed).random(12).tobytes() for seed in (1, 2)]
    made, parts = packed([flat, values[0], flat, values[1]])
    assert parts == [times.tobytes(), *values]
    assert made == [(0, 3), (1, 1), (0, 3), (2, 1)]


def test_a_column_that_repeats_unevenly_stays_as_it_is() -> None:
    uneven = np.array([7.0, 7.0, 8.0, 9.0]).tobytes()
    assert packed([uneven]) == ([(0, 1)], [uneven])
