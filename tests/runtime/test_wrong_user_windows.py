"""Window types of a user's that cannot be meant: what is said of the class, of a call, and of what a method gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import user_windows
from strategies import SECOND
from user_streams import rows, workload

import workbench
from workbench.errors import DataError, QueryError
from workbench.plan import compile_workload
from workbench.runtime.engine import Engine

pytestmark = pytest.mark.usefixtures("own_window_types")


def only(**methods: Any) -> type:
    return type("Odd", (), methods)


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (only(), "window type `odd`: the class has one of three interfaces, got none of them"),
        (only(notify=lambda s, c, t: None, next_edge=lambda s, t: 1), "got `next_edge` and `notify`"),
        (only(next_edge=lambda s, t: 1), "window type `odd`: the class has no method `trigger`"),
        (only(notify_context=lambda s, c, t: None), "the class has no method `earliest`"),
        (only(notify=lambda s, c: None), "`notify` has other parameters than it is called with"),
        (only(notify=lambda s, c, *rest: None), "`notify` has other parameters than it is called with"),
        (only(next_edge=lambda s, t, x: 1, trigger=lambda s, a, b: []), "`next_edge` has other parameters"),
        (only(notify=lambda s, c, t: None, fields={"n": "int64"}), "field `n` must be a type and a value"),
        (only(notify=lambda s, c, t: None, fields={"n": ("int64", "x")}), "the value `x` of field `n` is no `int64`"),
        (only(notify=lambda s, c, t: None, fields={"end": ("int64", 0)}), "`end` is what the context itself has"),
        (only(notify=lambda s, c, t: None, fields={"a b": ("int64", 0)}), "`a b` is no name for a field"),
        (only(notify=lambda s, c, t: None, fields=["n"]), "`fields` must name what is kept of a key"),
    ],
)
def test_a_class_that_lacks_something_is_refused(cls: type, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        workbench.window_type("odd", cls)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("window", "`window` is built in and cannot be defined anew"),
        ("sum", "`sum` is built in"),
        ("upper", "`upper` is built in"),
        ("a b", "`a b` is no name for a window type"),
    ],
)
def test_names_of_the_language_are_taken(name: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        workbench.window_type(name, user_windows.Tumbling)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("u_moved()", "`u_moved` reads 1 values of each row, got 0\n"),
        ("u_moved(x)", "window type `u_moved`: `__init__` failed: TypeError"),
        ("u_moved(1.5, 2.0)", "`u_moved` reads a value of each row here, got a constant"),
        ("u_moved(nothing, 2.0)", "unknown column `nothing` in `s`"),
        ("u_moved(x, k)", "expected a number"),
        ("u_movd(x, 1.0)", "did you mean `u_moved`?"),
        ("u_tumbling(5000000) FILL ZERO", "FILL needs windows that are there without rows"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_and_underlined(form: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        workload([form])
    assert message in str(caught.value)
    assert "^" in str(caught.value)


def failing(cls: type, *batches: pa.Table, form: str = "odd()") -> str:
    """The error of a class at its first rows."""
    workbench.window_type("odd", cls)
    engine = Engine(compile_workload(workload([form])))
    with pytest.raises(DataError) as caught:
        engine.run(list(batches) or [rows((1, 1.0), (2, 2.0))])
    return str(caught.value)


def _next_second(self: object, time: int) -> int:
    return time // SECOND * SECOND + SECOND


def _add_and_remove(self: object, context: Any, time: int) -> None:
    context.add(time, time + 1)
    if time > SECOND:
        context.remove(SECOND, SECOND + 1)


class _Edges:
    def trigger(self, after: int, until: int) -> Any:
        return [(0, until)]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (only(notify=lambda s, c, t: 1 / 0), "`notify` failed: ZeroDivisionError: division by zero\nhint"),
        (only(notify=lambda s, c, t: setattr(c, "m", 1)), "`m` is none of the `fields`: there are none"),
        (only(notify=lambda s, c, t: c.end(t + 5)), "ValueError: no window is open"),
        (only(notify=lambda s, c, t: c.begin(t + 5)), "a window cannot begin at 1000005, which is not between"),
        (
            only(notify=lambda s, c, t: (c.begin(t // 2 + 2), c.end(t + 5))),
            "at 1000002: the one before has ended at 1000005",
        ),
        (only(notify=lambda s, c, t: c.begin(0.5)), "`0.5` is no whole number"),
        (only(notify_context=lambda s, c, t: c.add(5, 5), earliest=lambda s, c: None), "cannot end at 5, before it"),
        (only(notify_context=lambda s, c, t: c.add(t, 9), earliest=lambda s, c: None), "cannot end at 9, before it"),
        (only(notify_context=lambda s, c, t: c.add(0, 1 << 40), earliest=lambda s, c: None), "no two windows of"),
        (only(notify_context=lambda s, c, t: c.remove(0, 1), earliest=lambda s, c: None), "no window (0, 1)"),
        (
            only(notify_context=_add_and_remove, earliest=lambda s, c: None),
            "(1000000, 1000001) to remove, or it has end",
        ),
        (only(notify_context=lambda s, c, t: None, earliest=lambda s, c: "x"), "`earliest` gave `x`, which is"),
        (
            only(fields={"m": ("int64", 0)}, notify=lambda s, c, t: setattr(c, "m", c.m + 0.5)),
            "`0.5` is no whole number",
        ),
        (only(fields={"m": ("int64", 0)}, notify=lambda s, c, t: setattr(c, "m", 1 << 63)), "too large for `int64`"),
        (type("A", (_Edges,), {"next_edge": lambda s, t: t}), "`next_edge(-48576)` gave `-48576`, which is"),
        (type("B", (_Edges,), {"next_edge": lambda s, t: "x"}), "gave `x`, which is no whole number"),
        (type("C", (_Edges,), {"next_edge": _next_second}), "windows must begin one"),
        (
            only(next_edge=_next_second, trigger=lambda s, a, b: [(b - 1, b)]),
            "a window has a bound at 1970-01-01 00:00:02.999999, where `next_edge` tells no edge",
        ),
        (
            only(next_edge=_next_second, trigger=lambda s, a, b: [(b, b + 1)]),
            "which is no window that ends in between",
        ),
        (only(next_edge=_next_second, trigger=lambda s, a, b: 5), "`trigger` failed: TypeErr"),
    ],
)
def test_errors_of_the_class_name_it_and_the_method(cls: type, message: str) -> None:
    text = failing(cls)
    assert text.startswith("window type `odd`: ")
    assert message in text
    assert "\nhint: it is called as " in text
