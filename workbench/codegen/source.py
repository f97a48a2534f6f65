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
    """One loop over the rows that updates every partial of the row's group.

    ``fold(group, x0, v0, x1, v1, ..., f0_0, f0_1, f1_0, ...)``: int64 group of each row, then values and
    validity of each input column (:func:`input_columns`), then the fields of each partial, ``[groups]`` arrays that
    hold the identity on entry and the partials on return.
    """
    columns = [name for index in input_columns(feeds) for name in (f"x{index}", f"v{index}")]
    body = []
    for number, feed in enumerate(feeds):
        indent = "        "
        if feed.required:
            body.append(f"{indent}if {' and '.join(f'v{index}[i]' for index in feed.required)}:")
            indent += "    "
        fields = _names(number, feed.monoid)
        lifted = ", ".join(f"l{number}_{j}" for j in range(len(fields)))
        state = ", ".join(f"{field}[g]" for field in fields)
        body.append(f"{indent}{lifted}, = {feed.monoid.lift.__name__}({_values(feed)})")
        body.append(f"{indent}{state}, = {feed.monoid.combine.__name__}({state}, {lifted})")
    fields = [field for number, feed in enumerate(feeds) for field in _names(number, feed.monoid)]
    return "\n".join(
        [
            *_header([feed.monoid for feed in feeds]),
            "@jit",
            f"def fold({', '.join(['group', *columns, *fields])}):",
            "    for i in range(group.size):",
            "        g = group[i]",
            *body,
            "",
        ]
    )


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
