"""The builder makes the same queries as SQL, and refuses with the same words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from workbench.algebra import AGGREGATES
from workbench.errors import QueryError
from workbench.language import Catalog, builder, col, parse_queries, query
from workbench.language.builder import agg, avg, count, count_if, max_, sql, sum_
from workbench.logical import Query, Stream
from workbench.logical.joins import StaticTable

FLIGHTS = Stream(
    "flights",
    pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")),
            ("carrier", pa.string()),
            ("dep_delay", pa.float64()),
            ("gate", pa.int32()),
            ("odd name", pa.int64()),
        ]
    ),
    time="ts",
    delay=0,
)


def parsed(text: str) -> Query:
    (bound,) = parse_queries(text, {"flights": FLIGHTS}, name="delays")
    return bound


def test_same_query_as_sql() -> None:
    built = (
        query(FLIGHTS)
        .where("dep_delay IS NOT NULL")
        .group_by("carrier")
        .zoom("15 minutes / 1 minute", "2 hours / 10 minutes", "1 day / 1 hour")
        .select(mean_delay=avg("dep_delay"), worst=max_("dep_delay"), n=count())
        .build("delays")
    )
    assert built == parsed(
        """SELECT carrier, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst, count(*) AS n
        FROM flights WHERE dep_delay IS NOT NULL
        GROUP BY carrier, zoom(ts, '15 minutes / 1 minute', '2 hours / 10 minutes', '1 day / 1 hour')"""
    )


def test_a_result_for_each_row() -> None:
    """A frame, and functions that have none; keys and order are expressions or SQL."""
    before = avg("gate").over("carrier", order="ts", frame="ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING")
    built = query(FLIGHTS).select(
        "ts",
        step=col("gate") - builder.lag("gate").over(col("carrier"), order=col("ts")),
        later=builder.lead("gate", default="0").over("carrier", order="ts"),
        third=builder.lag("gate", 3, 0).over("carrier", order="ts"),
        n=builder.row_number().over("carrier", order="ts"),
        r=builder.rank().over("carrier", order="ts"),
        before=before,
    )
    assert built.build("delays") == parsed(
        """SELECT ts, gate - lag(gate) OVER w AS step, lead(gate, 1, 0) OVER w AS later,
        lag(gate, 3, 0) OVER w AS third, row_number() OVER w AS n, rank() OVER w AS r,
        avg(gate) OVER (w ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING) AS before
        FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY ts)"""
    )
    with pytest.raises(QueryError):
        avg("gate").over("carrier", order="ts", frame="ROWS 5 PRECEDING), sum(gate) OVER (ORDER BY ts")


BASE = query(FLIGHTS).window("1 hour").select(n=count())
gate, odd = col("gate"), col("odd name")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ((gate > 1) & ~(gate == 3) | odd.is_null(), "gate > 1 AND NOT gate = 3 OR `odd name` IS NULL"),
        ((gate + 1) * 2 - 3 <= 10 / odd, "(gate + 1) * 2 - 3 <= 10 / `odd name`"),
        (-gate % 5 != 2 * gate, "-gate % 5 <> 2 * gate"),
        (3 + gate >= 3 - gate, "3 + gate >= 3 - gate"),
        (gate / 2 < 1 / gate, "gate / 2 < 1 / gate"),
        (col("carrier").isin("AA", "it's", None), r"carrier IN ('AA', 'it\'s', NULL)"),
        (col("carrier") == "a' OR '1' = '1", r"carrier = 'a\' OR \'1\' = \'1'"),
        (gate.is_not_null(), "gate IS NOT NULL"),
        (sql("gate > 1 OR gate < 0 -- why") & (gate != 5), "(gate > 1 OR gate < 0) AND gate <> 5"),
        (agg("upper", "carrier") == "AA", "upper(carrier) = 'AA'"),
    ],
)
def test_operators_write_sql(condition: Any, text: str) -> None:
    wanted = parsed(f"SELECT count(*) AS n FROM flights WHERE {text} GROUP BY window(ts, '1 hour')")
    assert BASE.where(condition).build("delays") == wanted


def test_conditions_add_up() -> None:
    built = BASE.where("gate > 1 OR gate < 0").where(gate != 5).having("n > 1 OR n < 0").having(max_(gate) > 2)
    assert built.build("delays") == parsed(
        """SELECT count(*) AS n FROM flights WHERE (gate > 1 OR gate < 0) AND gate <> 5
        GROUP BY window(ts, '1 hour') HAVING (n > 1 OR n < 0) AND max(gate) > 2"""
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("1 hour",), "'1 hour'"),
        (("1 hour", "5 minutes"), "'1 hour', '5 minutes'"),
        (("1 hour", "5 minutes", "1 minute"), "'1 hour', '5 minutes', '1 minute'"),
        (("1 hour", None, "1 minute"), "'1 hour', '1 hour', '1 minute'"),
    ],
)
def test_window(arguments: tuple[Any, ...], text: str) -> None:
    built = query(FLIGHTS).window(*arguments).select(s=sum_(gate), c=count_if(gate > 1)).build("delays")
    assert built == parsed(f"SELECT sum(gate) AS s, count_if(gate > 1) AS c FROM flights GROUP BY window(ts, {text})")


def test_joins() -> None:
    gates = StaticTable.of("gates", pa.table({"gate": [1, 2], "hall": ["A", "B"]}))
    built = query(FLIGHTS).join(gates, "flights.gate = gates.gate", how="left").group_by("hall").window("1 hour")
    (wanted,) = parse_queries(
        """SELECT count(*) AS n FROM flights LEFT JOIN gates ON flights.gate = gates.gate
        GROUP BY hall, window(ts, '1 hour')""",
        Catalog({"flights": FLIGHTS}, {"gates": gates}),
        name="delays",
    )
    assert built.select(n=count()).build("delays") == wanted
    with pytest.raises(QueryError, match="no join `right`"):
        built.join(gates, "true", how="right")  # type: ignore[arg-type]


def test_steps_do_not_change_the_builder() -> None:
    BASE.where("gate > 1").group_by("carrier").select(m=max_("gate"))
    assert BASE.sql() == "SELECT count(*) AS n\nFROM flights\nGROUP BY window(ts, '1 hour')"


@pytest.mark.parametrize("text", ["gate > 1) OR (true", "gate; SELECT 1", "", "gate AS g", "SELECT 1", "-- gate"])
def test_fragment_is_one_expression(text: str) -> None:
    with pytest.raises(QueryError):
        BASE.where(text)


def test_errors_are_those_of_sql() -> None:
    with pytest.raises(QueryError, match=r"unknown column `gat` in `flights`[\s\S]*did you mean `gate`"):
        BASE.where("gat > 1").build("delays")
    with pytest.raises(QueryError, match="one window form"):
        BASE.zoom("1 day")
    with pytest.raises(QueryError, match="no GROUP BY with a window"):
        query(FLIGHTS).select(n=count()).build("delays")
    with pytest.raises(QueryError, match="selects nothing"):
        query(FLIGHTS).window("1 hour").build("delays")


def test_python_logic_is_refused() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        _ = gate > 1 and gate < 5
    with pytest.raises(TypeError, match="got `list`"):
        _ = gate == [1]


def test_every_aggregate_has_a_function() -> None:
    """By its own name, with `_` behind it where that would hide one of Python's."""
    names = {aggregate.name for aggregate in AGGREGATES.builtin.values()}
    names -= {"var_samp", "var_pop", "stddev_samp", "stddev_pop"}  # `variance` and `stddev`; `agg` for the others
    assert {name for name in names if not hasattr(builder, name) and not hasattr(builder, f"{name}_")} == set()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (builder.median("gate"), "median(gate)"),
        (builder.corr("dep_delay", gate + 1), "corr(dep_delay, gate + 1)"),
        (builder.max_by("carrier", "dep_delay"), "max_by(carrier, dep_delay)"),
        (builder.quantile("gate", 0.9), "quantile(gate, 0.9)"),
        (builder.quantile("gate", [0.5, 1], "lower"), "quantile(gate, array(0.5, 1), 'lower')"),
        (builder.approx_quantile(gate, (0.25, 0.75)), "approx_quantile(gate, array(0.25, 0.75))"),
        (builder.histogram("gate", 0, 10.5, 3), "histogram(gate, 0, 10.5, 3)"),
        (builder.histogram("gate", [-1, 0, 1]), "histogram(gate, array(-1, 0, 1))"),
        (builder.range_("gate"), "range(gate)"),
        (builder.first("carrier"), "first(carrier)"),
    ],
)
def test_aggregates(item: Any, text: str) -> None:
    built = query(FLIGHTS).window("1 hour").select(r=item).build("delays")
    assert built == parsed(f"SELECT {text} AS r FROM flights GROUP BY window(ts, '1 hour')")
