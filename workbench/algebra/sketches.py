"""Approximate quantiles and distinct counts in bounded space: sketches of Apache DataSketches.

A partial is a sketch in its own serialized form, which is what travels and what is stored; partials of any number of
slices merge without losing the bound. Up to a few hundred values both sketches are exact.

- KLL (Karnin, Lang, Liberty 2016) with k = 200: the rank of an answer differs from the one asked for by less than
  1.33 % of the rows, in 99 of 100 answers. It decides by chance which values it keeps, so two runs over the same rows
  may differ within the bound.
- HyperLogLog (Flajolet et al. 2007) with 2**12 registers: a relative error of 1.62 % (one standard deviation), the
  same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from datasketches import HLL_4, hll_sketch, hll_union, kll_doubles_sketch

from workbench.algebra.aggregates import Aggregate, Family, Operands, Part, ordered, parts
from workbench.algebra.holistic import fractions, listed, quantile_type
from workbench.algebra.partials import OBJECT, Array, Codec, Field, Fields, PartialKind
from workbench.algebra.runs import fold as fold_runs

#: KLL's size parameter, and HyperLogLog's binary logarithm of the number of registers.
KLL_K, HLL_LG_K = 200, 12


def _merge_kll(a: bytes, b: bytes) -> bytes:
    if not a or not b:
        return a or b
    sketch = kll_doubles_sketch.deserialize(a)
    sketch.merge(kll_doubles_sketch.deserialize(b))
    return bytes(sketch.serialize())


def _merge_hll(a: bytes, b: bytes) -> bytes:
    if not a or not b:
        return a or b
    union = hll_union(HLL_LG_K)
    union.update(hll_sketch.deserialize(a))
    union.update(hll_sketch.deserialize(b))
    return bytes(union.get_result(HLL_4).serialize_compact())


def _kll_of(values: Array, counts: Array) -> bytes:
    sketch = kll_doubles_sketch(KLL_K)
    sketch.update(np.repeat(values, counts))
    return bytes(sketch.serialize())


def _hll_of(values: Array, counts: Array) -> bytes:
    """Every distinct value once. Texts are marked: DataSketches would pass over the empty one."""
    sketch = hll_sketch(HLL_LG_K, HLL_4)
    for value in values.tolist():
        sketch.update(f"={value}" if isinstance(value, str) else value)
    return bytes(sketch.serialize_compact())


def _fold(sketch: Callable[[Array, Array], bytes]) -> Callable[[Array, Array], tuple[Array, Fields]]:
    """Rows to sketches by way of their runs: one sort, and then whole arrays a group."""

    def fold(group: Array, values: Array) -> tuple[Array, Fields]:
        found, (cells,) = fold_runs(group, values)
        return found, (_cells([sketch(run.values, run.counts) for run in cells]),)

    return fold


def _cells(sketches: Sequence[bytes]) -> Array:
    cells = np.empty(len(sketches), object)
    cells[:] = sketches
    return cells


_CODEC = Codec(
    lambda cells: pa.array(cells, pa.binary()), lambda column: _cells(column.to_pylist()), lambda cell: 33 + len(cell)
)


def _kind(
    name: str, dtype: str, sketch: Callable[[Array, Array], bytes], merge: Callable[[bytes, bytes], bytes]
) -> PartialKind:
    merge_cells: Callable[[Array, Array], Array] = np.frompyfunc(merge, 2, 1)
    fold = _fold(sketch)
    return PartialKind(
        name,
        (Field("sketch", OBJECT, b"", _CODEC),),
        (dtype,),
        lambda values: fold(np.arange(len(values)), values)[1],
        lambda a, b: (merge_cells(a, b),),
        fold=fold,
        exact=False,
    )


KINDS = (
    _kind("kll", "float64", _kll_of, _merge_kll),
    _kind("hll_int", "int64", _hll_of, _merge_hll),
    _kind("hll_float", "float64", _hll_of, _merge_hll),
    _kind("hll_text", OBJECT, _hll_of, _merge_hll),
)


def _kll_parts(operands: Operands) -> tuple[Part, ...]:
    return (Part("kll"), Part("count"))


def _lower_quantile(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    """The smallest value that at least the fraction q of the rows do not exceed. KLL drops NaN: rows then miss."""
    q = list(fractions(operands))
    counts = fields[1][0]
    found = np.full((len(counts), len(q)), np.nan)
    for place, (cell, count) in enumerate(zip(fields[0][0], counts.tolist(), strict=True)):
        sketch = kll_doubles_sketch.deserialize(cell) if cell else None
        if sketch is not None and count and sketch.n == count:
            found[place] = sketch.get_quantiles(q, True)
    return listed(found, counts == 0, kind)


def _count_type(operands: Operands) -> pa.DataType:
    ordered(operands)
    return pa.int64()


def _lower_distinct(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
    counts = [hll_sketch.deserialize(cell).get_estimate() if cell else 0.0 for cell in fields[0][0]]
    return pa.array(list(map(round, counts)), kind)


_BOUNDED = Family.ALGEBRAIC
AGGREGATES = (
    Aggregate("approx_quantile", (2, 2), _BOUNDED, quantile_type, _kll_parts, _lower_quantile, constant_from=1),
    Aggregate("approx_count_distinct", (1, 1), _BOUNDED, _count_type, parts("hll_*"), _lower_distinct),
)
ALIASES = {"approx_percentile": "approx_quantile"}
