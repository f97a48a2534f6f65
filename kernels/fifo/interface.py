"""What every algorithm of this package promises.

A stream is a queue: ``insert`` adds the newest element, ``evict`` removes the oldest, and a window of ``size``
elements ends at the newest one::

    oldest                      newest
      a   b   c   d   e   f   g   h          8 elements are present
              [--- window of 6 --]          query(state, 6) == c + d + e + f + g + h
                          [- 3 ----]          query(state, 3) == f + g + h

- A window that is not full yet aggregates what there is; over nothing it is the identity.
- Elements are combined oldest first, so monoids need not be commutative.
- A result depends on the elements in its own window alone: what NaN, an infinity or 1e90 did is over once it left.
- The largest window bounds what is kept: inserting into a full one evicts its oldest element first.

State is a tuple of NumPy arrays and nothing else, so it can be copied, kept and restored (:func:`copy`), and the
functions hold no state of their own. They are plain Python that runs as it is, and that kernels may call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.kernels.fifo.fields import ACCESS, Array, Fields
from workbench.kernels.fifo.monoids import Monoid, Partial
from workbench.kernels.jit import assemble, jitable

#: A NamedTuple of arrays and of tuples of arrays (the fields of partials); ``sizes`` is one of them.
State = Any


class Functions(NamedTuple):
    """An algorithm over one monoid, for any windows. ``loop`` is compiled on its first call (about a second)."""

    insert: Callable[[State, Partial], None]
    evict: Callable[[State], None]
    answer: Callable[[State, int], Partial]
    query: Callable[[State, int], Partial]
    loop: Callable[[State, Fields, Fields], None]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its state, for windows of ``sizes`` elements (ascending).

    ``insert(state, partial)`` adds the newest element. ``evict(state)`` removes the oldest; IndexError if there is
    none. ``query(state, size)`` is the partial of one of the windows; ValueError for any other size. It may tidy the
    state up, never change a later answer. ``answer(state, w)`` is the same for ``sizes[w]``, without looking the
    size up.
    """

    name: str
    monoid: Monoid
    sizes: tuple[int, ...]
    state: State
    functions: Functions

    @property
    def insert(self) -> Callable[[State, Partial], None]:
        return self.functions.insert

    @property
    def evict(self) -> Callable[[State], None]:
        return self.functions.evict

    @property
    def query(self) -> Callable[[State, int], Partial]:
        return self.functions.query

    @property
    def answer(self) -> Callable[[State, int], Partial]:
        return self.functions.answer


def complete(
    monoid: Monoid,
    insert: Callable[[State, Partial], None],
    evict: Callable[[State], None],
    answer: Callable[[State, int], Partial],
) -> Functions:
    """Add what follows from the three functions of an algorithm (all :func:`jitable`)."""
    load, store, _ = ACCESS[len(monoid.dtypes) - 1]

    def query(state: State, size: int) -> Partial:
        for w in range(len(state.sizes)):
            if state.sizes[w] == size:
                return answer(state, w)
        raise ValueError("no window of this size: expected one of the sizes the algorithm was made for")

    def loop(state: State, columns: Fields, out: Fields) -> None:
        for n in range(len(columns[0])):
            insert(state, load(columns, n))
            for w in range(len(state.sizes)):
                store(out, (w, n), answer(state, w))

    return Functions(insert, evict, answer, jitable(query), assemble(loop))


def drive(algorithm: Algorithm, columns: Sequence[Array]) -> Fields:
    """Insert the lifted elements in ``columns`` (one array per field) in turn, windows slide by 1; compiled.

    Returns ``out[field][w, n]``: the answer of window ``w`` after element ``n``. The state goes on from call to
    call, so a stream may be cut into batches anywhere.
    """
    shape = (len(algorithm.sizes), len(columns[0]))
    out = tuple(np.empty(shape, dtype) for dtype in algorithm.monoid.dtypes)
    typed = (
        np.ascontiguousarray(column, dtype) for column, dtype in zip(columns, algorithm.monoid.dtypes, strict=True)
    )
    algorithm.functions.loop(algorithm.state, tuple(typed), out)
    return out


def ascending(sizes: Sequence[int]) -> Array:
    """The sizes of windows as an array; ValueError unless there are some, all positive, in ascending order."""
    found = np.array(sizes, np.int64)
    if found.ndim != 1 or not len(found) or found[0] < 1 or (np.diff(found) < 0).any():
        raise ValueError(f"sizes of windows: expected positive numbers in ascending order, got {list(sizes)}")
    return found


def zero(monoid: Monoid) -> Partial:
    """The identity with the types of its fields, so that compiled code and Python agree on them."""
    return tuple(np.dtype(dtype).type(value) for value, dtype in zip(monoid.identity, monoid.dtypes, strict=True))


def copy(state: State) -> State:
    """A snapshot that shares nothing with ``state``."""
    if isinstance(state, np.ndarray):
        return state.copy()
    parts = [copy(part) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def partials(state: State) -> int:
    """How many partials there is room for: the figure of *LightSaber* §7.7 (Fig. 15f) and *SlideSide* Table 1."""
    return sum(fields[0].size for fields in state if isinstance(fields, tuple))
