"""The widget and its pump against pages made of Python, which speak the protocol of ``live.js``."""

from __future__ import annotations

import json
import re
import threading
import time
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bokeh.core.serialization import Buffer, Serialized
from bokeh.document import Document

from tests.widgets.conftest import BEGAN
from tests.widgets.test_packing import unpacked
from workbench.errors import QueryError
from workbench.results import QueryResults
from workbench.time import HOUR, MINUTE
from workbench.widgets import HOLD, Backing, DashboardView, LiveDashboard
from workbench.widgets import live as live_module
from workbench.widgets.pages import WINDOW
from workbench.widgets.still import LIVE, STILL


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


class Wire(LiveDashboard):
    """A dashboard whose messages end in a list instead of a comm."""

    def __init__(self, view: DashboardView) -> None:
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        self.broken = False
        super().__init__(view)

    def send(self, content: Any, buffers: Any = None) -> None:
        if self.broken:
            raise OSError("no way out")
        if content["type"] == "snapshot":
            content = {**content, "document": zlib.decompress(buffers[0]).decode()}
        self.messages.append((content, list(buffers or [])))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for content, _ in self.messages if content["type"] == kind]

    def say(self, page: str, kind: str, **rest: Any) -> None:
        self._received(self, {"type": kind, "page": page, **rest}, [])

    def hello(self, page: str) -> dict[str, Any]:
        before = len(self.of("snapshot"))
        self.say(page, "hello")
        wait_for(lambda: len(self.of("snapshot")) > before)
        return self.of("snapshot")[-1]


@pytest.fixture
def live(results: QueryResults) -> Iterator[Wire]:
    wire = Wire(DashboardView(results, "delays"))
    yield wire
    wire.close()


def zoom(live: Wire, start: int, end: int) -> list[tuple[str, str, float]]:
    """What a page says when its user looks at ``[start, end]`` microseconds."""
    return [(live.view.axis.range.id, "start", start / 1_000), (live.view.axis.range.id, "end", end / 1_000)]


def tick(live: Wire, fill: Callable[..., None], hour: float) -> None:
    """New windows for the store, and time for the pump to send them."""
    fill(live.view.results, (hour, hour + 0.1), open_from=hour)
    time.sleep(0.3)


def test_nobody_connected_nothing_is_sent(live: Wire, fill: Callable[..., None]) -> None:
    tick(live, fill, 12)
    assert live.messages == []
    assert not live.view.drawn


def test_hello_brings_the_whole_document_then_patches_follow(live: Wire, fill: Callable[..., None]) -> None:
    snapshot = live.hello("p")
    assert snapshot["pages"] == ["p"]
    document = json.loads(snapshot["document"])
    assert document["title"] == "delays"
    assert "15 minutes / 1 minute" in snapshot["document"]
    tick(live, fill, 12)
    wait_for(lambda: live.of("patch"))
    content, buffers = next(message for message in live.messages if message[0]["type"] == "patch")
    assert content["sequence"] == snapshot["sequence"] + 1
    assert len(content["buffers"]) >= len(buffers) > 0
    assert all(len(buffer) % 8 == 0 for buffer in buffers)
    # A patch refers to models by id: the page has them all.
    changed = {event["model"]["id"] for event in json.loads(content["patch"])["events"]}
    assert all(f'"{model}"' in snapshot["document"] for model in changed)


def never_acknowledged(
    live: Wire, page: str, fill: Callable[..., None], updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that has said hello and nothing since, though there were updates; it is not given up for a minute."""
    monkeypatch.setattr("workbench.widgets.pages.PATIENCE", 60.0)
    live.hello(page)
    for number in range(updates):
        tick(live, fill, 12 + number / 10)


def test_without_acknowledgement_at_most_two_messages_are_on_their_way(
    live: Wire, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    never_acknowledged(live, "p", fill, 4, monkeypatch)
    assert len(live.of("patch")) <= 2
    last = live.of("patch")[-1]["sequence"]
    live.say("p", "ack", sequence=last)
    tick(live, fill, 13)
    wait_for(lambda: live.of("patch")[-1]["sequence"] > last)


def test_a_page_that_lost_a_message_gets_a_new_snapshot(live: Wire, fill: Callable[..., None]) -> None:
    live.hello("p")
    tick(live, fill, 12)
    wait_for(lambda: live.of("patch"))
    again = live.hello("p")
    assert again["sequence"] == live.of("patch")[-1]["sequence"]


def test_a_sign_of_life_of_an_unknown_page_brings_a_snapshot(live: Wire) -> None:
    live.say("stranger", "ack", sequence=17)
    wait_for(lambda: live.of("snapshot"))
    assert live.of("snapshot")[0]["pages"] == ["stranger"]


def test_a_zoom_in_one_page_reaches_the_view_and_the_other_page(live: Wire) -> None:
    """Case B6: of the ranges that queue up only the newest is served."""
    snapshot = live.hello("a")
    live.hello("b")
    x = live.view.axis.range
    assert [x.id, "start"] in snapshot["inputs"]
    for hour in range(5):  # a burst: only the newest counts
        live.say("a", "set", changes=zoom(live, BEGAN + hour * HOUR, BEGAN + (hour + 6) * HOUR))
    wait_for(lambda: live.view.visible == (BEGAN + 4 * HOUR, BEGAN + 10 * HOUR))
    wait_for(lambda: any("a" in patch["causes"] for patch in live.of("patch")))
    assert live.view.mode == HOLD
    causes: dict[str, set[str | None]] = {}
    for patch in live.of("patch"):
        events = json.loads(patch["patch"])["events"]
        for event, cause in zip(events, patch["causes"], strict=True):
            causes.setdefault(event["model"]["id"], set()).add(cause)
    assert causes[x.id] == {"a"}, "page `a` leaves its own range out"
    assert causes[live.view.axis.modes.id] == {None}, "both pages hear that the axis holds now"
    assert [model for model, by in causes.items() if "a" in by] == [x.id]


def test_a_zoom_is_answered_in_one_message_though_updates_are_on_their_way(
    live: Wire, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    never_acknowledged(live, "a", fill, 3, monkeypatch)
    sent = len(live.of("patch"))
    assert sent == WINDOW, "the page has acknowledged nothing"
    live.say("a", "set", changes=zoom(live, BEGAN, BEGAN + HOUR))
    wait_for(lambda: len(live.of("patch")) > sent)
    answer = live.of("patch")[-1]
    assert live.view.axis.range.id in answer["patch"]
    assert live.view.panels[0].final.id in answer["patch"]
    tick(live, fill, 13)
    assert len(live.of("patch")) == sent + 1


def test_a_zoom_that_has_to_wait_is_answered_before_the_next_update_is_due(
    live: Wire, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    never_acknowledged(live, "a", fill, 3, monkeypatch)
    for hour in (1, 2):
        live.say("a", "set", changes=zoom(live, BEGAN, BEGAN + hour * HOUR))
        wait_for(lambda hour=hour: live.view.visible[1] == BEGAN + hour * HOUR)
    wait_for(lambda: len(live.of("patch")) == WINDOW + 1)
    monkeypatch.setattr(live, "_due", float("inf"))
    live.say("a", "ack", sequence=live.of("patch")[-1]["sequence"])
    wait_for(lambda: len(live.of("patch")) == WINDOW + 2)


def test_only_the_inputs_can_be_set(live: Wire) -> None:
    live.hello("a")
    live.say("a", "set", changes=[(live.view.controls.strip.id, "text", "<script>")])
    live.say("a", "set", changes=[(live.view.axis.range.id, "name", "x")])
    live.hello("a")
    assert "script" not in live.view.controls.strip.text
    assert live.view.axis.range.name is None


def test_bokehjs_comes_from_the_installed_package(live: Wire) -> None:
    live.say("a", "script")
    wait_for(lambda: live.of("script"))
    content, buffers = live.messages[0]
    assert content == {"type": "script", "page": "a"}
    assert [b"Bokeh" in buffer for buffer in buffers] == [True, True]


def test_after_goodbye_nothing_is_sent(live: Wire, fill: Callable[..., None]) -> None:
    live.hello("a")
    live.say("a", "bye")
    wait_for(lambda: not len(live._pages))
    count = len(live.messages)
    tick(live, fill, 12)
    assert len(live.messages) == count


def test_a_fault_in_the_view_is_shown_and_survived(
    live: Wire, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    live.hello("a")

    def fail() -> None:
        raise RuntimeError("boom")

    with monkeypatch.context() as patch:
        patch.setattr(live.view, "refresh", fail)
        live._wake.set()
        wait_for(lambda: len(live.of("snapshot")) > 1)
    assert "boom" in live.of("snapshot")[-1]["document"]
    count = len(live.of("patch"))
    wait_for(lambda: len(live.of("patch")) > count)
    assert "boom" not in live.view.controls.strip.text


def test_what_a_user_asked_for_in_vain_is_told_until_the_next_thing(results: QueryResults) -> None:
    def refuse(label: str) -> None:
        raise QueryError("the stream has ended")

    live = Wire(DashboardView(results, "delays", Backing(add_level=refuse)))
    try:
        live.view.show(BEGAN + 6 * HOUR, BEGAN + 6 * HOUR + 4 * MINUTE)
        live.hello("p")
        wait_for(lambda: live.view.controls.offered)
        live.say("p", "set", changes=[(live.view.controls.finer.id, "active", True)])
        wait_for(lambda: "has ended" in str(live.of("patch")))
        refreshes = threading.Event()
        live.call(refreshes.set)
        assert refreshes.wait(20)
        wait_for(lambda: live._due < time.monotonic())
        live.call(lambda: None)
        wait_for(lambda: not live._inbox and not live._urgent)
        assert "has ended" in live.view.controls.strip.text, "a refresh is no reason to take it away"
        live.say("p", "set", changes=zoom(live, BEGAN, BEGAN + HOUR))
        wait_for(lambda: "has ended" not in live.view.controls.strip.text)
    finally:
        live.close()


def test_a_call_runs_on_the_pump(live: Wire) -> None:
    live.hello("a")
    seen: list[threading.Thread] = []
    live.call(lambda: seen.append(threading.current_thread()))
    wait_for(lambda: seen)
    assert seen == [live._pump]


def test_a_hundred_updates_a_second_are_coalesced(live: Wire, fill: Callable[..., None]) -> None:
    """Case B4: at most one message a tick, whatever comes in."""
    live.hello("a")
    began = time.monotonic()
    while time.monotonic() - began < 1.0:
        live.view.results.apply([])
        live.say("a", "ack", sequence=live._pages.sequence)
        time.sleep(0.01)
    assert len(live.of("patch")) <= 7


def test_a_large_message_puts_the_next_one_off(
    live: Wire, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case B5: so many bytes a second and no more, or Jupyter's server drops what is beyond, without a word."""
    monkeypatch.setattr(live_module, "BYTES", 10)
    live.hello("a")
    tick(live, fill, 12)
    wait_for(lambda: live.of("patch"))
    wait_for(lambda: live._due > time.monotonic() + 10)
    sent = len(live.of("patch"))
    tick(live, fill, 12.2)
    assert len(live.of("patch")) == sent


def test_close_leaves_no_thread_and_no_comm(results: QueryResults) -> None:
    before = set(threading.enumerate())
    wire = Wire(DashboardView(results, "delays"))
    wire.hello("a")
    wire.close()
    wire.close()
    assert set(threading.enumerate()) == before
    assert wire.comm is None
    assert wire.layout.comm is None
    assert wire.of("closed")
    assert results._listeners == ()
    assert "widget-view" not in json.dumps(wire._bundle())


def test_showing_a_name_again_closes_the_one_before(
    results: QueryResults, capsys: pytest.CaptureFixture[str]
) -> None:
    first = LiveDashboard.show("q", DashboardView(results, "delays"))
    second = LiveDashboard.show("q", DashboardView(results, "delays"))
    assert not first._pump.is_alive()
    assert second._pump.is_alive()
    LiveDashboard.close_named("q")
    LiveDashboard.close_named("q")
    assert not second._pump.is_alive()
    assert repr(second) == "<live dashboard `delays`, closed>"
    capsys.readouterr()


class Shown:
    """What `display` has shown: bundles, and for each a handle by which it is shown anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bundles: list[dict[str, Any]] = []
        monkeypatch.setattr(live_module, "display", self)

    def __call__(self, bundle: dict[str, Any], raw: bool, display_id: bool) -> Any:
        self.bundles.append(bundle)
        place = len(self.bundles) - 1
        return SimpleNamespace(update=lambda new, raw: self.bundles.__setitem__(place, new))


def test_a_dashboard_is_followed_by_a_picture_until_it_is_one(live: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no kernel answers, JupyterLab would show nothing else of an output that holds a widget."""
    shown = Shown(monkeypatch)
    live._ipython_display_()
    widget, still = shown.bundles
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == live.model_id
    assert (widget["text/plain"], widget["text/html"]) == ("<live dashboard `delays`>", "")
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', still["text/html"])
    assert found
    assert b64decode(found.group(1)).startswith(b"<svg")
    assert live._repr_mimebundle_() == (widget, {})
    live.close()
    picture, nothing = shown.bundles
    assert picture.keys() == {"text/plain", "image/svg+xml"}
    assert picture["image/svg+xml"].startswith("<svg")
    assert set(nothing.values()) == {""}


def test_the_page_names_the_outputs_as_the_kernel_does() -> None:
    """The style sheet of the picture and the script of the page meet in two names of classes."""
    script = Path(live_module.__file__).with_name("live.js").read_text()
    for name in (STILL, LIVE):
        assert f'"{name}"' in script


def test_a_page_that_applies_the_patches_has_the_document_of_the_kernel(
    live: Wire, fill: Callable[..., None]
) -> None:
    page = Document.from_json(json.loads(live.hello("a")["document"]))
    fill(live.view.results, (12, 12.5), ["AA", "NEW"], open_from=12)
    wait_for(lambda: live.of("patch"))
    time.sleep(0.5)
    for content, buffers in list(live.messages):
        if content["type"] == "patch":
            names = [Buffer(name, unpacked(buffers[part], times)) for name, part, times in content["buffers"]]
            page.apply_json_patch(Serialized(json.loads(content["patch"]), names))
    for panel in live.view.panels:
        for source in (panel.final, panel.open):
            copy = page.get_model_by_id(source.id)
            assert copy is not None
            assert copy.data.keys() == source.data.keys()
            for name, column in source.data.items():
                assert np.array_equal(copy.data[name], column, equal_nan=True)
    assert len(live.view.keys.data["label"]) == 3, "the new key has a line"
