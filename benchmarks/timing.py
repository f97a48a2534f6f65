"""Times of several things taken in turn, so that what the machine does meanwhile meets all of them alike.

The clock is the processor time of this process, all threads together: on a machine shared with others, wall time
would count their work, and a long call's more surely than a short one's. Everything compared here runs on one thread.
A case is run twice in a row and the second time counts: the first finds the caches full of what the case before it
left, and some libraries' threads spin or give memory back for a while after their answer.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

#: Seconds of each round by name.
Rounds = Mapping[str, Sequence[float]]


def interleaved(
    cases: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of every case in each of ``rounds`` rounds; a round runs all cases once, in order.

    One round before them is not counted: it compiles, and touches the memory.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds + 1):
            for name, case in cases.items():
                rest()
                case()
                begin = clock()
                case()
                spent = clock() - begin
                if number:
                    seconds[name].append(spent)
    finally:
        if collecting:
            gc.enable()
    return seconds


def rest() -> None:
    """Wait until the process does nothing, a second at most."""
    for _ in range(200):
        before = time.process_time()
        time.sleep(0.005)
        if time.process_time() - before < 0.0005:
            return


def rate(amount: float, seconds: Sequence[float]) -> float:
    """``amount`` per second, by the median."""
    return amount / statistics.median(seconds)


def speedup(times: Rounds, ours: str, other: str) -> float:
    """How many times as long as ``ours`` the ``other`` takes: the median of the rounds' own ratios."""
    return statistics.median(theirs / mine for mine, theirs in zip(times[ours], times[other], strict=True))


def batches(rows: int, size: int) -> list[slice]:
    """The rows in pieces of ``size``, the last one shorter if need be."""
    return [slice(low, min(low + size, rows)) for low in range(0, rows, size)]
