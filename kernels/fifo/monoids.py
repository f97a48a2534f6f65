"""What an algorithm may use of an aggregate, as types: a monoid, a group, a selective monoid.

A partial is a tuple of fields. All three kinds combine any two neighbouring partials, left before right; a
:class:`Group` can take the left one out again, and a :class:`Selective` monoid always answers with one of the two.
An algorithm that needs more than a monoid says so in its signature and refuses the rest with :func:`require`, so
that a wrong pair of algorithm and aggregate is not built at all (the idea of IBM's sliding-window-aggregators).
Only the trivial monoid is both a group and selective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from workbench.kernels.jit import jitable

Partial = tuple[Any, ...]
Combine = Callable[[Partial, Partial], Partial]


@dataclass(frozen=True)
class Monoid:
    """``identity`` and an associative ``combine(left, right)`` over tuples of fields of the types ``dtypes``.

    ``combine`` must not look at global state and must compile (:func:`on_tuples` makes one of a function of
    ``workbench.kernels.combine``). It need not be commutative.
    """

    name: str
    dtypes: tuple[str, ...]
    identity: Partial
    combine: Combine


@dataclass(frozen=True)
class Group(Monoid):
    """A monoid with ``invert(total, prefix) -> rest``: ``combine(prefix, rest) == total``, exactly, for every prefix.

    Floating-point sums are no group: 1e90 + 1 - 1e90 is 0.
    """

    invert: Combine


@dataclass(frozen=True)
class Selective(Monoid):
    """A monoid whose ``combine`` returns one of its two arguments: minimum, maximum, first, last."""


M = TypeVar("M", bound=Monoid)

_CALLED: dict[type[Monoid], str] = {Monoid: "plain monoid", Group: "group", Selective: "selective monoid"}
_WHY: dict[type[Monoid], str] = {
    Group: "it takes what leaves a window out of the total again, which only an `invert` can do exactly",
    Selective: "it drops an element for good when a later one wins over it",
}


def require(kind: type[M], monoid: Monoid, algorithm: str, instead: str) -> M:
    """``monoid`` itself if it is of ``kind``; otherwise a TypeError that says why the algorithm cannot do without."""
    if isinstance(monoid, kind):
        return monoid
    raise TypeError(
        f"`{algorithm}` needs a {_CALLED[kind]}, but `{monoid.name}` is a {_CALLED[type(monoid)]}: "
        f"{_WHY[kind]}; hint: {instead}"
    )


@cache
def on_tuples(function: Callable[..., Partial], number: int) -> Combine:
    """``function(*left, *right)`` of partials with ``number`` fields (1 to 4) as a function ``(left, right)``."""
    flat = jitable(function)

    def one(a: Partial, b: Partial) -> Partial:
        return flat(a[0], b[0])

    def two(a: Partial, b: Partial) -> Partial:
        return flat(a[0], a[1], b[0], b[1])

    def three(a: Partial, b: Partial) -> Partial:
        return flat(a[0], a[1], a[2], b[0], b[1], b[2])

    def four(a: Partial, b: Partial) -> Partial:
        return flat(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])

    return (one, two, three, four)[number - 1]
