"""The one list of partial kinds and of aggregates, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from workbench.algebra import holistic, numeric, ordered, sketches
from workbench.algebra.aggregates import Aggregate
from workbench.algebra.partials import PartialKind

_THEMES = (numeric, ordered, holistic, sketches)

#: Every kind of partial by name.
PARTIALS: Mapping[str, PartialKind] = MappingProxyType({kind.name: kind for theme in _THEMES for kind in theme.KINDS})

_BY_NAME = {aggregate.name: aggregate for theme in _THEMES for aggregate in theme.AGGREGATES}

#: Every aggregate by name and by alias.
AGGREGATES: Mapping[str, Aggregate] = MappingProxyType(
    _BY_NAME | {alias: _BY_NAME[name] for theme in _THEMES for alias, name in theme.ALIASES.items()}
)
