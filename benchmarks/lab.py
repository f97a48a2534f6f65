"""A real JupyterLab and a real Chromium on the loopback, with homes of their own, for tests and benchmarks."""

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
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

REPOSITORY = Path(__file__).resolve().parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Milliseconds that a page or a kernel may take on a slow, shared machine.
PATIENCE = 120_000
#: What a page shows: its kernel, the words of each output, the dashboards that BokehJS holds with their keys.
_SHOWN = """() => {
  const {sessionContext, content} = window.jupyterapp?.shell?.currentWidget ?? {}
  const kernel = sessionContext?.session?.kernel
  const lines = [`kernel ${kernel?.status}, ${kernel?.connectionStatus}`]
  for (const [number, cell] of (content?.widgets ?? []).entries()) {
    for (const node of cell.outputArea?.node.querySelectorAll(".jp-OutputArea-output") ?? []) {
      lines.push(`output of cell ${number}: "${node.innerText.trim().slice(0, 300)}"`)
    }
  }
  for (const document of window.Bokeh?.documents ?? []) {
    const drawn = [...document._all_models.values()].filter(({data}) => data != null && "first" in data)
    const keys = drawn.map(({data}) => `${new Set(data.label).size} keys`)
    lines.push(`dashboard "${document.title()}": ${keys.join(", ")}`)
  }
  return lines.join("\\n")
}"""


class LabPage:
    """One notebook open in JupyterLab, in a page of Playwright. Cells are numbered from 0, times are seconds."""

    def __init__(self, page: Any, url: str, screenshots: Path) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE)
        self.errors: list[str] = []
        self.console: deque[str] = deque(maxlen=30)
        self._url = url
        self._screenshots = screenshots
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._hear)

    def open(self) -> None:
        """Open the notebook, or open it again as after a reload; returns once its kernel is idle."""
        self.page.goto(self._url)
        self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length > 0")
        self.js("(panel) => panel.context.ready.then(() => panel.sessionContext.ready)")
        self.js("() => window.jupyterapp.shell.collapseLeft()")
        self.wait_idle()

    def run_cell(self, index: int, wait: bool = True) -> None:
        """Run a cell as a user would, and scroll it into view; with ``wait`` until it has ended."""
        run = """(panel, index) => {
            panel.content.activeCellIndex = index
            const done = window.jupyterapp.commands.execute("notebook:run-cell")
            return WAIT ? done : null
        }"""
        self.js(run.replace("WAIT", "true" if wait else "false"), index)

    def wait_idle(self, timeout: float = PATIENCE / 1_000) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
            timeout=timeout * 1_000,
        )

    def cell_outputs(self, index: int) -> list[dict[str, Any]]:
        """The outputs of a cell in the notebook format."""
        found: list[dict[str, Any]] = self.js(
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
            self.js(
                "async (panel) => Object.keys((await panel.sessionContext.session.kernel.requestCommInfo("
                "{target_name: 'jupyter.widget'})).content.comms).length"
            )
        )

    def wait_text(self, text: str, timeout: float = PATIENCE / 1_000) -> None:
        """Wait until some visible element (inside shadow trees too) contains ``text``; else :meth:`fail`."""
        try:
            self.page.get_by_text(text).first.wait_for(state="visible", timeout=timeout * 1_000)
        except Exception as error:
            self.fail(f"the text `{text}`", error)

    def fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        """Raise AssertionError for what was waited for in vain, with what the page shows; a screenshot is left."""
        self.screenshot("failure")
        raise AssertionError(f"waited in vain for {what}\n{self.told()}") from cause

    def told(self) -> str:
        """What the page shows and has said: kernel, outputs, dashboards, errors, the end of its console."""
        said = [f"error of the page: {error}" for error in self.errors]
        return "\n".join([self.page.evaluate(_SHOWN), *said, *self.console])

    def _hear(self, message: Any) -> None:
        said = f"console {message.type}: {message.text[:500]}"
        slow = message.text.startswith("Plugin ")  # so JupyterLab says of dozens of its parts
        if message.type in ("error", "warning") and not slow and said not in self.console:
            self.console.append(said)

    def figure(self, index: int = 0) -> Any:
        """Locator of a Bokeh figure, counted over the whole page."""
        return self.page.locator(".bk-Figure").nth(index)

    def wheel(self, delta: float, index: int = 0) -> None:
        """Turn the mouse wheel over the middle of a figure; negative zooms in."""
        self.figure(index).evaluate("(element) => element.scrollIntoView({block: 'center'})")
        box = self.figure(index).bounding_box()
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.wheel(0, delta)

    def zoom_in_to(self, text: str, timeout: float = 30) -> None:
        """Come closer, at most by half at a time, until ``text`` is shown; else :meth:`fail` after ``timeout``.

        How often one has to turn depends on how much of a stream has passed, so on how quick the machine is.
        """
        shown = self.page.get_by_text(text).first
        deadline = time.monotonic() + timeout
        while not shown.is_visible():
            if time.monotonic() > deadline:
                self.fail(f"the text `{text}` on coming closer")
            self.wheel(-300)
            # The kernel's answer, and a range of its own that was under way, come before the next turn.
            self.page.wait_for_timeout(1_000)

    def scroll_to_output(self, index: int) -> None:
        """Scroll until the output of a cell begins at the top."""
        self.js("(panel, index) => panel.content.widgets[index].outputArea.node.scrollIntoView()", index)

    def save(self) -> None:
        """Save the notebook to its file."""
        self.js("(panel) => panel.context.save()")

    def screenshot(self, name: str) -> Path:
        """Write ``NAME.png`` of the viewport into the folder for screenshots."""
        path = self._screenshots / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
        return path

    def js(self, function: str, argument: Any = None) -> Any:
        """What a function of JavaScript over the notebook panel (and one argument) returns."""
        return self.page.evaluate(
            f"(argument) => ({function})(window.jupyterapp.shell.currentWidget, argument)", argument
        )


def find_chromium() -> str | None:
    """The path of a Chromium of the machine."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@contextmanager
def open_chromium(path: str) -> Iterator[Any]:
    """A headless Chromium; needs Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=flags)
        yield browser
        browser.close()


@contextmanager
def open_jupyter(home: Path) -> Iterator[tuple[str, Path]]:
    """A JupyterLab server with an empty folder as its home: its URL and its folder of notebooks."""
    root = home / "notebooks"
    root.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"HOME": str(home), "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    # The entry in the launcher, as `make setup` has it.
    extensions = home / "share" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "winquery").symlink_to(REPOSITORY / "widgets" / "labextension")
    environment["JUPYTER_PATH"] = str(extensions.parent)
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


def write_notebook(path: Path, sources: Sequence[str]) -> Path:
    """A notebook of code cells."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    return path


def sessions(url: str) -> set[str]:
    """The notebooks of a server that have a kernel, by the ids of their sessions."""
    return {session["id"] for session in json.load(_request(f"{url}/api/sessions"))}


def end_kernels(url: str, keep: Collection[str] = ()) -> None:
    """End the kernels of a server, but for some :func:`sessions`."""
    for session in sessions(url) - set(keep):
        _request(f"{url}/api/sessions/{session}", "DELETE").close()


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
