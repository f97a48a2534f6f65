"""Dashboards without a notebook: a small Bokeh server for scripts, and files."""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.resources import INLINE
from bokeh.server.server import Server

from workbench.errors import EngineError, WorkbenchError
from workbench.widgets.controls import NOTHING
from workbench.widgets.export import KINDS
from workbench.widgets.picture import picture
from workbench.widgets.view import DashboardView

#: Milliseconds between two refreshes of a browser session.
REFRESH_MS = 200
#: What a served page can be given as a file.
SERVED = tuple(kind for kind in KINDS if kind != "PNG")
_SAVE = """
const {name, content} = cb_obj.data
if (name.length === 0) return
const link = document.createElement("a")
link.href = URL.createObjectURL(new Blob(content))
link.download = name[0]
link.click()
setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
"""


class ServerHandle:
    """A running server: its ``url``, and :meth:`stop`."""

    def __init__(self, view_factory: Callable[[], DashboardView], address: str, port: int) -> None:
        self._factory = view_factory
        self._address, self._port = address, port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._error: Exception | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise EngineError(
                f"cannot serve the dashboard on `{address}:{port}`: {self._error}", hint="take another port, or 0"
            )

    def __repr__(self) -> str:
        return f"dashboard on {self.url}" if self._thread.is_alive() else "dashboard, not served any more"

    @property
    def url(self) -> str:
        """Where a browser finds the dashboard."""
        return f"http://{self._address}:{self._port}/"

    def stop(self) -> None:
        """End the server and its thread; pages keep their last picture. May be called twice."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        # Tornado leaves its socket open when it cannot bind, so we try first and close ours.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((self._address, self._port))
        application = Application(FunctionHandler(self._open))
        server = Server({"/": application}, address=self._address, port=self._port)
        self._port = server.port
        server.start()
        self._ready.set()
        await self._stopping.wait()
        server.unlisten()
        server.stop()
        await server._http.close_all_connections()

    def _open(self, document: Document) -> None:
        """A browser session begins: it gets a view of its own, which lives as long as its document."""
        view = self._factory()
        allow_export(view)
        view.refresh()
        document.title = view.title
        document.add_root(view.root)
        document.add_periodic_callback(view.refresh, REFRESH_MS)


def allow_export(view: DashboardView) -> None:
    """Give a served page the menu of files. PNG is missing: only a page can make one, and this one is Bokeh's own."""
    menu = view.controls.menu
    file = ColumnDataSource({"number": [], "name": [], "content": []})
    file.js_on_change("data", CustomJS(code=_SAVE))
    menu.tags = [file]  # so that it is in the document
    numbers = count()

    def asked(_attr: str, _old: object, kind: str) -> None:
        if kind not in SERVED:
            return
        menu.value = NOTHING
        view.fail(None)
        try:
            made = view.export(kind)
        except WorkbenchError as error:
            view.fail(f"the file could not be made: {error}")
            return
        content = [np.frombuffer(made.content, np.uint8)]
        # The number makes a file that is asked for again another one.
        file.data = {"number": [next(numbers)], "name": [made.name], "content": content}

    view.controls.allow_export(SERVED)
    menu.on_change("value", asked)


def serve(
    view_factory: Callable[[], DashboardView],
    port: int = 0,
    address: str = "127.0.0.1",
    open_browser: bool = False,
) -> ServerHandle:
    """Serve dashboards from a background thread; every browser session gets ``view_factory()``.

    Port 0 takes a free one. Anybody who can reach ``address`` can look, so it is the loopback unless you say
    otherwise. Raises EngineError where the port cannot be had.
    """
    handle = ServerHandle(view_factory, address, port)
    if open_browser:
        webbrowser.open(handle.url)
    return handle


def save(view: DashboardView, path: str | Path) -> Path:
    """Write a fresh view as one file that needs nothing else: ``.html`` (it zooms) or ``.svg``.

    The view must not be shown elsewhere. The level is the one for the whole range: a file cannot ask for more, and
    has none of the buttons that would. Raises WorkbenchError for another ending, and where it cannot be written.
    """
    path = Path(path)
    view.refresh()
    if path.suffix == ".svg":
        text = picture(view.results, view.title, view.visible)
    elif path.suffix in (".html", ".htm"):
        view.controls.leave()
        view.document()
        text = file_html(view.root, INLINE, title=view.title, suppress_callback_warning=True)
    else:
        hint = "PNG is made by `Export` of a dashboard in JupyterLab"
        raise WorkbenchError(f"expected a path ending in `.html` or `.svg`, got `{path}`", hint=hint)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(f"cannot write `{path}`: {error.strerror or error}") from None
    return path
