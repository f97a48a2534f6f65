"""The buffers of a message in few bytes: what stands in them again and again is sent once.

The columns of a figure are flat, point by point and in it key by key (:mod:`.figures`): the time of a window stands
there once for each key, and again for each figure. Values differ, and are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_WORD = 8


def packed(buffers: Sequence[bytes]) -> tuple[list[tuple[int, int]], list[bytes]]:
    """For each of ``buffers`` which of the parts it is, and how often each 8 bytes of the part stand in it one after
    the other; and these parts. Cost: one look at each byte.
    """
    parts: dict[bytes, int] = {}
    made = []
    for buffer in buffers:
        part, times = _once(buffer)
        made.append((parts.setdefault(part, len(parts)), times))
    return made, list(parts)


def _once(buffer: bytes) -> tuple[bytes, int]:
    words = np.frombuffer(buffer, np.int64) if len(buffer) % _WORD == 0 else np.empty(0, np.int64)
    if len(words) < 2:
        return buffer, 1
    times = int((words != words[0]).argmax()) or len(words)
    if times == 1 or len(words) % times:
        return buffer, 1
    rows = words.reshape(-1, times)
    return (buffer, 1) if (rows != rows[:, :1]).any() else (rows[:, 0].tobytes(), times)
