"""Key ids that Spark's hash partitioner spreads exactly: bucket ``i`` goes to shuffle partition ``i``.

Spark sends a row to partition ``pmod(murmur3(key, seed 42), n)``. With the keys 0, 1, 2, ... some partitions would
get two buckets and others none, so that half of the cores wait for the other half in every micro-batch.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's ``hash(CAST(value AS INT))``: Murmur3 x86 32 of one 32-bit block, as a signed 32-bit integer."""
    block = _rotate(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = _rotate((seed ^ block) & _MASK, 13) * 5 + 0xE6546B64 & _MASK
    state ^= 4  # the length of the input in bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def bucket_keys(buckets: int) -> tuple[int, ...]:
    """For each bucket ``0 .. buckets - 1`` the smallest key >= 0 that lands on the shuffle partition of its index.

    ``buckets`` must equal the number of shuffle partitions. The same in every process and run, which is what a
    checkpoint relies on.
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < buckets:
        found.setdefault(murmur3(key) % buckets, key)
        key += 1
    return tuple(found[index] for index in range(buckets))


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _MASK
