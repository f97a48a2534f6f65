"""Aggregate functions: what they are made of (partials), and how a result is made from those (lower)."""

from workbench.algebra.aggregates import AGGREGATES, Aggregate, Part
from workbench.algebra.partials import PARTIALS, Field, PartialKind

__all__ = ["AGGREGATES", "PARTIALS", "Aggregate", "Field", "Part", "PartialKind"]
