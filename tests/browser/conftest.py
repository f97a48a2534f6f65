"""A real JupyterLab and a real Chromium for browser tests: the fixture ``lab``."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Milliseconds that a page or a kernel may take on a slow, shared machine.
PATIENCE = 120_000


class LabPage:
    """One notebook open in JupyterLab. Cells are numbered from 0, times are seconds."""

    def __init__(self, page: Any, url: str, screenshots: Path) -> None:
        self.page = page
        self.errors: list[str] = []
        self._url = url
        self._screenshots = screenshots
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self) -> None:
        """Open the notebook, or open it again as after a reload; returns once its kernel is idle."""
        self.page.goto(self._url)
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length > 0", timeout=PATIENCE
        )
        self._js("(panel) => panel.context.ready.then(() => panel.sessionContext.ready)")
        self._js("() => window.jupyterapp.shell.collapseLeft()")
        self.wait_idle()

    def run_cell(self, index: int, wait: bool = True) -> None:
        """Run a cell as a user would, and scroll it into view; with ``wait`` until it has ended."""
        run = """(panel, index) => {
            panel.content.activeCellIndex = index
            const done = window.jupyterapp.commands.execute("notebook:run-cell")
            return WAIT ? done : null
        }"""
        self._js(run.replace("WAIT", "true" if wait else "false"), index)

    def wait_idle(self, timeout: float = PATIENCE / 1_000) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
            timeout=timeout * 1_000,
        )

    def cell_outputs(self, index: int) -> list[dict[str, Any]]:
        """The outputs of a cell in the notebook format."""
        found: list[dict[str, Any]] = self._js(
            "(panel, index) => panel.content.widgets[index].model.outputs.toJSON()", index
        )
        return found

    def cell_output_text(self, index: int) -> str:
        """All text of a cell's outputs: streams, plain-text results, tracebacks."""
        parts: list[str] = []
        for output in self.cell_outputs(index):
            text = output.get("text") or output.get("traceback") or output.get("data", {}).get("text/plain", "")
            parts.append(text if isinstance(text, str) else "\n".join(text))
        return "\n".join(parts)

    def comms(self) -> int:
        """How many widget comms the kernel has open.

        JupyterLab opens one of its own (`jupyter.widget.control`) to ask for widgets after a reload; it may stay.
        """
        return int(
            self._js(
                "async (panel) => Object.keys((await panel.sessionContext.session.kernel.requestCommInfo("
                "{target_name: 'jupyter.widget'})).content.comms).length"
            )
        )

    def wait_text(self, text: str, timeout: float = 30) -> None:
        """Wait until some visible element (inside shadow trees too) contains ``text``; else a screenshot is left."""
        try:
            self.page.get_by_text(text).first.wait_for(state="visible", timeout=timeout * 1_000)
        except Exception:
            self.screenshot("failure")
            raise

    def figure(self, index: int = 0) -> Any:
        """Locator of a Bokeh figure, counted over the whole page."""
        return self.page.locator(".bk-Figure").nth(index)

    def wheel(self, delta: float, index: int = 0) -> None:
        """Turn the mouse wheel over the middle of a figure; negative zooms in."""
        self.figure(index).evaluate("(element) => element.scrollIntoView({block: 'center'})")
        box = self.figure(index).bounding_box()
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.wheel(0, delta)

    def scroll_to_output(self, index: int) -> None:
        """Scroll until the output of a cell begins at the top."""
        self._js("(panel, index) => panel.content.widgets[index].outputArea.node.scrollIntoView()", index)

    def save(self) -> None:
        """Save the notebook to its file."""
        self._js("(panel) => panel.context.save()")

    def screenshot(self, name: str) -> Path:
        """Write ``NAME.png`` of the viewport into the folder for screenshots."""
        path = self._screenshots / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
        return path

    def _js(self, function: str, argument: Any = None) -> Any:
        return self.page.evaluate(
            f"(argument) => ({function})(window.jupyterapp.shell.currentWidget, argument)", argument
        )


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Folder for screenshots: ``$WINQUERY_SCREENSHOTS`` or ``artifacts/screenshots``."""
    return Path(os.environ.get("WINQUERY_SCREENSHOTS") or REPOSITORY / "artifacts" / "screenshots")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium of the machine; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip("no Chromium on this machine (looked for " + ", ".join(CHROMIUM) + ")")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, headless=True, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab server on the loopback with a home of its own: its URL and its folder of notebooks."""
    home = tmp_path_factory.mktemp("jupyter")
    root = home / "notebooks"
    root.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"HOME": str(home), "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        environment[f"JUPYTER_{name}"] = str(home / name.lower())
    # No question about news over the page, no request to the outside.
    settings = home / "config_dir" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    port = _free_port()
    log = (home / "jupyter.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
         f"--ServerApp.root_dir={root}", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
         "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly", "--LabApp.news_url=None"],
        env=environment, cwd=root, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/api/status", server, home / "jupyter.log")
        yield url, root
    finally:
        # A polite end lets the server end its kernels, and the kernels what they have started.
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


@pytest.fixture
def lab(chromium: Any, jupyter: tuple[str, Path], screenshots: Path) -> Iterator[Callable[..., LabPage]]:
    """``lab(notebook, width=1280, height=1000)`` opens a copy of a notebook file and returns its :class:`LabPage`.

    Opening the same notebook again in a test gives a second page on the same kernel. Kernels end with the test.
    """
    url, root = jupyter
    contexts = []

    def open_(notebook: Path, width: int = 1280, height: int = 1000) -> LabPage:
        if not (root / notebook.name).exists():
            shutil.copy(notebook, root / notebook.name)
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        page = LabPage(context.new_page(), f"{url}/lab/tree/{notebook.name}?reset", screenshots)
        page.open()
        return page

    yield open_
    for context in contexts:
        context.close()
    for session in json.load(_request(f"{url}/api/sessions")):
        _request(f"{url}/api/sessions/{session['id']}", "DELETE").close()
    for notebook in root.glob("*.ipynb"):
        notebook.unlink()


def _request(url: str, method: str = "GET") -> Any:
    return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE / 1_000
    while time.monotonic() < deadline:
        try:
            _request(url).close()
            return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None:
                break
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-4000:]}")
