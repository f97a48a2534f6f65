"""The one list of partial kinds and of aggregates, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from workbench.algebra import holistic, numeric, ordered, sketches
from workbench.algebra.aggregates import Aggregate
from workbench.algebra.partials import PartialKind

T = TypeVar("T")

_THEMES = (numeric, ordered, holistic, sketches)


class Registry(Mapping[str, T]):
    """What is built in, and what a user has added.

    An added entry has a name with a version, ``name#version``, under which it can always be found: a query that runs
    keeps the version it was started with. The plain name stands for the latest version, and is what iteration gives.
    """

    def __init__(self, builtin: Mapping[str, T]) -> None:
        self.builtin = builtin
        self._versions: dict[str, T] = {}
        self._latest: dict[str, T] = {}

    def add(self, versioned: str, entry: T, *, latest: bool) -> None:
        """Add a version; ``latest`` makes the plain name stand for it."""
        self._versions[versioned] = entry
        if latest:
            self._latest[plain_name(versioned)] = entry

    def __getitem__(self, name: str) -> T:
        for entries in (self.builtin, self._latest, self._versions):
            if name in entries:
                return entries[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.builtin, *self._latest])

    def __len__(self) -> int:
        return len(self.builtin) + len(self._latest)


def plain_name(name: str) -> str:
    """The name as a user writes it."""
    return name.partition("#")[0]


_BY_NAME = {aggregate.name: aggregate for theme in _THEMES for aggregate in theme.AGGREGATES}

#: Every kind of partial by name.
PARTIALS: Registry[PartialKind] = Registry({kind.name: kind for theme in _THEMES for kind in theme.KINDS})

#: Every aggregate by name and by alias.
AGGREGATES: Registry[Aggregate] = Registry(
    _BY_NAME | {alias: _BY_NAME[name] for theme in _THEMES for alias, name in theme.ALIASES.items()}
)
