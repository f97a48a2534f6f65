"""What tests of documented examples share: cells that run in a notebook's shell, in process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from inprocess import InProcessRunner
from IPython.core.interactiveshell import InteractiveShell

from workbench.logical.user_windows import WINDOW_TYPES
from workbench.notebook import api, commands, completion, magics
from workbench.session import Session


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell with the cell magic and a session of its own; window types that cells define are gone after it."""
    session = Session(launch=InProcessRunner)
    for module in (api, commands, completion, magics):
        monkeypatch.setattr(module, "default_session", lambda: session)
    shell = InteractiveShell.instance()
    magics.load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()
    WINDOW_TYPES._latest.clear()
