"""The kernels of a plan in two variants: one that answers at once, one compiled meanwhile (*Grizzly* §6).

A kernel starts as array code that needs no compiler. The first call orders the compiled variant; it is made on a
thread of its own and swapped in when it is ready.
Both variants give the same partials (tests compare them).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.codegen import modules
from workbench.codegen.source import LANES, Feed, fold_source, injected, input_columns, lanes_source, runs_source
from workbench.kernels.segments import fold_segments

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
#: Values and validity of a column; None: every row has a value.
Input = tuple[Array, Array | None]

#: Seconds of array code in one call above which it waits for the compiled variant instead: about five seconds for the
#: first process of a machine, one for later ones, which find the machine code in numba's disk cache.
PATIENCE = 0.25
#: Measured on a 2-core cloud machine: array code needs this long for a row and partial. Only the order of magnitude
#: matters.
_ROW_SECONDS = 2.5e-7


@dataclass(frozen=True)
class Job:
    """A compiled variant to be made: its text, the function in it, and arguments of the right types."""

    name: str
    source: str
    entry: str
    sample: Sequence[Any]
    functions: Mapping[str, Callable[..., Any]]

    def make(self) -> Callable[..., None]:
        module = modules.load(self.name, self.source, self.functions)
        function: Callable[..., None] = getattr(module, self.entry)
        function(*self.sample)
        return function


_variants: dict[str, Future[Callable[..., None]]] = {}
_jobs: SimpleQueue[tuple[Job, Future[Callable[..., None]]]] = SimpleQueue()
_lock = threading.Lock()
_compiler: threading.Thread | None = None


def _compile_jobs() -> None:
    """The one thread that compiles: several at once would only fight for the interpreter."""
    while True:
        job, future = _jobs.get()
        try:
            future.set_result(job.make())
        except BaseException as error:
            future.set_exception(error)


def variant(job: Job, choice: str, work: float | Callable[[], float]) -> Callable[..., None] | None:
    """The compiled function, or None where the array code is to be used this time.

    ``choice`` is generic, compiled, or auto: then a call waits only where the array code would take longer than
    ``PATIENCE`` for its ``work``, in seconds, or what tells them, which is asked only as long as there is none.
    """
    global _compiler
    if choice == "generic":
        return None
    with _lock:
        future = _variants.get(job.name)
        if future is None:
            future = _variants[job.name] = Future()
            if _compiler is None:
                _compiler = threading.Thread(target=_compile_jobs, name="kernel compiler", daemon=True)
                _compiler.start()
            _jobs.put((job, future))
    if future.done() or choice == "compiled" or (work if isinstance(work, float) else work()) > PATIENCE:
        return future.result()
    return None


def choice(compiled: bool | None) -> str:
    """Which variant to use: the caller's word, else the environment's (``WINQUERY_KERNELS``), else auto."""
    if compiled is not None:
        return "compiled" if compiled else "generic"
    return os.environ.get("WINQUERY_KERNELS", "auto")


@dataclass(frozen=True)
class Runs:
    """Groups of rows that stand in runs: the rows ``bounds[r] .. bounds[r + 1]`` are of ``group[r]``; int64."""

    group: Array
    bounds: Array

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.bounds[-1])

    @property
    def columns(self) -> list[Array]:
        """What the kernel takes."""
        return [self.group, self.bounds]

    def expanded(self) -> Array:
        """The group of every row."""
        return np.repeat(self.group, np.diff(self.bounds))


@dataclass(frozen=True)
class Lanes:
    """Groups of rows of which neighbours mostly have the same: each group is ``LANES`` cells, taken in turn; int32.

    Every row would have to wait for what the one before has stored into the same cell.
    """

    group: Array

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.group)

    @property
    def columns(self) -> list[Array]:
        """What the kernel takes."""
        return [self.group]

    def expanded(self) -> Array:
        """The cell of every row."""
        return self.group * np.int64(LANES) + np.arange(len(self.group)) % LANES


#: The groups of rows: a number for each, int64, or what tells them in a shorter way.
Groups = Array | Runs | Lanes


#: The validity of rows without a NULL, and how many of them fit into a block.
BLOCK = 1 << 16
_VALID = np.ones(BLOCK, np.bool_)


#: Partials of one function: what numba needs for it grows faster than its length, and its recursion ends at some 400.
_MOST = 32


class _Part:
    """Feeds that one function folds. It numbers their columns anew, so parts of equal shape are compiled once."""

    def __init__(self, feeds: Sequence[Feed], by: type[Groups]) -> None:
        self.columns = input_columns(feeds)
        self.valued = {index for feed in feeds for index in feed.valued}
        own = {index: place for place, index in enumerate(self.columns)}
        self._feeds = [Feed(feed.kind, tuple(own[index] for index in feed.inputs)) for feed in feeds]
        self._by = by
        self.source = _SOURCES[by](self._feeds)
        self.name = modules.digest(self.source)

    def __len__(self) -> int:
        return len(self._feeds)

    def job(self) -> Job:
        kinds = {
            index: kind for feed in self._feeds for index, kind in zip(feed.valued, feed.monoid.inputs, strict=True)
        }
        sample = [*_NO_GROUPS[self._by]]
        for index in range(len(self.columns)):
            sample += [np.zeros(0, kinds.get(index, "int64")), np.zeros(0, np.bool_)]
        sample = [sealed(array) for array in sample]
        for feed in self._feeds:
            sample += feed.monoid.blank(0)
        return Job(self.name, self.source, "fold", sample, injected([feed.monoid for feed in self._feeds]))


#: The compiled function of each part of a kernel, None for those that array code does the work of.
Functions = tuple[Callable[..., None] | None, ...]


class FoldKernel:
    """Level 1: rows into the partials of their groups.

    Partials that can be compiled are folded together, up to 32 in one pass, each other one by array code of its own.
    ``by`` is how the groups of rows are told, and so where they lie: a number for each, or :class:`Runs`, or
    :class:`Lanes`.
    """

    def __init__(self, feeds: Sequence[Feed], by: type[Groups] = np.ndarray) -> None:
        self.feeds = tuple(feeds)
        compiled = [place for place, feed in enumerate(self.feeds) if feed.monoid.compiled]
        self._places = [compiled[low : low + _MOST] for low in range(0, len(compiled), _MOST)]
        self._parts = [_Part([self.feeds[place] for place in places], by) for places in self._places]
        self._others = sorted({*range(len(self.feeds))} - {*compiled})

    def __call__(
        self, group: Groups, groups: int, inputs: Sequence[Input], *, compiled: bool | None = None
    ) -> list[Fields]:
        """The partials of each group, fields ``[groups]``, in the order of ``feeds``.

        ``group[i]`` in ``[0, groups)`` is the row's group, ``inputs`` the (values, validity) of each input
        column in the type its partials want. ``compiled`` forces a variant (True waits for the compiler).
        """
        outputs = [feed.monoid.blank(groups) for feed in self.feeds]
        self.into(outputs, group, inputs, self.ready(group.size, compiled=compiled))
        return outputs

    def ready(self, rows: int, *, compiled: bool | None = None) -> Functions:
        """The compiled variants of the parts that are to be used for so many rows: what :meth:`into` takes."""
        return tuple(variant(part.job(), choice(compiled), rows * len(part) * _ROW_SECONDS) for part in self._parts)

    def into(self, outputs: Sequence[Fields], group: Groups, inputs: Sequence[Input], functions: Functions) -> None:
        """Fold more rows into partials that are there, behind the rows that are in them. Validity None: no NULL.

        Whatever the arrays come from, the kernel sees contiguous ones that it may not write to, so that there is
        one type of them and one machine code.
        """
        generic = list(self._others)
        where = [sealed(each) for each in ([group] if isinstance(group, np.ndarray) else group.columns)]
        for part, places, function in zip(self._parts, self._places, functions, strict=True):
            if function is None:
                generic += places
                continue
            columns: list[Array] = []
            for index in part.columns:
                values, valid = inputs[index]
                # A column that only tells which rows have a value may be text, which the kernel never sees.
                columns += [values if index in part.valued else _NONE, _known(valid, group.size)]
            function(*where, *map(sealed, columns), *(field for place in places for field in outputs[place]))
        for place in generic:
            cells = group if isinstance(group, np.ndarray) else group.expanded()
            _fold_generic(self.feeds[place], cells, inputs, outputs[place])

    def compile(self) -> None:
        """Wait until the compiled variants are there."""
        for part in self._parts:
            variant(part.job(), "compiled", 0.0)


_NONE = np.zeros(0, np.int64)
#: What makes the text of a kernel, by how groups are told.
_SOURCES: dict[type[Groups], Callable[[Sequence[Feed]], str]] = {
    np.ndarray: fold_source,
    Runs: runs_source,
    Lanes: lanes_source,
}
#: What a kernel takes of groups if there are no rows.
_NO_GROUPS: dict[type[Groups], list[Array]] = {
    np.ndarray: [_NONE],
    Runs: [_NONE, np.zeros(1, np.int64)],
    Lanes: [np.zeros(0, np.int32)],
}


def sealed(array: Array) -> Array:
    """A contiguous view that is not to be written to; arrays from Arrow are like that already."""
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).view()
        array.flags.writeable = False
    return array


def _known(valid: Array | None, rows: int) -> Array:
    if valid is not None:
        return valid
    return _VALID[:rows] if rows <= BLOCK else np.ones(rows, np.bool_)


def _fold_generic(feed: Feed, group: Array, inputs: Sequence[Input], fields: Fields) -> None:
    """Array code: the rows that feed a partial, folded by the kind's own function or pairwise."""
    kind = feed.monoid
    chosen: Array | slice = slice(None)
    if feed.required:
        chosen = np.logical_and.reduce([_known(inputs[index][1], len(group)) for index in feed.required])
    values: list[Array] = []
    for position, index in enumerate(feed.valued):
        column, valid = inputs[index]
        values.append(column[chosen])
        if position in kind.nullable:
            values.append(_known(valid, len(group))[chosen])
    group = group[chosen]
    with np.errstate(all="ignore"):
        if kind.fold is not None:
            found, partials = kind.fold(group, *values)
        else:
            lifted = kind.lift(*values) if values else kind.lift(np.ones(len(group), np.int64))
            found, partials = fold_segments(group, lifted, kind.combine)
        merged = kind.combine(*(field[found] for field in fields), *partials)
    for field, cells in zip(fields, merged, strict=True):
        field[found] = cells
