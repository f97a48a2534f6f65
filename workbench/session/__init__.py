"""The composition root: sources, running queries, and the one shared stream behind each source."""

from workbench.session.live import LiveQuery, QueryStatus
from workbench.session.registry import Session, default_session
from workbench.session.sources import Source

__all__ = ["LiveQuery", "QueryStatus", "Session", "Source", "default_session"]
