"""Source text of the fold of a plan, from the names of partial kinds alone.

No text of a user's ever gets here: the only input is a tuple of :class:`~workbench.algebra.PartialKind` of the
closed table and small integers, and every name in the text is generated. Kernels of equal shape have equal text,
whatever the query, so they are compiled once per machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.algebra import PARTIALS, PartialKind


@dataclass(frozen=True)
class Feed:
    """How a partial of a fold is fed: its kind and the numbers of its input columns (none: every row)."""

    kind: str
    inputs: tuple[int, ...] = ()

    @property
    def monoid(self) -> PartialKind:
        return PARTIALS[self.kind]

    @property
    def required(self) -> tuple[int, ...]:
        """The input columns that must have a value for a row to feed the partial."""
        return tuple(index for position, index in enumerate(self.inputs) if position not in self.monoid.nullable)

    @property
    def valued(self) -> tuple[int, ...]:
        """The input columns whose values the partial looks at."""
        return self.inputs if self.monoid.inputs else ()


def fold_source(feeds: Sequence[Feed]) -> str:
    """One loop over the rows that updates every partial of the row's group, int64.

    ``fold(group, x0, v0, x1, v1, ..., f0_0, f0_1, f1_0, ...)``: the group of each row, then values and
    validity of each input column (:func:`input_columns`), then the fields of each partial, ``[groups]`` arrays that
    hold the identity, or what earlier rows have left, on entry and the partials on return.
    """
    return _rows_source(feeds, "np.uint64(group[i])")


#: Cells of each group that neighbours go to in turn: what one takes to be stored is the work on three others.
LANES = 4


def lanes_source(feeds: Sequence[Feed]) -> str:
    """As :func:`fold_source`, row ``i`` to the cell ``group[i] * LANES + i % LANES``; groups are int32."""
    return _rows_source(feeds, f"np.uint64(group[i]) * np.uint64({LANES}) + np.uint64(i) % np.uint64({LANES})")


def _rows_source(feeds: Sequence[Feed], cell: str) -> str:
    body: list[str] = []
    for number, feed in enumerate(feeds):
        indent, names = _guard(body, feeds, number, "        "), _names(number, feed.monoid)
        lifted = ", ".join(f"l{number}_{j}" for j in range(len(names)))
        state = ", ".join(f"{field}[g]" for field in names)
        body.append(f"{indent}{lifted}, = {feed.monoid.lift.__name__}({_values(feed)})")
        body.append(f"{indent}{state}, = {feed.monoid.combine.__name__}({state}, {lifted})")
    # Unsigned, since numba would ask of each access whether it counts from the end.
    loop = ["    for i in range(group.size):", f"        g = {cell}", *body]
    return _text(feeds, "fold", ["group"], loop)


def runs_source(feeds: Sequence[Feed]) -> str:
    """As :func:`fold_source`, for rows whose group changes seldom: partials stay in registers while it does not.

    ``fold(group, bounds, x0, v0, ...)``: the rows ``bounds[r] .. bounds[r + 1]`` are of ``group[r]``.
    """
    load: list[str] = []
    body: list[str] = []
    store: list[str] = []
    for number, feed in enumerate(feeds):
        names, fields = _names(number, feed.monoid), feed.monoid.fields
        state = ", ".join(f"s{name}" for name in names)
        load += [f"        s{name} = {name}[g]" for name in names]
        store += [f"        {name}[g] = s{name}" for name in names]
        indent = _guard(body, feeds, number, "            ")
        lifted = ", ".join(f"l{name}" for name in names)
        merged = ", ".join(f"t{name}" for name in names)
        body.append(f"{indent}{lifted}, = {feed.monoid.lift.__name__}({_values(feed)})")
        body.append(f"{indent}{merged}, = {feed.monoid.combine.__name__}({state}, {lifted})")
        # A variable has one type: that of the field, which an array would convert to by itself.
        body += [f"{indent}s{name} = np.{field.dtype}(t{name})" for name, field in zip(names, fields, strict=True)]
    loop = ["    for r in range(group.size):", "        g = group[r]", *load]
    loop += ["        for i in range(bounds[r], bounds[r + 1]):", *(body or ["            pass"]), *store]
    return _text(feeds, "fold", ["group", "bounds"], loop)


def _guard(body: list[str], feeds: Sequence[Feed], number: int, indent: str) -> str:
    """The indentation of the lines of a feed, after the condition that they stand under, if any.

    It may be that of the feed before: what that has stored would have to be thought of if it were asked again.
    """
    required = feeds[number].required
    if not required:
        return indent
    if not number or feeds[number - 1].required != required:
        body.append(f"{indent}if {' and '.join(f'v{index}[i]' for index in required)}:")
    return indent + "    "


def _text(feeds: Sequence[Feed], name: str, where: list[str], loop: list[str]) -> str:
    columns = [text for index in input_columns(feeds) for text in (f"x{index}", f"v{index}")]
    fields = [field for number, feed in enumerate(feeds) for field in _names(number, feed.monoid)]
    head = _header([feed.monoid for feed in feeds])
    return "\n".join([*head, "@jit", f"def {name}({', '.join([*where, *columns, *fields])}):", *loop, ""])


def input_columns(feeds: Sequence[Feed]) -> list[int]:
    """The numbers of the input columns that any of the feeds reads, ascending."""
    return sorted({index for feed in feeds for index in feed.inputs})


def _values(feed: Feed) -> str:
    """The arguments of a lift: the values of its inputs, each nullable one with its validity."""
    if not feed.valued:
        return "np.int64(1)"
    nullable = feed.monoid.nullable
    values = [
        f"x{index}[i], v{index}[i]" if position in nullable else f"x{index}[i]"
        for position, index in enumerate(feed.inputs)
    ]
    return ", ".join(values)


def _names(number: int, kind: PartialKind) -> list[str]:
    return [f"f{number}_{index}" for index in range(len(kind.fields))]


def _header(kinds: Sequence[PartialKind]) -> list[str]:
    """Compiled functions under their names; a user's are put into the module as objects (:func:`injected`)."""
    functions = sorted(
        {function.__name__ for kind in kinds if not kind.scalars for function in (kind.lift, kind.combine)}
    )
    lines = ["import numpy as np", "from workbench.kernels import combine", "from workbench.kernels.jit import jit"]
    return [*lines, *(f"{name} = jit(combine.{name})" for name in functions)]


def injected(kinds: Sequence[PartialKind]) -> dict[str, Callable[..., Any]]:
    """The functions that the text of a kernel of these kinds calls and does not import, by name."""
    return {name: function for kind in kinds for name, function in kind.scalars.items()}
