"""Result batches as rows for others: an Arrow table with a column for everything that a result is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.results.shapes import ResultBatch, Schema, Status


def columns_of(schema: Schema) -> pa.Schema:
    """The columns of a query's result rows: level, keys, bounds, values, status, revision.

    What tells windows of a key apart is their start, or else their number, which has a column then: a late row moves
    the start of a window over so many rows, or the last ones.
    """
    kind = schema.levels[0].bound_type
    bounds = [("window_start", kind), ("window_end", kind)]
    if schema.numbered:
        bounds.append(("window_number", pa.int64()))
    last = [("status", pa.string()), ("revision", pa.int16())]
    return pa.schema([("level", pa.string()), *schema.keys, *bounds, *schema.values, *last])


def rows_of(schema: Schema, batches: Sequence[ResultBatch], labels: Sequence[str]) -> pa.Table:
    """The rows of some batches, as :meth:`QueryResults.table` has them, numbered.

    An ``absent`` one withdraws a result. ``labels`` are the levels by which the batches count. Cost: one copy.
    """
    wanted = columns_of(schema)
    levels = {level.label: level for level in schema.levels}
    names = pa.array([member.name.lower() for member in Status])
    parts = []
    for batch in batches:
        label, own = labels[batch.level], batch.own()
        shape = levels[label]
        ends = own.starts + shape.size if own.ends is None else own.ends
        level = pa.array([label]).take(pa.array(np.zeros(len(own), np.int64)))
        bounds = [shape.bounds(own.starts), shape.bounds(ends)]
        if schema.numbered:
            bounds.append(pa.array(own.starts if own.numbers is None else own.numbers))
        last = [names.take(pa.array(own.status)), pa.array(own.revisions)]
        columns = [level, *own.keys, *bounds, *own.values, *last]
        plain = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
        parts.append(pa.table(plain, schema=wanted))
    return pa.concat_tables(parts) if parts else wanted.empty_table()
