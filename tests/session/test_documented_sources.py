"""docs/sources.md says what is there: formats, endings, types, columns and options."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import workbench
from workbench.feeds import folder, formats, kafka, lines, mqtt
from workbench.logical.types import SQL_TYPES


@pytest.fixture(scope="module")
def text() -> str:
    return (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")


def test_formats_and_their_endings(text: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\.[\w.]+`(?:, )?)+) \|", text, re.MULTILINE)
    assert {name: tuple(re.findall(r"`(\.[\w.]+)`", endings)) for name, endings in rows} == formats.SUFFIXES


def test_types_that_can_be_declared(text: str) -> None:
    listed = re.search(r"as in SQL \(([^)]*)\)", text)
    assert listed is not None
    named = set(re.findall(r"`(\w+)`", listed[1]))
    assert named <= SQL_TYPES.keys()
    assert {SQL_TYPES[name] for name in named} == set(SQL_TYPES.values())


def test_columns_beside_the_payload(text: str) -> None:
    for schema in (kafka.COLUMNS, mqtt.COLUMNS):
        assert all(f"`{name}`" in text for name in schema.names)


def test_options(text: str) -> None:
    options = {*inspect.signature(workbench.source).parameters}
    options |= {field.name for kind in (workbench.KafkaTopic, workbench.MqttTopic) for field in fields(kind)}
    assert set(re.findall(r"`(\w+)=", text)) <= options


def test_how_long_files_are_waited_for(text: str) -> None:
    assert f"One look every {folder._LOOK} s" in text
    assert f"has not changed for {folder._PATIENCE:.0f} s" in text
    assert f"the first {lines._LINES:,} lines, or {lines._BITE >> 20} MB" in text
