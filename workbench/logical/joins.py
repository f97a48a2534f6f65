"""Static tables that the rows of a stream are joined with, before they are folded.

A join is part of the expressions that use it: a column of the table is a leaf (:class:`TableColumn`), and the filter
of the query holds the join itself (:class:`Joined`) as a condition that is true for its rows.
So a plan needs to know nothing of joins, and the table travels with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import takewhile
from typing import Literal as OneOf

import pyarrow as pa

from workbench.errors import SourceError
from workbench.logical.expressions import Call, Expression, quote_name, walk

#: The most bytes that a static table may have: it travels with the plan to every task of every micro-batch.
MOST_BYTES = 32 << 20

Kind = OneOf["inner", "left"]


@dataclass(frozen=True)
class StaticTable:
    """A table under a name. ``payload`` is an Arrow stream, compressed; tables of one name and content are equal."""

    name: str
    digest: str
    rows: int = field(compare=False)
    schema: pa.Schema = field(compare=False)
    payload: bytes = field(compare=False, repr=False)

    @staticmethod
    def of(name: str, table: pa.Table) -> StaticTable:
        """The table as Arrow has it; raises SourceError for one that is too large to travel with a plan."""
        if table.nbytes > MOST_BYTES:
            raise SourceError(
                f"the table `{name}` has {table.nbytes:,} bytes; a static table may have {MOST_BYTES:,}",
                hint="keep only the columns and rows that queries need, since it travels with the plan to every task",
            )
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table.combine_chunks())
        payload = sink.getvalue().to_pybytes()
        return StaticTable(name, hashlib.sha256(payload).hexdigest(), len(table), table.schema, payload)

    def open(self) -> pa.Table:
        """The rows, decoded once a process."""
        return _opened(self)

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.schema)
        return f"Table `{self.name}`: {self.rows:,} rows ({columns})"


@lru_cache(maxsize=16)
def _opened(table: StaticTable) -> pa.Table:
    return pa.ipc.open_stream(table.payload).read_all().combine_chunks()


@dataclass(frozen=True)
class Join:
    """Each row beside every row of ``table`` whose ``columns`` equal the ``keys`` of the row, pair by pair.

    NULL equals nothing, NaN equals NaN. A row without a partner is dropped by an ``inner`` join and gets NULLs by a
    ``left`` one. ``alias`` is the name of the table in the statement, one of a kind there.
    """

    table: StaticTable
    alias: str
    kind: Kind
    keys: tuple[Expression, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        own = quote_name(self.alias)
        named = own if self.alias == self.table.name else f"{quote_name(self.table.name)} AS {own}"
        pairs = zip(self.keys, self.columns, strict=True)
        on = " AND ".join(f"{key} = {own}.{quote_name(column)}" for key, column in pairs)
        return f"{'LEFT ' * (self.kind == 'left')}JOIN {named} ON {on}"


@dataclass(frozen=True)
class TableColumn(Expression):
    """A column of a joined table."""

    join: Join
    name: str

    @property
    def children(self) -> tuple[Expression, ...]:
        """What of the row the join needs."""
        return self.join.keys

    @property
    def stored(self) -> str:
        """The name of the column among joined rows; no column of a stream has a NUL in its name."""
        return f"{self.join}\0{self.name}"

    def __str__(self) -> str:
        return f"{quote_name(self.join.alias)}.{quote_name(self.name)}"


@dataclass(frozen=True)
class Joined(Expression):
    """True for the rows of a join, of which every row may become none, one or many."""

    join: Join

    @property
    def children(self) -> tuple[Expression, ...]:
        """What of the row the join needs."""
        return self.join.keys

    def __str__(self) -> str:
        return f"[{self.join}]"


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that all must hold, left to right."""
    if isinstance(condition, Call) and condition.function == "and":
        for side in condition.arguments:
            yield from conjuncts(side)
    elif condition is not None:
        yield condition


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """One condition of all; None of none."""
    if not conditions:
        return None
    return reduce(lambda left, right: Call(pa.bool_(), "and", (left, right)), conditions)


def joins_of(condition: Expression | None) -> tuple[Join, ...]:
    """The joins that a filter holds, in their order."""
    return tuple(each.join for each in conjuncts(condition) if isinstance(each, Joined))


def uses_table(expression: Expression) -> bool:
    """Whether an expression has a column of a joined table."""
    return any(isinstance(node, TableColumn) for node in walk(expression))


def split_at_joins(condition: Expression | None) -> tuple[Expression | None, Expression | None]:
    """What can be asked of a row before it is joined, and what must be asked afterwards; joins are in neither.

    Only conditions that stand before the first one about a table come early, so that one still guards the other.
    """
    conditions = [each for each in conjuncts(condition) if not isinstance(each, Joined)]
    early = list(takewhile(lambda each: not uses_table(each), conditions))
    return conjunction(early), conjunction(conditions[len(early) :])
