"""One Spark for all tests that need it; and no test says how long an example of a property may take."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

# The same examples in every run, so that a change is judged by what it changed. New ones are looked for at night.
settings.register_profile("by day", deadline=None, derandomize=True)
settings.register_profile("by night", deadline=None)
settings.load_profile("by night" if "WINQUERY_NIGHTLY" in os.environ else "by day")


@pytest.fixture(scope="session")
def spark() -> Any:
    """The session that a user of ours gets: two cores, no UI, UTC. Never stopped: it ends with the process."""
    from workbench.spark.session import get_session

    return get_session(master="local[2,3]")
