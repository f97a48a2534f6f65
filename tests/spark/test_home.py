"""The SPARK_HOME of ours, and when Spark is left as it is."""

from __future__ import annotations

import os
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


@pytest.mark.spark
def test_workers_import_the_installed_pyspark(spark: Any) -> None:
    here = spark.sparkContext.parallelize([0]).map(lambda _: __import__("pyspark").__file__).first()
    assert here == pyspark.__file__
    assert "SPARK_HOME" not in os.environ
