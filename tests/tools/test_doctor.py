"""`python -m workbench doctor`: what is there, what is missing, and the exit status that the Makefile relies on."""

from __future__ import annotations

import platform

import pytest

from workbench import doctor
from workbench.__main__ import main
from workbench.errors import EngineError


def test_it_names_the_versions_that_matter(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    shown = capsys.readouterr().out
    assert platform.python_version() in shown
    for name in ("java", "pyspark", "bokeh", "anywidget"):
        assert f"\n{name} " in shown


def test_a_missing_package_fails_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "REQUIRED", ("no-such-package",))
    assert main(["doctor"]) == 1
    assert "no-such-package" in capsys.readouterr().out


def test_a_missing_extra_is_told_but_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "java", lambda: doctor.Finding("java", "17"))
    monkeypatch.setattr(doctor, "OPTIONAL", ("no-such-package",))
    assert main(["doctor"]) == 0
    assert "pip install 'winquery[demo]'" in capsys.readouterr().out


def test_an_unfit_java_fails_with_found_and_needed_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise EngineError("PySpark needs Java 17, found Java 8 at `/opt/java`", hint="install Java 17")

    monkeypatch.setattr("workbench.spark.java.ensure_java", refuse)
    assert main(["doctor", "--java"]) == 1
    shown = capsys.readouterr().out
    assert "needs Java 17, found Java 8" in shown
    assert "-> install Java 17" in shown
