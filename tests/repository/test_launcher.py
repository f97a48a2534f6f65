"""The entry in JupyterLab's launcher is written by hand: what it repeats of the package must be the same."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from workbench.feeds.formats import SUFFIXES

ROOT = Path(__file__).resolve().parents[2]
ENTRY = ROOT / "widgets" / "labextension"


def test_name_and_version_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entry = json.loads((ENTRY / "package.json").read_text())
    assert (entry["name"], entry["version"]) == (project["name"], project["version"])
    assert (ENTRY / entry["jupyterlab"]["_build"]["load"]).is_file()


def test_it_offers_the_files_that_can_be_sources() -> None:
    script = (ENTRY / "static" / "launcher.js").read_text()
    found = re.search(r"DATA = /\\\.\((.+?)\)\$/i", script)
    assert found
    ending = re.compile(rf"\.({found.group(1)})$", re.IGNORECASE)
    for suffix in [suffix for suffixes in SUFFIXES.values() for suffix in suffixes]:
        assert ending.search(f"sales{suffix}"), suffix
    for name in ("sales.parquet.gz", "sales.xlsx", "sales.ipynb", "csv"):
        assert not ending.search(name)
