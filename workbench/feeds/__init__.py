"""Feeds: where the rows of a source come from, free of any host, and how a micro-batch of them is told exactly."""

from workbench.feeds.feed import Feed, FeedOptions, Piece, Position, Tally
from workbench.feeds.replay import ReplayOptions

__all__ = ["Feed", "FeedOptions", "Piece", "Position", "ReplayOptions", "Tally"]
