"""Source text of the fold of a plan, from the names of partial kinds alone.

No text of a user's ever gets here: the only input is a tuple of :class:`~workbench.algebra.PartialKind` of the
closed table and small integers, and every name in the text is generated. Kernels of equal shape have equal text,
whatever the query, so they are compiled once per machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.algebra import PARTIALS, PartialKind


@dataclass(frozen=True)
class Feed:
    """How a partial of a fold is fed: its kind and the number of its input column (None: every row)."""

    kind: str
    input: int | None

    @property
    def monoid(self) -> PartialKind:
        return PARTIALS[self.kind]


def fold_source(feeds: Sequence[Feed]) -> str:
    """One loop over the rows that updates every partial of the row's group.

    ``fold(group, x0, v0, x1, v1, ..., f0_0, f0_1, f1_0, ...)``: int64 group of each row, then values and
    validity of each input column, then the fields of each partial, ``[groups]`` arrays that hold the identity on
    entry and the partials on return.
    """
    inputs = sorted({feed.input for feed in feeds if feed.input is not None})
    columns = [name for index in inputs for name in (f"x{index}", f"v{index}")]
    body = []
    for number, feed in enumerate(feeds):
        indent = "        "
        if feed.input is not None:
            body.append(f"{indent}if v{feed.input}[i]:")
            indent += "    "
        fields = _names(number, feed.monoid)
        lifted = ", ".join(f"l{number}_{j}" for j in range(len(fields)))
        value = "np.int64(1)" if feed.monoid.input is None else f"x{feed.input}[i]"
        state = ", ".join(f"{field}[g]" for field in fields)
        body.append(f"{indent}{lifted}, = {feed.monoid.lift.__name__}({value})")
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


def _names(number: int, kind: PartialKind) -> list[str]:
    return [f"f{number}_{index}" for index in range(len(kind.fields))]


def _header(kinds: Sequence[PartialKind]) -> list[str]:
    functions = sorted({function.__name__ for kind in kinds for function in (kind.lift, kind.combine)})
    lines = ["import numpy as np", "from workbench.kernels import combine", "from workbench.kernels.jit import jit"]
    return [*lines, *(f"{name} = jit(combine.{name})" for name in functions)]
