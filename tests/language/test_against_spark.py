"""Every scalar function gives what Spark gives, on rows with NULL, NaN, negative numbers and empty texts."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from workbench.language import parse_queries
from workbench.logical import Call, Expression, Stream, walk
from workbench.logical.functions import FUNCTIONS
from workbench.logical.types import type_name
from workbench.runtime.expressions import evaluate

NAN = float("nan")
ROWS = pa.table(
    {
        "ts": pa.array(
            [0, -1, 1_357_034_400_000_000, -86_400_000_000, 951_827_696_123_456, None], pa.timestamp("us", tz="UTC")
        ),
        "d": pa.array([date(1970, 1, 1), date(1969, 12, 31), date(2012, 2, 29), None, date(2000, 1, 2), None]),
        "x": pa.array([7.5, -2.5, NAN, 0.0, None, float("inf")]),
        "y": pa.array([2.0, -0.5, 1.0, NAN, 3.0, None]),
        "f": pa.array([0.1, -1.5, 2.0, None, 1e10, 3.25], pa.float32()),
        "n": pa.array([7, -7, 0, None, 2**40, 5], pa.int64()),
        "m": pa.array([2, 3, -3, 4, None, -5], pa.int64()),
        "i": pa.array([1, -1, 0, None, 100, 25], pa.int32()),
        "t": pa.array([1, -1, 0, None, 100, 25], pa.int8()),
        "s": pa.array(["héllo", "", "a_b", None, "  trim me ", "Zebra"]),
        "u": pa.array(["h%", "", "A_B", "x", None, "zebra"]),
        "w": pa.array(["one two\nthree", "a,b,,c", "ÉA-12 b34", None, "", "x.y.z"]),
        "r": pa.array(
            [{"a": 1, "q": {"z": "in"}}, None, {"a": None, "q": {"z": "x"}}, {"a": 4, "q": None}, None, {"a": 6}],
            pa.struct([("a", pa.int32()), ("q", pa.struct([("z", pa.string())]))]),
        ),
        "p": pa.array(["2013-01-31 10:15:00", "1969-12-31 23:59:59", None, "2000-02-29 00:00:00", None, None]),
        "big": pa.array([2**53 + 1, -(2**53) - 1, 2**63 - 1, None, 0, -(2**63)], pa.int64()),
        "number": pa.array(["+5", "0x1F", "1.5d", "2e1F", " 7 ", "\u00a08"]),
        "moment": pa.array(
            [
                "2013-1-5",
                "2013",
                "2013-02",
                "2013-1-31T1:2:3.1234567 UTC",
                "2013-01-31 10:15:00+2:30",
                "2013-01-31 10:15:00 -05:00",
            ]
        ),
        "padded": pa.array(["12\x00\x00", "\x1f\x02-3 ", "2013-01-31\x00", "true\x01", "\t7\n", "1 2"]),
        "word": pa.array(["Straße", "ΑΣ ΣΑΣ", "ﬁN", "aΣ b", "Ⅷ", None]),
        "b": pa.array([True, False, None, True, False, None]),
        "c": pa.array([True, True, False, None, None, False]),
    }
)
STREAM = Stream("rows", ROWS.schema, "ts", 0)

EXPRESSIONS = """
b AND c; b OR c; NOT b; b = c; b < c
n = m; n <> m; n < m; n <= m; n > m; n >= m; n = i; x = n; n > 1.5; f > i
x = y; x <> y; x < y; x <= y; x > y; x >= y; x > 5; y < 1e300
s = u; s <> u; s < u; s >= u; ts < '2013-01-01'; d >= '1970-01-01'; ts > d
n IN (7, 0, -7); n NOT IN (7, NULL); s IN ('', 'Zebra')
x IN (7.5, 'NaN'::double); x IN (-0.0D, NULL); n IN (m, 7); NULL IN (n, 5); 5 IN (n, 7)
n BETWEEN -7 AND 7; d BETWEEN d AND d
s LIKE '%e%'; s LIKE 'a\\\\_b'; s LIKE 'h_l%'; s NOT LIKE ''; s LIKE '%'
n IS NULL; x IS NOT NULL; isnull(s); isnotnull(b)
CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END; CASE i WHEN 1 THEN 2 ELSE 3.5D END; if(b, n, i)
CASE WHEN n <> 0 THEN 7 / n ELSE 0 END; if(n = 0, 0, 7 % n); n <> 0 AND 7 / n > 0; n = 0 OR 7 / n > 0
coalesce(n, m); coalesce(x, n, 0); ifnull(s, ''); nvl(s, u); nullif(n, 0); nullif(s, ''); nullif(x, 'NaN'::double)
least(n, m); greatest(n, m, 1); least(x, y); greatest(x, y)
least(s, u); greatest(x, n); greatest(ts, ts); least(d, d)
n + m; n - m; n * m; i + 1; i - n; i * 2; t - t; t + i; x + y; x - n; x * y; f + f; f * i; f + n
n / nullif(m, 0); x / y; i / 4; f / 2
n % m; mod(i, 7); x % y; -7 % 3; x % -2.5D; t % m
-n; -x; negative(i); abs(n); abs(x); abs(i); -(-3)
round(x); round(y); round(x, 1); round(n, -1); round(i); round(2.5D); round(-2.5D); round(-0.4D); round(f)
ceil(nullif(y, 'NaN'::double)); ceiling(n); floor(i); floor(nullif(y, 'NaN'::double)); ceil(f)
sqrt(x); sqrt(n); exp(y); exp(i); ln(x); ln(n); ln(y); power(x, 2); pow(y, i); power(-8, 1 / 3D)
length(s); char_length(u); lower(s); lcase(u); upper(s); ucase(u); trim(s)
substring(s, 2, 3); substring(s, 0, 2); substring(s, -3); substring(s, -7, 4); substr(s, 3); substring(s, 2, 0)
concat(s, '-', u); s || u; concat(s)
year(ts); month(ts); day(ts); dayofmonth(d); hour(ts)
minute(ts); dayofweek(ts); year(d); month(d); dayofweek(d); hour(d)
CAST(n AS double); CAST(i AS string); CAST(b AS string)
CAST(b AS int); CAST('12' AS int); CAST(' -3 ' AS bigint)
CAST('1.5' AS double); CAST(f AS double); CAST(i AS smallint)
CAST(nullif(y, 'NaN'::double) AS int); CAST(ts AS date)
CAST(d AS timestamp); CAST(d AS string); coalesce(d, CAST('2012-02-29' AS date))
CAST(x AS string); CAST(f AS string); CAST(y * 1e8D AS string); CAST(y / 1e5D AS string); CAST(x / 3 AS string)
CAST(ts AS string); CAST(timestamp_micros(n) AS string); CAST(ts AS bigint); CAST(ts AS double)
CAST(i AS timestamp); CAST(nullif(y, 'NaN'::double) AS timestamp); CAST(x AS boolean); CAST(n AS boolean)
CAST('yes' AS boolean)
TRY_CAST(s AS int); TRY_CAST(n AS int); TRY_CAST(n AS tinyint); TRY_CAST(x AS bigint); TRY_CAST(u AS boolean)
TRY_CAST(w AS double); TRY_CAST('1e3' AS double); TRY_CAST(p AS timestamp); TRY_CAST(s AS date)
CAST(p AS timestamp); CAST(p AS date); CAST(p || 'Z' AS timestamp); CAST(p || '+02:00' AS timestamp)
CAST('-Infinity' AS double); CAST(' inf ' AS double)
n <=> m; x <=> y; s <=> u; b <=> c; n <=> NULL; x <=> 'NaN'::double; equal_null(n, m)
n IS DISTINCT FROM m; x IS NOT DISTINCT FROM x; b IS TRUE; b IS NOT TRUE; b IS FALSE; c IS NOT FALSE; b IS UNKNOWN
s LIKE 'a!_b' ESCAPE '!'; s NOT LIKE '%!%' ESCAPE '!'; w LIKE 'one%three'; w LIKE '%two%'; w LIKE 'one_two%'
u LIKE 'h\\%'; u LIKE ''; u LIKE '%%'; u LIKE 'h%'; u LIKE '%ra'; s ILIKE 'ZE%'; s ILIKE 'HÉ%'; u NOT ILIKE 'a\\_B'
w RLIKE '[0-9]+'; w NOT RLIKE '^a'; regexp_like(w, 't.o'); w REGEXP '(?i)ONE'; s RLIKE 'l{2}'
n DIV nullif(m, 0); -7 DIV 2; 7 DIV -2; i DIV 3; t DIV 2; pmod(n, nullif(m, 0)); pmod(x, y); pmod(-7, 3); pmod(-7, -3)
positive(n); try_divide(n, i); try_divide(x, y); sign(x); signum(n); sign(-0.0D)
bround(2.5D); bround(-3.5D); bround(x); bround(n, -1); bround(x / 3, 3); round(x / 3, 4); round(1.005D, 2)
round(y, 0); round(2.675D, 2); round(1e300D, 2); round(n, 2); round(i, -2)
rint(x); rint(2.5D); cbrt(x); cbrt(n); expm1(y); log(x); log(2, x); log(y, 8); log10(x); log10(n); log2(x); log1p(y)
log1p(-1); sin(x); cos(y); tan(y); asin(y); acos(y); atan(x); sinh(y); cosh(y); tanh(x); atan2(x, y); atan2(0D, -1D)
degrees(y); radians(n); hypot(y, n); isnan(x); isnan(n); isnan(y); nanvl(x, y); nanvl(y, x); pi(); e()
nvl2(n, m, i); nvl2(s, 'yes', 'no'); nullifzero(n); nullifzero(x); zeroifnull(n); zeroifnull(x); if(b, s, u)
octet_length(s); character_length(w); len(w); initcap(w); initcap(s); reverse(w); reverse(s)
ltrim(s); rtrim(s); btrim(s); btrim(s, ' e'); trim(BOTH 'Za' FROM s); trim(LEADING FROM s); trim(TRAILING 'o' FROM s)
trim('h' FROM s); substring_index(w, ' ', 1); substring_index(w, ',', -2); substring_index(w, '.', 5)
substring_index(w, ',', 0); left(s, 2); left(s, 0); left(s, -1); right(s, 2); right(s, 0); right(s, 99)
lpad(s, 7); lpad(s, 8, 'xy'); lpad(s, 2, 'x'); rpad(s, 8, 'xy'); rpad(s, 3); lpad(s, 7, ''); lpad(s, -1, 'x')
repeat(s, 2); repeat(s, 0); repeat(s, -1); concat(n, '-', x); concat(d, ts, b); concat_ws('-', s, u, w)
concat_ws(',', s, n); s || i; replace(w, 't', 'TT'); replace(w, 'o'); replace(w, '', 'x'); translate(w, 'on,', 'XY')
translate(w, 'aa', 'xy'); split_part(w, ',', 2); split_part(w, ',', 3); split_part(w, ',', -1); split_part(w, '.', 9)
split_part(w, '', 1); instr(w, 'b'); instr(w, ''); instr(s, 'l'); locate('o', w); position('b', w); POSITION('b' IN w)
ascii(s); ascii(w); startswith(s, 'h'); startswith(s, ''); endswith(w, 'c'); contains(w, 't'); contains(w, '')
regexp_replace(w, '[aeiou]', '<$0>'); regexp_replace(w, '([a-z])(\\d)', '$2\\$$1');
regexp_extract(w, '([a-z])(\\d+)', 2); regexp_extract(w, '[0-9]+', 0); regexp_extract(w, '(\\w+) (\\w+)')
regexp_extract(w, '(zzz)|(b)', 1); regexp_count(w, '[a-c]'); regexp_count(w, 'zz')
r.a; rows.r.a + 1; r.q.z; (r.q).z; upper(r.q.z); coalesce(r.a, 0); r.a IS NULL; r IS NULL
quarter(ts); quarter(d); weekday(ts); weekday(d); dayofyear(ts); dayofyear(d); weekofyear(ts); weekofyear(d)
second(ts); dayname(d); dayname(ts); monthname(ts); EXTRACT(hour FROM ts); EXTRACT(YEAR FROM d); EXTRACT(doy FROM ts)
EXTRACT(week FROM ts); EXTRACT(dow FROM ts); date_part('minute', ts); datepart('month', d)
date_trunc('hour', ts); date_trunc('DAY', ts); date_trunc('week', ts); date_trunc('MONTH', ts)
date_trunc('quarter', ts)
date_trunc('year', ts); date_trunc('minute', ts); date_trunc('second', ts); date_trunc('millisecond', ts)
date_trunc('week', d); trunc(d, 'MM'); trunc(d, 'year'); trunc(ts, 'week'); trunc(d, 'quarter')
date_add(d, 1); date_add(ts, i); date_add(d, -1); date_sub(d, i); dateadd(d, 31); d + 1; d - 1; d + i
datediff(d, ts); datediff('2013-01-01', d); datediff(d, d); add_months(d, 1); add_months(d, -12); add_months(d, i)
add_months(CAST('2013-01-31' AS date), 1);
timestampdiff(SECOND, ts, d); timestampdiff(DAY, ts, TIMESTAMP '2013-01-01 00:00:00'); timestampdiff(HOUR, d, ts)
date_diff(MINUTE, ts, d); last_day(d); last_day(ts); make_date(2012, 2, 29)
make_date(i + 2000, 1, 31)
ts + INTERVAL '90' MINUTE; ts - INTERVAL 1 DAY; ts + INTERVAL '1' MONTH; d + INTERVAL '1' DAY; d - INTERVAL '1' YEAR
d + INTERVAL '2 hours'; ts - INTERVAL '13' MONTH; ts + INTERVAL '1.5' SECOND
date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'); date_format(d, 'dd.MM.yy'); date_format(ts, 'E EEEE MMM MMMM d H')
date_format(ts, "yyyy'T'HH''mm"); date_format(ts, 'SSSSSS')
to_date(p); to_date(ts); date(ts); to_timestamp(p); to_timestamp(d); to_date(p, 'yyyy-MM-dd HH:mm:ss')
to_timestamp(p, 'yyyy-MM-dd HH:mm:ss'); to_timestamp('31.1.2013 7:05', 'd.M.yyyy H:mm')
to_timestamp('2013-01-31T10:15:00.25', "yyyy-MM-dd'T'HH:mm:ss.SS"); to_date('201302', 'yyyyMM')
unix_timestamp(ts); unix_timestamp(p); unix_timestamp(d); unix_timestamp(p, 'yyyy-MM-dd HH:mm:ss')
unix_date(d); date_from_unix_date(i); unix_seconds(ts); unix_millis(ts); unix_micros(ts); timestamp_seconds(i)
timestamp_seconds(y); timestamp_millis(n); timestamp_micros(n); to_unix_timestamp(ts); timestamp(p)
from_utc_timestamp(ts, 'America/New_York'); from_utc_timestamp(ts, 'Asia/Kolkata')
floor(big); ceil(big); ceiling(-9223372036854775808L); -128Y < t; -32768S; CAST(NULL AS boolean) OR b
if(CAST(NULL AS boolean), 1, 2); TRY_CAST(CAST(NULL AS boolean) AS bigint); round(t, -3); bround(i, -5)
round(big, -20)
round(127Y, -3); bround(n, -18); round(f, 3); round(3.4e38F, 3); bround(1e308D, 2); round(1e300D, -300)
round(1.2345e25D, -22); round(x, 400); round(x, -400); round(1e-20D, 25); round(f, 1); bround(0.25F, 1)
pmod(-1Y, -128Y); pmod(-7Y, 127Y); pmod(t, -3Y); atan2(-0.0D, -0.0D); atan2(0.0D, -1D); zeroifnull(t); zeroifnull(f)
TRY_CAST(number AS tinyint); TRY_CAST(number AS bigint); TRY_CAST(number AS double); TRY_CAST(number AS float)
TRY_CAST(number AS boolean); TRY_CAST(moment AS date); TRY_CAST(moment AS timestamp)
1 + i || s; s || 2 * t || -i; length(CAST(nullifzero(0.0D) AS string))
regexp_count(CAST(nullif(1.5F, 1.5F) AS string), 'x')
to_date('2013-1-5'); to_date('2013-01-31 and more'); to_timestamp('2013-1-5 1:2:3.5'); CAST('2013' || '' AS date)
lower(word); upper(word); initcap(word); word ILIKE 'STRASSE'; word ILIKE '%Σ b'; word ILIKE 'ß%'
substring_index('aaaa', 'aa', 2); substring_index('aaaa', 'aa', -2); substring_index('aaa', 'aa', -1)
CAST(5e-324D AS string); CAST(CAST(1e-45D AS float) AS string); nvl2(m, n, 7 DIV (m - m)); nvl2(NULL, 1 DIV 0, 2)
concat('at ', ts); 'on ' || d; '2013-02-28' || ts; concat_ws(' ', d, '2013-02-28'); nvl2(ts, 'yes', 'no')
nullifzero(i) * (7 DIV i); nullifzero(i) < 7 DIV i; (7 DIV i) % nullif(i, i); pmod(7 DIV i, nullif(i, i))
i IN (0, 7 DIV i); i NOT IN (0, -1, 7 DIV i); nanvl(y, 7 DIV i); date_add(if(i = 0, NULL, d), CAST(7 DIV i AS int))
nullifzero(i) <=> nullif(i, i) + 7 DIV i; (1 DIV i) / nullif(y, y); nullif(nullif(n, 0), 7 DIV n)
d + INTERVAL '24' HOUR; d - INTERVAL '1440 minutes'; d + INTERVAL '1 day 24 hours'; d + INTERVAL '1 week 1 day'
TRY_CAST(padded AS int); TRY_CAST(padded AS double); TRY_CAST(padded AS date); TRY_CAST(padded AS boolean)
TRY_CAST(padded AS timestamp)
w RLIKE r'\\d'; regexp_replace(w, r'(\\w)\\.', '$1!')
ts + (INTERVAL '1' DAY); d - (INTERVAL '1' DAY + INTERVAL '2' HOUR)
power(i, 'NaN'::double); power(-1, x); power(1, 'Infinity'::double); power(t, NULL)
from_utc_timestamp(TIMESTAMP '2059-07-01 12:00:00', 'America/New_York')
from_utc_timestamp(date_add(d, 30000 + i), 'Europe/Berlin')
from_utc_timestamp(timestamp_seconds(m * 4000000000), 'Australia/Lord_Howe')
coalesce(d, ts, '2013-02-28 10:15:00'); if(b, d, '2013-02-28'); ts IN ('2013-01-01', d)
"""
CASES = [text.strip() for text in EXPRESSIONS.replace("\n", ";").split(";") if text.strip()]


def bind(text: str) -> Expression:
    """The expression, bound as a key: the one place where any type is taken."""
    statement = f"SELECT count(*) AS n FROM rows GROUP BY {text}, window(ts, '1 hour')"
    (query,) = parse_queries(statement, {"rows": STREAM}, name="q")
    return query.keys[0].expression


def described(column: Any) -> str:
    """Type and values; the last bits of exp, ln, power and sines are the C and the Java library's own."""
    values = [
        float(f"{value:.12g}") if isinstance(value, float) and math.isfinite(value) else value
        for value in column.to_pylist()
    ]
    return f"{type_name(column.type)} {values}"


def test_every_function_is_compared() -> None:
    calls = {node.function for text in CASES for node in walk(bind(text)) if isinstance(node, Call)}
    assert calls == set(FUNCTIONS)


def test_no_rows_and_rows_of_nulls_have_the_type_as_well() -> None:
    batch = ROWS.combine_chunks().to_batches()[0]
    nulls = pa.record_batch([pa.nulls(2, field.type) for field in ROWS.schema], ROWS.schema)
    for text in CASES:
        expression = bind(text)
        for rows in (batch, batch.slice(0, 0), nulls):
            found = evaluate(expression, rows)
            assert (len(found), found.type) == (len(rows), expression.type), text


@pytest.mark.spark
def test_same_values_and_types_as_spark(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS).alias("rows")
    theirs = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(CASES))).toArrow()
    batch = ROWS.combine_chunks().to_batches()[0]
    faults = []
    for text, column in zip(CASES, theirs.columns, strict=True):
        ours = evaluate(bind(text), batch)
        told, wanted = described(ours), described(column)
        if told != wanted:
            faults.append(f"{text}\n  ours  {told}\n  spark {wanted}")
    assert not faults, "\n".join(faults)
