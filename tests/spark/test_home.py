"""The SPARK_HOME of ours, and when Spark is left as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from workbench.spark import home


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PySpark's folder, with an empty cache folder and no SPARK_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    folder = Path(pyspark.__file__).parent
    monkeypatch.setattr(home.site, "getsitepackages", lambda: [str(folder.parent)])
    return folder


def test_it_links_to_the_launcher_and_hides_the_zip(installed: Path) -> None:
    lean = home.lean_home()
    assert lean is not None
    assert lean == home.lean_home()
    assert (lean / "bin" / "spark-submit").resolve() == (installed / "bin" / "spark-submit").resolve()
    assert (lean / "jars").resolve() == (installed / "jars").resolve()
    assert not (lean / "python").exists()


def test_a_chosen_spark_home_stays(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(installed))
    assert home.lean_home() is None


def test_workers_that_would_not_find_pyspark_keep_the_zip(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home.site, "getsitepackages", lambda: ["/elsewhere"])
    assert home.lean_home() is None


def test_python_starts_without_the_zip(installed: Path) -> None:
    python = home.lean_python()
    assert python is not None
    assert python == home.lean_python()
    zipped = str(installed / "python" / "lib" / "pyspark.zip")
    for path, left in [
        (zipped, ""),
        (f"{zipped}:/b", "/b"),
        (f"/a:{zipped}:/b c", "/a:/b c"),
        (f"/a:{zipped}", "/a"),
        (f"/a:{zipped}.old", f"/a:{zipped}.old"),
        ("", ""),
    ]:
        code = "import os, sys; print(os.environ['PYTHONPATH']); print(sys.executable); print(sys.argv[1:])"
        arguments = ["-m pyspark.daemon", "pyspark.worker"]  # not what Spark starts its daemon with
        done = subprocess.run(
            [python, "-c", code, *arguments],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == [left, sys.executable, str(arguments)]


def test_python_is_taken_as_it_is_where_workers_would_not_find_pyspark(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home.site, "getsitepackages", lambda: ["/elsewhere"])
    assert home.lean_python() is None


@pytest.mark.spark
def test_workers_import_the_installed_pyspark(spark: Any) -> None:
    here = spark.sparkContext.parallelize([0]).map(lambda _: __import__("pyspark").__file__).first()
    assert here == pyspark.__file__
    assert "SPARK_HOME" not in os.environ
