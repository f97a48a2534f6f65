"""Streaming DataFrames of the user's as sources: the same answers as Spark's batch `window()` and as our own replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.events import SECOND, make_plan, wait_for
from tests.spark.test_runner import LONG, Collector, expected
from workbench.spark.frames import FrameOptions
from workbench.spark.streaming import FrameRunner

pytestmark = pytest.mark.spark


def stream_of(spark: Any, recording: Callable[..., str], rows: int = 1_000) -> Any:
    path = recording(rows)
    folder = str(Path(path).parent)
    return spark.readStream.schema(spark.read.parquet(path).schema).parquet(folder)


def test_what_is_available_now(spark: Any, recording: Callable[..., str]) -> None:
    got = Collector()
    runner = FrameRunner(make_plan(), FrameOptions(stream_of(spark, recording), "available_now"), got)
    runner.start()
    assert runner.wait(LONG)
    progress = runner.progress()
    assert (progress.state, progress.rows) == ("finished", 1_000), progress.details
    assert got.finals() == expected(1_000)
