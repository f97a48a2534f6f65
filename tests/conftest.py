"""One Spark for all tests that need it; and no test says how long an example of a property may take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def spark() -> Any:
    """The session that a user of ours gets: two cores, no UI, UTC. Never stopped: it ends with the process."""
    from workbench.spark.session import get_session

    return get_session(master="local[2,3]")
