"""Who watches a dashboard, and whether one may be sent more: the pure part of the protocol with pages.

Every view of a widget in every browser is a *page*. All pages see all messages, each with a sequence number; a page
acknowledges the last one once it is on the screen, at most every 50 ms, so the slowest page sets the pace.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Messages on their way to a page at most, and one more that answers what a user has just done.
WINDOW = 2
#: Seconds without the acknowledgement that is due, after which a page is counted as not answering.
PATIENCE = 1.5
#: Seconds between two messages while no page answers (the kernel may be unable to hear them).
OPEN_LOOP = 0.25
#: Seconds of silence after which a page is forgotten; if it lives, its next sign of life brings it back.
SILENCE = 600.0


@dataclass
class _Page:
    seen: int
    heard: float
    waiting_since: float | None = None


class Pages:
    """The connected pages of one dashboard. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self.sequence = 0
        self._pages: dict[str, _Page] = {}
        self._sent = float("-inf")

    def __len__(self) -> int:
        return len(self._pages)

    def names(self) -> set[str]:
        """The names of all pages."""
        return set(self._pages)

    def hello(self, page: str, now: float) -> None:
        """A page has been sent the state after message ``sequence``; later messages count for it."""
        self._pages[page] = _Page(self.sequence, now)

    def heard(self, page: str, sequence: int, now: float) -> bool:
        """A page says that it has drawn everything up to ``sequence``; False for an unknown page."""
        known = self._pages.get(page)
        if known is None:
            return False
        known.seen = max(known.seen, min(sequence, self.sequence))
        known.heard = now
        known.waiting_since = None if known.seen == self.sequence else now
        return True

    def goodbye(self, page: str) -> None:
        """A page is gone."""
        self._pages.pop(page, None)

    def sent(self, now: float) -> int:
        """Count a message to all pages; returns its sequence number."""
        self.sequence += 1
        self._sent = now
        for page in self._pages.values():
            if page.waiting_since is None:
                page.waiting_since = now
        return self.sequence

    def ready(self, now: float, urgent: bool = False) -> bool:
        """Whether another message, or an ``urgent`` one, may be sent; forgets pages that are silent for long."""
        for name in [name for name, page in self._pages.items() if now - page.heard > SILENCE]:
            del self._pages[name]
        if not self._pages:
            return False
        answering = [
            page for page in self._pages.values() if page.waiting_since is None or now - page.waiting_since < PATIENCE
        ]
        if answering:
            return all(self.sequence - page.seen < WINDOW + urgent for page in answering)
        return now - self._sent >= OPEN_LOOP
