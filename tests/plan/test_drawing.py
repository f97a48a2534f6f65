"""The picture of a plan: valid SVG, everything that is shared stands once, every user has a line."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pyarrow as pa

from workbench.language import parse_queries
from workbench.logical import Stream, Workload
from workbench.plan import compile_workload
from workbench.plan.drawing import PRINT, WIDTH, draw
from workbench.plan.shared import SharedPlan

SVG = "{http://www.w3.org/2000/svg}"
STREAM = Stream(
    "flights", pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.float64())]), "ts", 0
)


def plan(sql: str) -> SharedPlan:
    return compile_workload(Workload(STREAM, parse_queries(sql, {"flights": STREAM}, name="q")))


SHARED = plan(
    "SELECT k, avg(x) AS a, max(x) AS m FROM flights GROUP BY k, zoom(ts, '10 minutes / 1 minute', '1 hour');"
    "SELECT k, sum(x) AS s FROM flights GROUP BY k, window(ts, '1 hour');"
    "SELECT count(*) AS n FROM flights WHERE x < 1 AND k <> '<&>' GROUP BY window(ts, '1 day')"
)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_partials_windows_and_queries_stand_once() -> None:
    found = texts(draw(SHARED))
    assert found.count("sum_float(x)") == 1, "shared by avg(x) of one query and sum(x) of the other"
    assert found.count("1 hour") == 1
    assert [found.count(label) for label in ("10 minutes / 1 minute", "1 day", "q", "q_2", "q_3")] == [1] * 5
    assert "for 2 aggregates" in found
    assert "flights: cut into slices at every 1 minute" in found
    assert "where x < 1.0 AND k <> '<&>'" in found or any(text.startswith("where x < 1") for text in found)


def test_every_use_has_a_line() -> None:
    lines = re.findall(r'd="M[\d.]+ [\d.]+C', draw(SHARED))
    partials = sum(len(assembly.partials) for assembly in SHARED.assemblies)
    users = sum(len({query for query, _ in assembly.users}) for assembly in SHARED.assemblies)
    assert len(lines) == partials + users


def test_methods_and_their_costs_are_told() -> None:
    told = " ".join(texts(draw(SHARED)))
    for method in SHARED.methods:
        assert method.algorithm.value in told
    assert re.search(r"[\d.]+ ns a slice", told)


def test_nothing_leaves_the_picture_and_boxes_do_not_overlap() -> None:
    root = ET.fromstring(draw(SHARED))
    height = float(root.attrib["viewBox"].split()[3])
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height")) for box in root.iter(f"{SVG}rect")
    ]
    for x, y, w, h in boxes:
        assert 0 <= x <= x + w <= WIDTH
        assert 0 <= y <= y + h <= height
    for place, (x, y, w, h) in enumerate(boxes):
        for other_x, other_y, other_w, other_h in boxes[place + 1 :]:
            apart = x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
            assert apart


def test_for_print_there_are_no_variables_and_a_ground() -> None:
    svg = draw(SHARED, PRINT)
    assert "var(" not in svg
    assert "background:#ffffff" in svg
    assert "var(--jp-ui-font-color1" in draw(SHARED)


def test_every_kind_of_window_is_named() -> None:
    forms = (
        "session_window(ts, '5 minutes')",
        "count_window(10, 2)",
        "calendar_window(ts, '1 month', 'Europe/Berlin')",
    )
    statements = (f"SELECT k, sum(x) AS s FROM flights GROUP BY k, {form}" for form in forms)
    found = texts(draw(plan("; ".join(statements))))
    for label in ("session of 5 minutes", "10 rows / 2", "1 month in Europe"):
        assert any(text.startswith(label[:12]) for text in found), label
