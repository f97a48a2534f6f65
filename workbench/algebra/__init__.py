"""Aggregate functions: what they are made of (partials), and how a result is made from those (lower)."""

from workbench.algebra.aggregates import TIME, Aggregate, Family, Operands, Part
from workbench.algebra.partials import Field, PartialKind
from workbench.algebra.registry import AGGREGATES, PARTIALS

__all__ = ["AGGREGATES", "PARTIALS", "TIME", "Aggregate", "Family", "Field", "Operands", "Part", "PartialKind"]
