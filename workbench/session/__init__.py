"""The composition root: sources, running queries, and the one shared stream behind each source."""

from workbench.session.live import LiveQuery
from workbench.session.registry import Session, default_session
from workbench.session.sources import Source
from workbench.session.status import QueryStatus

__all__ = ["LiveQuery", "QueryStatus", "Session", "Source", "default_session"]
