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
from workbench.codegen.source import Feed, fold_source, injected, input_columns
from workbench.kernels.segments import fold_segments

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]

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


def variant(job: Job, choice: str, work: float) -> Callable[..., None] | None:
    """The compiled function, or None where the array code is to be used this time.

    ``choice`` is generic, compiled, or auto: then a call waits only where the array code would take longer than
    ``PATIENCE`` for its ``work``, in seconds.
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
    wait = choice == "compiled" or work > PATIENCE
    return future.result() if wait or future.done() else None


def choice(compiled: bool | None) -> str:
    """Which variant to use: the caller's word, else the environment's (``WINQUERY_KERNELS``), else auto."""
    if compiled is not None:
        return "compiled" if compiled else "generic"
    return os.environ.get("WINQUERY_KERNELS", "auto")


class FoldKernel:
    """Level 1: rows into the partials of their groups.

    All partials that can be compiled are folded in one pass, each other one by array code of its own.
    """

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self.feeds = tuple(feeds)
        self._compiled = [feed for feed in self.feeds if feed.monoid.compiled]
        self._inputs = input_columns(self._compiled)
        self.source = fold_source(self._compiled)
        self.name = modules.digest(self.source)

    def __call__(
        self, group: Array, groups: int, inputs: Sequence[tuple[Array, Array]], *, compiled: bool | None = None
    ) -> list[Fields]:
        """The partials of each group, fields ``[groups]``, in the order of ``feeds``.

        ``group[i]`` in ``[0, groups)`` is the row's group, ``inputs`` the (values, validity) of each input
        column in the type its partials want. ``compiled`` forces a variant (True waits for the compiler).
        """
        outputs = [feed.monoid.blank(groups) for feed in self.feeds]
        work = len(group) * len(self._compiled) * _ROW_SECONDS
        function = variant(self._job(), choice(compiled), work)
        for feed, fields in zip(self.feeds, outputs, strict=True):
            if function is None or not feed.monoid.compiled:
                _fold_generic(feed, group, inputs, fields)
        if function is not None:
            # A column that only tells which rows have a value may be text, which the kernel never sees.
            valued = {index for feed in self._compiled for index in feed.valued}
            none = np.zeros(0, np.int64)
            columns = [(inputs[index][0] if index in valued else none, inputs[index][1]) for index in self._inputs]
            targets = [f for feed, out in zip(self.feeds, outputs, strict=True) if feed.monoid.compiled for f in out]
            function(group, *(array for pair in columns for array in pair), *targets)
        return outputs

    def compile(self) -> None:
        """Wait until the compiled variant is there."""
        variant(self._job(), "compiled", 0.0)

    def _job(self) -> Job:
        sample = [np.zeros(0, np.int64)]
        kinds = {
            index: kind
            for feed in self._compiled
            for index, kind in zip(feed.valued, feed.monoid.inputs, strict=True)
        }
        for index in self._inputs:
            sample += [np.zeros(0, kinds.get(index, "int64")), np.zeros(0, np.bool_)]
        for feed in self._compiled:
            sample += feed.monoid.blank(0)
        return Job(self.name, self.source, "fold", sample, injected([feed.monoid for feed in self._compiled]))


def _fold_generic(feed: Feed, group: Array, inputs: Sequence[tuple[Array, Array]], fields: Fields) -> None:
    """Array code: the rows that feed a partial, folded by the kind's own function or pairwise."""
    kind = feed.monoid
    chosen: Array | slice = slice(None)
    if feed.required:
        chosen = np.logical_and.reduce([inputs[index][1] for index in feed.required])
    values: list[Array] = []
    for position, index in enumerate(feed.valued):
        values += [column[chosen] for column in inputs[index][: 2 if position in kind.nullable else 1]]
    group = group[chosen]
    with np.errstate(all="ignore"):
        if kind.fold is not None:
            found, partials = kind.fold(group, *values)
        else:
            lifted = kind.lift(*values) if values else kind.lift(np.ones(len(group), np.int64))
            found, partials = fold_segments(group, lifted, kind.combine)
    for field, partial in zip(fields, partials, strict=True):
        field[found] = partial
