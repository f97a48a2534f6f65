"""A real JupyterLab and a real Chromium for browser tests: the fixture ``lab``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lab import (
    CHROMIUM,
    REPOSITORY,
    LabPage,
    end_kernels,
    find_chromium,
    open_chromium,
    open_jupyter,
    sessions,
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A browser test that fails is tried once more: it waits for a whole desktop, on machines that others share.

    What the first try met is shown at the end of the run, as a failure is.
    """
    item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Folder for screenshots: ``$WINQUERY_SCREENSHOTS`` or ``artifacts/screenshots``."""
    return Path(os.environ.get("WINQUERY_SCREENSHOTS") or REPOSITORY / "artifacts" / "screenshots")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium of the machine; skips where there is none.

    Not for the whole session: Playwright keeps an event loop running in this thread, and tests of other folders
    start one of their own.
    """
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = find_chromium()
    if found is None:
        pytest.skip("no Chromium on this machine (looked for " + ", ".join(CHROMIUM) + ")")
    with open_chromium(found) as browser:
        yield browser


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab server on the loopback with a home of its own: its URL and its folder of notebooks."""
    with open_jupyter(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@contextmanager
def opener(chromium: Any, jupyter: tuple[str, Path], screenshots: Path) -> Iterator[Callable[..., LabPage]]:
    """What ``lab`` gives, until the end of the block; then its pages end, and all kernels begun meanwhile."""
    url, root = jupyter
    before = sessions(url)
    contexts = []
    notebooks = set()

    def open_(notebook: Path, width: int = 1280, height: int = 1000, script: str = "") -> LabPage:
        if not (root / notebook.name).exists():
            shutil.copy(notebook, root / notebook.name)
        notebooks.add(notebook.name)
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        context.add_init_script(script)
        page = LabPage(context.new_page(), f"{url}/lab/tree/{notebook.name}?reset", screenshots)
        page.open()
        return page

    yield open_
    for context in contexts:
        context.close()
    end_kernels(url, before)
    for name in notebooks:
        (root / name).unlink()


@pytest.fixture
def lab(chromium: Any, jupyter: tuple[str, Path], screenshots: Path) -> Iterator[Callable[..., LabPage]]:
    """``lab(notebook, width=1280, height=1000, script="")`` opens a copy of a notebook file and returns its
    :class:`LabPage`; ``script`` runs in the page before anything else.

    Opening the same notebook again in a test gives a second page on the same kernel. Kernels end with the test.
    """
    with opener(chromium, jupyter, screenshots) as open_:
        yield open_


@pytest.fixture(scope="module")
def module_lab(chromium: Any, jupyter: tuple[str, Path], screenshots: Path) -> Iterator[Callable[..., LabPage]]:
    """The same for pages and kernels that the tests of a module use one after the other; opening takes seconds."""
    with opener(chromium, jupyter, screenshots) as open_:
        yield open_
