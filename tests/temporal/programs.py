"""Random signals, random rows, and the generated loop in plain Python, so that no example waits for a compiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from workbench.algebra import PARTIALS
from workbench.codegen import signals as codegen
from workbench.kernels import combine, instants
from workbench.runtime.reference_signals import reference
from workbench.runtime.signals import Points, Rows, evaluate
from workbench.temporal import Expression, Program, signal

SECOND = 1_000_000
REDUCERS = ("count", "sum", "mean", "min", "max", "var", "std", "skewness", "kurtosis", "rms")
#: Rows of one source by key: time in tenths of a second and two values.
Drawn = dict[int, list[tuple[int, float | None, float | None]]]

widths = st.sampled_from(["1 second", "700 ms", "3 seconds", "10 seconds"])


def samples(source: str) -> st.SearchStrategy[Expression]:
    """Columns of a source: as they are, shifted, of a neighbour, their age, with a limit."""
    plain = st.builds(signal, st.sampled_from(["x", "y"]), st.just(source), st.none() | st.just("2 seconds"))
    back, ahead = (st.builds(method, plain, widths) for method in (Expression.shift, Expression.ahead))
    before, after = (
        st.builds(each, plain, st.integers(1, 3)) for each in (Expression.previous, Expression.following)
    )
    return (
        plain
        | plain
        | back
        | ahead
        | before
        | after
        | st.builds(Expression.age, plain)
        | st.builds(Expression.interpolate, plain)
    )


def per_row(source: str) -> st.SearchStrategy[Expression]:
    """What each row decides by itself."""
    plain = st.builds(signal, st.sampled_from(["x", "y"]), st.just(source))
    return plain | arithmetic(plain)


def arithmetic(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """One operation on others, or on others and a number."""
    other = inner | st.integers(-2, 2)
    two = st.sampled_from(["__add__", "__sub__", "__mul__", "__truediv__", "__lt__", "__ge__", "__eq__", "__and__",
                           "__or__", "where", "fill", "least", "greatest"])  # fmt: skip
    one = st.sampled_from(["__neg__", "__invert__", "abs", "is_missing"])
    return st.builds(lambda a, name, b: getattr(a, name)(b), inner, two, other) | st.builds(
        lambda a, name: getattr(a, name)(), inner, one
    )


def _reduced(operand: Expression, name: str, width: str, tumbling: bool, moved: str | None) -> Expression:
    window = operand.tumbling(width) if tumbling else operand.window(width)
    found: Expression = getattr(window, name)()
    return found if moved is None else found.shift(moved)


def reductions(operand: st.SearchStrategy[Expression], tumbling: bool) -> st.SearchStrategy[Expression]:
    """A reduction over a window, also one of the past."""
    kinds = st.booleans() if tumbling else st.just(False)
    return st.builds(_reduced, operand, st.sampled_from(REDUCERS), widths, kinds, st.none() | widths)


def expressions(sources: tuple[str, ...]) -> st.SearchStrategy[Expression]:
    """Any expression over some sources, two reductions deep."""
    leaves = st.one_of([samples(source) for source in sources])
    rows = st.one_of([per_row(source) for source in sources])
    first = leaves | reductions(rows, tumbling=True) | arithmetic(leaves)
    mixed = first | arithmetic(first | reductions(rows, tumbling=True))
    return mixed | reductions(mixed, tumbling=False) | arithmetic(first | reductions(mixed, tumbling=False))


def rows_of(keys: int) -> st.SearchStrategy[Drawn]:
    """Some rows of each key; times may be equal, values missing."""
    value = st.none() | st.integers(-3, 3).map(float)
    run = st.lists(st.tuples(st.integers(-60, 120), value, value), max_size=12)
    return st.fixed_dictionaries(dict.fromkeys(range(keys), run))


def arrays(drawn: Drawn) -> Rows:
    """The rows of a source, in the order that the evaluation wants."""
    flat = [(key, when * SECOND // 10, x, y) for key, run in drawn.items() for when, x, y in run]
    keys, times = (np.array([row[place] for row in flat], np.int64) for place in (0, 1))
    columns, present = {}, {}
    for name, place in (("x", 2), ("y", 3)):
        values = [row[place] for row in flat]
        columns[name] = np.array([0.0 if value is None else value for value in values])
        if None in values:
            present[name] = np.array([value is not None for value in values])
    return Rows(keys, times, columns, present).ordered()


def arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Key, time in tenths of a second, x and y of some rows, as a table."""
    times = pa.array([row[1] * SECOND // 10 for row in rows], pa.int64()).cast(pa.timestamp("us"))
    x, y = (pa.array([row[place] for row in rows], pa.float64()) for place in (2, 3))
    return pa.table({"key": pa.array([row[0] for row in rows], pa.int64()), "ts": times, "x": x, "y": y})


def expected(program: Program, sources: dict[str, Drawn], keys: int) -> list[tuple[int, int, list[float | None]]]:
    """Key, time and outputs of every point, by the oracle."""
    found = []
    for key in range(keys):
        rows = {
            name: sorted(
                ((when * SECOND // 10, {"x": x, "y": y}) for when, x, y in drawn[key]), key=lambda row: row[0]
            )
            for name, drawn in sources.items()
        }
        found += [(key, time, list(values.values())) for time, values in reference(program, rows)]
    return found


def listed(points: Points) -> list[tuple[int, int, list[float | None]]]:
    """The same of what was computed."""
    columns = [
        [float(value) if there else None for value, there in zip(values, present, strict=True)]
        for values, present in zip(points.values, points.present, strict=True)
    ]
    return [
        (int(key), int(time), [column[row] for column in columns])
        for row, (key, time) in enumerate(zip(points.keys, points.times, strict=True))
    ]


def _slide(combine_: Callable[..., Any], count: int, first: Any, last: Any, *arrays: Any) -> None:
    """Every window from its own rows."""
    rows, units, outs = arrays[:count], arrays[-2 * count : -count], arrays[-count:]
    for j in range(len(first)):
        total = tuple(unit[0] for unit in units)
        for i in range(first[j], last[j]):
            total = combine_(*total, *(row[i] for row in rows))
        for out, value in zip(outs, total, strict=True):
            out[j] = value


def interpreted(program: Program, nullable: codegen.Nullable) -> Callable[..., None]:
    """The generated loop, uncompiled."""
    text, kinds = codegen.program_source(program, nullable)
    text = re.sub(r"^(from|import) .*\n", "", text, flags=re.MULTILINE)
    module = ModuleType("interpreted")
    vars(module).update(np=np, combine=combine, jit=lambda function: function)
    vars(module).update(upto=instants.upto.py_func, before_tumbling=instants.before_tumbling.py_func)
    vars(module).update(combine_min=combine.combine_min, combine_max=combine.combine_max)
    for kind in kinds:
        slide = partial(_slide, PARTIALS[kind].combine, len(PARTIALS[kind].fields))
        setattr(module, f"slide_{kind}", slide)
    exec(text, vars(module))

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            module.run(*arguments)

    return run


def computed(program: Program, sources: dict[str, Drawn], keys: int, **options: Any) -> Points:
    """By the interpreted loop."""
    with mock.patch.object(codegen, "load", interpreted):
        return evaluate(program, {name: arrays(drawn) for name, drawn in sources.items()}, keys, **options)


def near(found: float | None, wanted: float | None) -> bool:
    """Equal, both missing, or off by rounding."""
    if found is None or wanted is None:
        return found is wanted
    return bool(np.isclose(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True))
