"""One Spark for all tests that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session that a user of ours gets: local[2], no UI, UTC. Never stopped: it ends with the process."""
    from workbench.spark.session import get_session

    yield get_session(master="local[2]")
