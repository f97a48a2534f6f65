"""Measuring the constants of the cost model: they are kept, found again and used; what cannot be read is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import calibrate
from workbench.algebra import PARTIALS
from workbench.plan.cost import BUILT_IN, constants


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
    assert f"{found.combine['min_int']:.2f}" in capsys.readouterr().out
    (file,) = tmp_path.rglob("constants.json")
    file.write_text("{ not JSON")
    assert constants() is BUILT_IN
