"""Measuring the constants of the cost model: they are kept, found again and used; what cannot be read is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench import calibrate
from workbench.algebra import PARTIALS
from workbench.plan.cost import BUILT_IN, constants, over_slices
from workbench.plan.gag import Algorithm


def test_what_was_measured_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibrate, "PARTIALS", {"min_int": PARTIALS["min_int"]})
    assert constants() is BUILT_IN
    assert calibrate.run() == 0
    found = constants()
    assert found.source == "measured on this machine"
    assert list(found.combine) == list(found.scan) == ["min_int"]
    assert found.combine["min_int"] > 0
    assert found.apart > 0
    assert f"{found.combine['min_int']:.2f}" in capsys.readouterr().out
    (file,) = tmp_path.rglob("constants.json")
    file.write_text("{ not JSON")
    assert constants() is BUILT_IN


def test_what_was_measured_in_a_tree_decides() -> None:
    """Windows of 64 and 1,024 slices: 6 + 10 levels and 2 * 16 + 2 nodes of a tree; chunks of 8 to 32 otherwise."""
    kind = PARTIALS["max_float"]
    for apart, chosen in ((0.01, Algorithm.FLAT_FAT), (100.0, Algorithm.SLIDE_SIDE)):
        measured = replace(BUILT_IN, apart=apart)
        assert over_slices(kind, [64, 1_024], measured)[0].algorithm is chosen
    tree = next(c for c in over_slices(kind, [64, 1_024], BUILT_IN) if c.algorithm is Algorithm.FLAT_FAT)
    dearer = replace(BUILT_IN, apart=3 * BUILT_IN.apart)
    again = next(c for c in over_slices(kind, [64, 1_024], dearer) if c.algorithm is Algorithm.FLAT_FAT)
    assert again.cost == pytest.approx(3 * tree.cost)
