"""What an aggregation algorithm costs, from measured constants; the cheapest candidate is chosen.

The constants are nanoseconds on one core: for each kind of partial an element of a long vector loop of combines and
an element of a scan (both in cache), and the start of a chunk's loops. ``python -m workbench calibrate`` measures
them and keeps them in the user's cache folder; without that the figures here hold, which were measured on a 2-core
cloud machine. Only their relations matter. A plan is made with the constants of the process that makes it and
carries the choice with it, so all tasks of a run do the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import ceil, log2
from types import MappingProxyType

from workbench.algebra import PartialKind
from workbench.cache import cache_folder
from workbench.plan.gag import Algorithm, algorithm_of, specialise, strategies

#: Rows of one piece of a kernel over rows: a few columns of it stay in the first-level cache.
PIECE = 2048
#: Chunks that overlaid stacks over slices may have.
CHUNKS = (4, 8, 16, 32, 64, 128, 256)
#: The windows of a group by which the graph is asked for its algorithm: their number counts, not their sizes.
_ONE, _SEVERAL = (3,), (2, 3)


@dataclass(frozen=True)
class Constants:
    """Measured nanoseconds: ``combine`` and ``scan`` of an element by kind of partial, ``loop`` to start a chunk.

    ``apart`` is what a combine costs for nodes of a tree, whose rows lie apart, by one for rows that follow each
    other. Built in is what was measured for sums of floats, windows of 1,440 and 20,000 slices, 100 and 1,000 keys,
    one slice at a time and a thousand.
    """

    combine: Mapping[str, float]
    scan: Mapping[str, float]
    loop: float
    source: str = "built in"
    apart: float = 2.0

    def of(self, kind: PartialKind) -> tuple[float, float]:
        """Combine and scan of a kind; one that was never measured counts by its fields."""
        fields = len(kind.fields)
        return self.combine.get(kind.name, 0.4 * fields), self.scan.get(kind.name, 1.5 * fields)


#: Measured on a 2-core AMD EPYC machine at load 2, medians of 9: combine and scan of one element.
_MEASURED = {
    "count": (0.35, 0.32),
    "sum_float": (0.35, 0.45),
    "sum_int": (1.0, 0.8),
    "product": (4.5, 12.0),
    "moments": (1.0, 3.2),
    "moments4": (3.4, 8.9),
    "comoments": (2.1, 4.9),
    "min_int": (0.19, 0.6),
    "max_int": (0.19, 0.6),
    "min_float": (0.45, 0.6),
    "max_float": (0.45, 0.6),
    "first_int": (0.7, 1.6),
    "last_int": (0.7, 1.6),
    "first_float": (1.0, 2.3),
    "last_float": (1.0, 2.3),
}
BUILT_IN = Constants(
    MappingProxyType({name: combine for name, (combine, _) in _MEASURED.items()}),
    MappingProxyType({name: scan for name, (_, scan) in _MEASURED.items()}),
    loop=60.0,
)


def constants() -> Constants:
    """The constants measured on this machine, or the built-in ones where there are none that can be read."""
    folder = cache_folder("costs")
    try:
        found = json.loads((folder / "constants.json").read_text()) if folder else None
        return BUILT_IN if found is None else Constants(**found)
    except (OSError, ValueError, TypeError):
        return BUILT_IN


def keep(measured: Constants) -> bool:
    """Write constants where :func:`constants` finds them; False where there is no folder for it."""
    folder = cache_folder("costs")
    if folder is not None:
        (folder / "constants.json").write_text(json.dumps(asdict(measured)))
    return folder is not None


@dataclass(frozen=True)
class Candidate:
    """An algorithm for some windows, with its chunk and its estimated cost in nanoseconds."""

    algorithm: Algorithm
    cost: float
    chunk: int = 1


def over_slices(kind: PartialKind, sizes: Sequence[float], measured: Constants) -> tuple[Candidate, ...]:
    """Candidates for windows of so many slices, cheapest first; cost per key of a micro-batch that brings one slice.

    That is the live case: one slice changes and of every kind of window one is wanted. Differences take a scan step
    and one combine for each, overlaid stacks two scan steps and, for each window, what lies between its first and
    last chunk, a tree one node and for each window two nodes a level, TwoStacks every slice of every window again.

    Partials that are objects grow with the rows. A tree would keep what is in them once a level, so it comes last
    whatever it costs: it is there for who asks for it.
    """
    combine, _ = measured.of(kind)
    stacks = Candidate(Algorithm.TWO_STACKS, combine * sum(size + 1 for size in sizes))
    tree = _tree(sizes, combine * measured.apart)
    if not kind.compiled:
        return stacks, tree
    found = [tree]
    for algorithm in _algorithms(kind, len(sizes)):
        match algorithm:
            case Algorithm.SLIDE_SIDE_INV | Algorithm.SUBTRACT_ON_EVICT:
                cost = combine * (1 + len(sizes))
                found.append(Candidate(Algorithm.SLIDE_SIDE_INV, cost, _restart(sizes) if kind.rounding else 1))
            case Algorithm.SLIDE_SIDE | Algorithm.TWO_STACKS:
                found.append(stacks)
                found.append(min((_overlaid(sizes, chunk, combine) for chunk in CHUNKS), key=lambda c: c.cost))
    return tuple(sorted(dict.fromkeys(found), key=lambda candidate: candidate.cost))


def _restart(sizes: Sequence[float]) -> int:
    """The slices after which prefixes that round begin anew: the longest window lies in two such chunks at most."""
    return 1 << max(3, ceil(log2(max(1.0, *sizes))))


def _overlaid(sizes: Sequence[float], chunk: int, combine: float) -> Candidate:
    steps = sum(size if size < chunk else size / chunk + 3 for size in sizes)
    return Candidate(Algorithm.SLIDE_SIDE, combine * (2 + steps), chunk)


def _tree(sizes: Sequence[float], combine: float) -> Candidate:
    """A node on every level above the slices, and two on every level of a window."""
    longest, *others = (max(1, ceil(log2(max(1.0, size)))) for size in sorted(sizes, reverse=True))
    steps = longest + sum(2 * height + 1 for height in (longest, *others))
    return Candidate(Algorithm.FLAT_FAT, combine * steps)


def _algorithms(kind: PartialKind, windows: int) -> Iterable[Algorithm]:
    """What the graph of so many windows becomes under each strategy that the kind allows."""
    sizes = _ONE if windows == 1 else _SEVERAL
    return (algorithm_of(specialise(sizes, strategy)) for strategy in strategies(kind.differences, kind.idempotent))


@dataclass(frozen=True)
class Part:
    """Windows (by position) that one kernel over rows computes together, and what a row costs."""

    method: str
    windows: tuple[int, ...]
    cost: float
    chunk: int = 1


def over_rows(kind: PartialKind, sizes: Sequence[int], measured: Constants) -> tuple[Part, ...]:
    """The cheapest kernels for windows that slide by one row; every window is in one part.

    A group takes differences of prefixes. Else the sizes in ascending order are cut into runs, and each run is put
    together by doubling, by overlaid stacks whose chunk its smallest window allows, or, if it is one window, in
    segments as long as the window: the cheapest cut of all, by dynamic programming over the runs.
    """
    combine, scan = measured.of(kind)
    everyone = tuple(range(len(sizes)))
    if kind.group:
        return (Part("differences", everyone, scan + combine * len(sizes)),)
    order = sorted(everyone, key=lambda q: sizes[q])
    ascending = [sizes[q] for q in order]
    bits = [0, *accumulate(size.bit_count() for size in ascending)]
    best: list[tuple[float, tuple[Part, ...]]] = [(0.0, ())]
    for high in range(1, len(order) + 1):
        choices = [
            (best[low][0] + cost, low, method, chunk)
            for low in range(high)
            for cost, method, chunk in _runs(
                ascending[low], ascending[high - 1], high - low, bits[high] - bits[low], combine, scan, measured.loop
            )
        ]
        total, low, method, chunk = min(choices)
        part = Part(method, tuple(order[low:high]), total - best[low][0], chunk)
        best.append((total, (*best[low][1], part)))
    return best[-1][1]


def _runs(
    shortest: int, longest: int, count: int, pieces: int, combine: float, scan: float, loop: float
) -> Iterable[tuple[float, str, int]]:
    """Cost, method and chunk of the kernels that can compute ``count`` windows of sizes in a range.

    ``pieces`` is how many powers of two their sizes are the sum of.
    """
    if longest <= PIECE:
        levels = (longest.bit_length() - 1) * (1 + longest / PIECE)
        yield combine * (levels + pieces), "doubling", 1
        if count == 1 and longest > 1:
            moved = combine * longest / PIECE
            yield 2 * scan + combine + moved + loop / longest, "segmented", longest
    chunk = min(shortest, PIECE)
    if chunk > 1:
        yield 2 * scan + count * (2 * combine + 2 * loop / chunk), "overlaid", chunk
