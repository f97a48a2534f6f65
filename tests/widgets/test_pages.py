"""Back-pressure towards pages, with a clock of our own."""

from __future__ import annotations

from workbench.widgets.pages import OPEN_LOOP, PATIENCE, SILENCE, WINDOW, Pages


def test_nobody_connected_nothing_sent() -> None:
    assert not Pages().ready(0.0)


def test_a_page_that_does_not_acknowledge_stops_the_flow() -> None:
    pages = Pages()
    pages.hello("a", 0.0)
    for number in range(WINDOW):
        assert pages.ready(0.1)
        assert pages.sent(0.1) == number + 1
    assert not pages.ready(0.2)
    assert pages.heard("a", 1, 0.3)
    assert pages.ready(0.3)


def test_what_a_user_does_is_answered_beyond_the_window_once() -> None:
    pages = Pages()
    pages.hello("a", 0.0)
    for _ in range(WINDOW):
        pages.sent(0.1)
    assert not pages.ready(0.2)
    assert pages.ready(0.2, urgent=True)
    pages.sent(0.2)
    assert not pages.ready(0.3, urgent=True)


def test_the_slowest_answering_page_sets_the_pace() -> None:
    pages = Pages()
    pages.hello("fast", 0.0)
    pages.hello("slow", 0.0)
    for _ in range(WINDOW):
        pages.sent(0.1)
    pages.heard("fast", WINDOW, 0.2)
    assert not pages.ready(0.2)
    # ... until it does not answer at all any more.
    assert pages.ready(0.1 + PATIENCE)


def test_when_no_page_answers_the_loop_is_open() -> None:
    pages = Pages()
    pages.hello("a", 0.0)
    for _ in range(WINDOW):
        pages.sent(0.0)
    now = PATIENCE + 0.01
    assert pages.ready(now)
    pages.sent(now)
    assert not pages.ready(now + OPEN_LOOP / 2)
    assert pages.ready(now + OPEN_LOOP)


def test_a_silent_page_is_forgotten_and_comes_back() -> None:
    pages = Pages()
    pages.hello("a", 0.0)
    assert not pages.ready(SILENCE + 1)
    assert pages.names() == set()
    assert not pages.heard("a", 0, SILENCE + 2)
    pages.hello("a", SILENCE + 2)
    pages.goodbye("a")
    pages.goodbye("a")
    assert len(pages) == 0
