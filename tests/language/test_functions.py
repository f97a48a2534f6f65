"""The closed list: names, arities, types; and that every function has a kernel."""

from __future__ import annotations

import pyarrow as pa
import pytest

from workbench.algebra import AGGREGATES
from workbench.errors import QueryError
from workbench.language.windows import FORMS
from workbench.logical.functions import FUNCTIONS, SQL_FUNCTIONS, resolve_call
from workbench.logical.types import NUMBERS, TIMESTAMP, can_cast, common_type, type_name
from workbench.runtime.decimals import HALVES
from workbench.runtime.functions import KERNELS

INT, BIGINT, FLOAT, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
STRING, BOOL, DATE, NULL = pa.string(), pa.bool_(), pa.date32(), pa.null()

#: Evaluated by :mod:`workbench.runtime.expressions` itself: they guard their arguments.
GUARDING = {"and", "or", "case", "coalesce", "nvl2"}


def test_every_function_has_one_kernel() -> None:
    assert set(KERNELS) | GUARDING == set(FUNCTIONS) | set(HALVES)
    assert not set(KERNELS) & GUARDING


def test_names_are_unambiguous() -> None:
    names = [*SQL_FUNCTIONS, *AGGREGATES, *FORMS]
    # `last(x)` is an aggregate where values stand, and `last(n, every)` a window where windows stand.
    assert sorted(names) == sorted([*set(names), "last"])
    aliases = sum(len(function.aliases) for function in FUNCTIONS.values())
    assert len(SQL_FUNCTIONS) == aliases + len(set(SQL_FUNCTIONS) & set(FUNCTIONS))


@pytest.mark.parametrize(
    ("name", "types", "parameters", "result"),
    [
        ("add", (INT, INT), (INT, INT), INT),
        ("add", (INT, BIGINT), (BIGINT, BIGINT), BIGINT),
        ("multiply", (BIGINT, FLOAT), (DOUBLE, DOUBLE), DOUBLE),
        ("divide", (INT, INT), (DOUBLE, DOUBLE), DOUBLE),
        ("add", (INT, NULL), (INT, INT), INT),
        ("less", (DATE, TIMESTAMP), (TIMESTAMP, TIMESTAMP), BOOL),
        ("less", (pa.timestamp("us"), TIMESTAMP), (TIMESTAMP, TIMESTAMP), BOOL),
        ("less", (pa.timestamp("us"), DATE), (pa.timestamp("us"), pa.timestamp("us")), BOOL),
        ("case", (BOOL, INT, BOOL, DOUBLE, NULL), (BOOL, DOUBLE, BOOL, DOUBLE, DOUBLE), DOUBLE),
        ("floor", (DOUBLE,), (DOUBLE,), BIGINT),
        ("round", (INT, pa.int8()), (INT, INT), INT),
        ("year", (DATE,), (TIMESTAMP,), INT),
        ("is_null", (pa.list_(INT),), (pa.list_(INT),), BOOL),
        ("coalesce", (NULL, STRING), (STRING, STRING), STRING),
    ],
)
def test_signature(
    name: str, types: tuple[pa.DataType, ...], parameters: tuple[pa.DataType, ...], result: pa.DataType
) -> None:
    signature = resolve_call(FUNCTIONS[name], types)
    assert (signature.parameters, signature.result) == (parameters, result)


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("add", (INT, STRING), "`+` does not take `int` with `string`"),
        ("add", (BOOL, BOOL), "`+` takes numbers, got `boolean`, `boolean`"),
        ("equal", (NULL, NULL), "`=` takes no bare NULL alone"),
        ("equal", (pa.list_(INT), pa.list_(INT)), "`=` takes numbers, text, times or booleans"),
        ("case", (INT, INT), "`case` takes `boolean`, got `int`"),
        ("and", (BOOL, INT), "`AND` takes `boolean`, got `boolean`, `int`"),
        ("nullif", (INT,), "`nullif` takes 2 arguments, got 1"),
        ("substring", (STRING, DOUBLE), "`substring` takes `string`, `int`, got `string`, `double`"),
    ],
)
def test_refusal(name: str, types: tuple[pa.DataType, ...], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        resolve_call(FUNCTIONS[name], types)
    assert caught.value.message.startswith(message)


def test_common_type_does_not_depend_on_order() -> None:
    for left in NUMBERS:
        for right in NUMBERS:
            meet = common_type([left, right])
            assert meet == common_type([right, left])
            assert can_cast(left, meet)


def test_type_names_are_sql() -> None:
    assert [type_name(kind) for kind in (INT, BIGINT, DOUBLE, BOOL, TIMESTAMP, pa.timestamp("us"))] == [
        "int",
        "bigint",
        "double",
        "boolean",
        "timestamp",
        "timestamp",
    ]
