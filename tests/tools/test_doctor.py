"""`python -m workbench doctor`: what is there, what is missing, and the exit status that the Makefile relies on."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

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


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (None, "pip install jupyterlab_widgets anywidget=={}"),
        ("0.1.0", "pip install anywidget=={}"),
        (metadata.version("anywidget"), None),
    ],
)
def test_extensions_of_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, remedy: str | None
) -> None:
    """Case B3: missing, of another version, right; both versions are named, and what to do."""
    for name in doctor.EXTENSIONS if version else ():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "package.json").write_text(json.dumps({"version": version}))
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *parts: [str(tmp_path)])
    found = doctor.page()
    assert f"anywidget {version or 'missing'}" in found.found
    if remedy is None:
        assert found.remedy is None
    else:
        assert found.remedy is not None
        assert found.remedy.endswith(remedy.format(metadata.version("anywidget")))
    assert not found.needed, "a script needs no page"


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


def test_it_runs_where_packages_cannot_be_imported() -> None:
    """Those are what it is asked about. A process of its own, as the ones of this process are loaded."""
    missing = ("numpy", "numba", "pyarrow", "pandas", "pyspark", "bokeh", "sqlglot", "IPython")
    code = (
        f"import sys\nfor name in {missing}: sys.modules[name] = None\n"
        "from workbench.__main__ import main\nmain(['doctor'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "\nnumba " in run.stdout
