"""Kinds of partials as what the algorithms of ``workbench.kernels.fifo`` take: monoid, group, selective monoid."""

from __future__ import annotations

from workbench.algebra.partials import PartialKind
from workbench.kernels import combine
from workbench.kernels.fifo.monoids import Group, Monoid, Selective, on_tuples

MOST_FIELDS = 4
#: Functions that answer with one of their two arguments.
_SELECTING = (combine.combine_min, combine.combine_max)


def monoid_of(kind: PartialKind) -> Monoid:
    """The most that ``kind`` is: a group if it has an inverse, else selective if it is, else a plain monoid.

    Equal kinds give equal monoids, so an algorithm is compiled once for each kind. Raises ValueError for a kind of
    objects, and for one of more than four fields, for which the algorithms have no loads and stores.
    """
    number = len(kind.fields)
    if not kind.compiled or number > MOST_FIELDS:
        raise ValueError(f"expected a partial of 1 to {MOST_FIELDS} numbers, `{kind.name}` has {kind.dtypes}")
    dtypes = tuple(field.dtype for field in kind.fields)
    function = on_tuples(kind.combine, number)
    if kind.invert is not None and kind.group:
        return Group(kind.name, dtypes, kind.identity, function, on_tuples(kind.invert, number))
    made = Selective if kind.combine in _SELECTING else Monoid
    return made(kind.name, dtypes, kind.identity, function)
