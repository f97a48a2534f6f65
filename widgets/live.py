"""A dashboard in JupyterLab: an anywidget that holds a Bokeh document and keeps every page of it up to date.

One daemon thread, the pump, owns the document. It reads what pages have said, lets the view read the store, and
sends all pending document events as one message, five times a second at most and only while a page listens. Kernel
callbacks only put messages into a queue, so neither the main thread nor a Spark callback ever waits for a plot.

Messages to pages: ``script`` (BokehJS, from the installed package), ``snapshot`` (the whole document), ``patch``
(document events), ``file`` (to be saved by one page), ``alive`` (nothing has changed), ``closed``. Messages from
pages: ``script`` and ``hello`` (please send these), ``ack``, ``set`` (what the user has changed: properties of
:attr:`DashboardView.inputs`, as id, attribute and value), ``theme`` (light or dark), ``bye``. ``live.js`` is the
other end.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import zlib
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import bokeh
from bokeh.core.json_encoder import serialize_json
from bokeh.document.events import DocumentPatchedEvent
from bokeh.protocol.messages.patch_doc import patch_doc
from IPython.display import DisplayHandle, display

from workbench.widgets.export import KINDS
from workbench.widgets.module import ModuleWidget, module
from workbench.widgets.packing import packed
from workbench.widgets.pages import OPEN_LOOP, Pages
from workbench.widgets.picture import picture
from workbench.widgets.still import EMPTY, still_bundle
from workbench.widgets.view import DashboardView

log = logging.getLogger(__name__)

#: Seconds between two updates on the average at least, when nothing but the data changes.
TICK = 0.2
#: Seconds between two looks at the status while the data does not change.
IDLE = 1.0
#: Bytes a second on the average: a page unpacks and draws on the one thread that its user's mouse wants as well.
#: Jupyter's server drops messages beyond a thousand a second, but counts the bytes of printed text alone.
BYTES = 700_000
#: Seconds of silence after which pages are told that the kernel lives. Without it they say that it does not.
ALIVE = 3.0

_SCRIPTS = ("bokeh.min.js", "bokeh-widgets.min.js")
_WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class LiveDashboard(ModuleWidget):
    """The widget of one :class:`DashboardView`; displaying it anywhere in a notebook shows a live view.

    From its creation on, the dashboard owns the view: nobody else may call its methods, except through
    :meth:`call`. :meth:`close` ends thread and comms; a process that ends needs no call.
    """

    _esm = module("bokehjs.js", "packing.js", "live.js")
    _open: ClassVar[dict[str, LiveDashboard]] = {}

    def __init__(self, view: DashboardView) -> None:
        super().__init__()
        self.view = view
        self._document = view.document()
        self._document.callbacks.on_change_dispatch_to(self)
        self._inputs = {(model.id, attr): model for model, attr in view.inputs}
        self._pages = Pages()
        self._asking: set[str] = set()
        self._inbox: deque[Any] = deque()
        self._events: list[DocumentPatchedEvent] = []
        self._handles: list[tuple[DisplayHandle, DisplayHandle]] = []
        self._due = 0.0
        self._urgent = False
        #: Whether the pages show a fault of the pump, which goes with the next refresh that works.
        self._faulty = False
        self._spoke = 0.0
        view.controls.allow_export()
        self._wake = threading.Event()
        self._ended = threading.Event()
        _route_replies_away(self.comm)
        self.on_msg(self._received)
        self._unsubscribe = view.results.subscribe(self._wake.set)
        self._pump = threading.Thread(target=self._run, name=f"dashboard {view.title}", daemon=True)
        self._pump.start()

    @classmethod
    def show(cls, name: str, view: DashboardView) -> LiveDashboard:
        """Display ``view`` below the running cell; a dashboard shown before under ``name`` is closed."""
        dashboard = cls.opened(name, view)
        display(dashboard)
        return dashboard

    @classmethod
    def opened(cls, name: str, view: DashboardView) -> LiveDashboard:
        """A dashboard for whoever displays it; one opened before under ``name`` is closed."""
        cls.close_named(name)
        dashboard = cls._open[name] = cls(view)
        return dashboard

    @classmethod
    def close_named(cls, name: str) -> None:
        """Close the dashboard shown under ``name``, if there is one."""
        old = cls._open.pop(name, None)
        if old is not None:
            old.close()

    def call(self, function: Any) -> None:
        """Let the pump run ``function()`` soon; the way to use the view, such as ``view.pin``, from outside."""
        self._inbox.append(function)
        self._wake.set()

    def close(self) -> None:
        """End the pump and the comms, and leave a still picture in the displays. May be called twice."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._wake.set()
        self._unsubscribe()
        if threading.current_thread() is not self._pump:
            self._pump.join(timeout=5)
        with contextlib.suppress(Exception):
            self.send({"type": "closed"})
        for shown, still in self._handles:
            shown.update(self._bundle(), raw=True)
            still.update(EMPTY, raw=True)
        for name in [name for name, open_ in self._open.items() if open_ is self]:
            del self._open[name]
        self.layout.close()
        super().close()

    def __repr__(self) -> str:
        return f"<live dashboard `{self.view.title}`{', closed' if self._ended.is_set() else ''}>"

    def _ipython_display_(self, **_: Any) -> None:
        """Two outputs: the dashboard, and the picture that stands for it where no kernel answers."""
        shown = display(self._bundle(), raw=True, display_id=True)
        still = display(still_bundle(self._picture()), raw=True, display_id=True)
        if shown is not None and still is not None:
            self._handles.append((shown, still))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._bundle(), {}

    def _bundle(self) -> dict[str, Any]:
        """The widget while it lives, its last picture afterwards."""
        if self._ended.is_set():
            return {"text/plain": repr(self), "image/svg+xml": self._picture()}
        widget = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        # The empty HTML is what converters take, which know no widgets; the picture follows.
        return {"text/plain": repr(self), "text/html": "", _WIDGET_MIME: widget}

    def _picture(self) -> str:
        return picture(self.view.results, self.view.title, self.view.visible if self.view.drawn else None)

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """A message of a page, on whatever thread the kernel chooses."""
        if isinstance(content, dict):
            self._inbox.append(content)
            self._wake.set()

    def _document_patched(self, event: DocumentPatchedEvent) -> None:
        """Called by Bokeh for every change of the document, on the pump's thread."""
        if len(self._pages):
            self._events.append(event)

    def _run(self) -> None:
        pause: float | None = None
        while not self._ended.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            try:
                pause = self._tick(time.monotonic())
            except Exception as error:
                log.exception("the dashboard `%s` could not be updated", self.view.title)
                self._recover(f"the plot could not be updated: {error}")
                pause = IDLE

    def _tick(self, now: float) -> float | None:
        """One round of the pump; returns the seconds until the next one, None for "when something happens"."""
        # What a user has done stays urgent until it is on its way, however often the pump has to wait before that.
        self._urgent |= self._read_inbox(now)
        if self._asking:
            self.view.refresh()
            self._send_events(now)
            self._send_snapshot(self._asking, now)
        if not len(self._pages):
            return None
        if not self._urgent and now < self._due:
            return self._due - now
        if not self._pages.ready(now, self._urgent):
            # The acknowledgement wakes us; the pause is for pages that do not answer.
            return OPEN_LOOP / 4
        self._urgent = False
        if self._faulty:
            self._faulty = False
            self.view.fail(None)
        self.view.refresh()
        size = self._send_events(now)
        if size:  # a look that has found nothing puts nothing off
            # At the pace on the average, not from one to the next: a late message does not make the next ones late.
            pause = max(TICK, size / BYTES)
            self._due = max(self._due + pause, now + pause / 2)
        if now - self._spoke > ALIVE:
            self._say({"type": "alive"})
        return IDLE

    def _recover(self, message: str) -> None:
        """After a fault the pages may have missed events: say what happened in a new snapshot for all."""
        self._events.clear()
        self._faulty = True
        self.view.fail(message)
        with contextlib.suppress(Exception):
            self._send_snapshot(self._pages.names() | self._asking, time.monotonic())

    def _read_inbox(self, now: float) -> bool:
        """Handle what pages have said; of several values for one property only the newest counts.

        Returns whether the view may have changed.
        """
        values: dict[tuple[str, str], tuple[Any, str]] = {}
        called = False
        while self._inbox:
            message = self._inbox.popleft()
            if callable(message):
                message()
                called = True
                continue
            page = str(message.get("page"))
            match message.get("type"):
                case "script":
                    self._send_script(page)
                case "hello":
                    self._asking.add(page)
                case "ack" if not self._pages.heard(page, int(message["sequence"]), now):
                    self._asking.add(page)
                case "set":
                    self.view.fail(None)  # what went wrong before has been read; what does now stays
                    for model, attr, value in message["changes"]:
                        if model == self.view.controls.menu.id:
                            self._send_file(page, str(value))
                        else:
                            values[model, attr] = (value, page)
                case "theme":
                    self.view.page_theme(str(message.get("name")))
                    called = True
                case "bye":
                    self._pages.goodbye(page)
                    self._asking.discard(page)
        for (model, attr), (value, page) in values.items():
            if (model, attr) in self._inputs:
                self._inputs[model, attr].set_from_json(attr, value, setter=page)
        return bool(values) or called

    def _send_script(self, page: str) -> None:
        folder = Path(bokeh.__file__).parent / "server" / "static" / "js"
        self._say({"type": "script", "page": page}, [(folder / name).read_bytes() for name in _SCRIPTS])

    def _send_file(self, page: str, kind: str) -> None:
        """What a page has asked for in the menu of files."""
        if kind not in KINDS:
            return
        try:
            file = self.view.export(kind)
        except Exception as error:
            log.exception("the dashboard `%s` could not be exported", self.view.title)
            self.view.fail(f"the file could not be made: {error}")
            return
        self._say({"type": "file", "page": page, "name": file.name}, [file.content])

    def _say(self, content: dict[str, Any], buffers: Sequence[bytes] = ()) -> None:
        self._spoke = time.monotonic()
        self.send(content, list(buffers))

    def _send_snapshot(self, pages: set[str], now: float) -> None:
        """The whole document for some pages; events still pending must have been sent before."""
        # Packed: times are the same for all keys, and what is smaller is with the page sooner.
        document = zlib.compress(serialize_json(self._document.to_json(deferred=False)).encode(), 1)
        # Every page now knows every model: later patches refer to them by id.
        self._document.models.flush_synced()
        for page in pages:
            self._pages.hello(page, now)
        self._asking = self._asking - pages
        self._say(
            {
                "type": "snapshot",
                "pages": sorted(pages),
                "sequence": self._pages.sequence,
                "inputs": [list(key) for key in self._inputs],
                "widget": self.model_id,
                "menu": self.view.controls.menu.id,
                "plots": [model.id for model in self.view.plots],
            },
            [document],
        )

    def _send_events(self, now: float) -> int:
        """All pending events as one message; returns its bytes.

        ``causes`` names the page that has caused an event, which leaves it out: its user may be ahead by now.
        """
        events, self._events = self._events, []
        if not events:
            return 0
        message = patch_doc.create(events)
        made, parts = packed([buffer.to_bytes() for buffer in message.buffers])
        content = {
            "type": "patch",
            "sequence": self._pages.sent(now),
            "causes": [event.setter for event in events],
            "patch": serialize_json(message.content),
            "buffers": [(buffer.id, *how) for buffer, how in zip(message.buffers, made, strict=True)],
        }
        self._say(content, parts)
        return len(content["patch"]) + sum(map(len, parts))


def _route_replies_away(comm: Any) -> None:
    """Keep answers of pages off the busy main thread.

    ipykernel 7.4 sends a page's answer to the thread that ran the last send's cell; our sends come from the pump,
    so that would be the main thread. Without its private hook the answer goes where the page asked: a subshell.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = None
