"""One Spark session for the tests that ask Spark for its own answer."""

from __future__ import annotations

import sys
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark_sql() -> Any:
    """A local session in UTC. Another test's session is reused, and nobody's is stopped."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.pyspark.python", sys.executable)
        .getOrCreate()
    )
