"""Whether functions of a user's are a monoid: tried on values, refused with the counterexample."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

from workbench.errors import QueryError

State = tuple[Any, ...]

#: Beside a user's own examples: both signs, zero, fractions, and sizes beside which the others vanish.
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "float64": (0.0, 1.0, -1.0, 2.5, -3.75, 0.1, 2.0**40, -(2.0**40), 1e16),
    "int64": (0, 1, -1, 7, -3, 2**40, -(2**40)),
}
_MOST_ROWS, _MOST_TRIPLES = 16, 600


class Trial:
    """One aggregate under test: its fields (name, type, identity) and its functions over plain values.

    Results may differ by rounding, beside the size of what they were computed from.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[tuple[str, str, Any]],
        lift: Callable[..., Any],
        combine: Callable[..., Any],
    ) -> None:
        self._name = name
        self._fields = fields
        self._identity = tuple(identity for _, _, identity in fields)
        self._lift = lift
        self._combine = combine

    def run(
        self,
        inputs: Sequence[str],
        examples: Sequence[tuple[Any, ...]],
        *,
        commutative: bool,
        idempotent: bool,
        invert: Callable[..., State] | None,
        rounding: bool = False,
    ) -> bool:
        """Whether it is commutative, as far as the values tell. ``rounding``: its inverse need not be exact.

        Raises QueryError with the first counterexample to a law that the aggregate must obey or claims to.
        """
        partials = self._partials(inputs, examples)
        for p in partials:
            self._check("identity", [p], {"combine(identity, p)": self._of(self._identity, p), "p": p})
            self._check("identity", [p], {"combine(p, identity)": self._of(p, self._identity), "p": p})
            if idempotent:
                self._check("idempotent", [p], {"combine(p, p)": self._of(p, p), "p": p})
        if invert is not None:
            for a, b in product(partials, partials):
                total = self._of(a, b)
                sides = {"invert(combine(a, b), a)": self._state("invert", invert(*total, *a)), "b": b}
                self._check("inverse", [a, b], sides, also=(total,), exact=not rounding)
        for a, b, c in _triples(partials):
            ab, bc = self._of(a, b), self._of(b, c)
            sides = {"combine(combine(a, b), c)": self._of(ab, c), "combine(a, combine(b, c))": self._of(a, bc)}
            self._check("associative", [a, b, c], sides, also=(ab, bc))
        return self._commutes(partials, claimed=commutative)

    def _commutes(self, partials: Sequence[State], *, claimed: bool) -> bool:
        try:
            for a, b in product(partials, partials):
                self._check("commutative", [a, b], {"combine(a, b)": self._of(a, b), "combine(b, a)": self._of(b, a)})
        except QueryError:
            if claimed:
                raise
            return False
        return True

    def _of(self, a: State, b: State) -> State:
        return self._state("combine", self._combine(*a, *b))

    def _state(self, function: str, given: Any) -> State:
        """What a function gave, if it is a value for each field."""
        fields = ", ".join(field for field, _, _ in self._fields)
        if not isinstance(given, tuple) or len(given) != len(self._fields):
            raise QueryError(
                f"aggregate `{self._name}`: `{function}` must give a tuple of {len(self._fields)} ({fields}), "
                f"got `{given!r}`"
            )
        for (field, dtype, _), value in zip(self._fields, given, strict=True):
            if dtype == "int64" and value != int(value):
                raise QueryError(f"aggregate `{self._name}`: `{function}` gave {value} for `{field}`, an `int64`")
        return tuple(
            int(v) if dtype == "int64" else float(v) for (_, dtype, _), v in zip(self._fields, given, strict=True)
        )

    def _partials(self, inputs: Sequence[str], examples: Sequence[tuple[Any, ...]]) -> list[State]:
        """Partials of single rows, and of some pairs. Only values of ours may be outside of the domain."""
        found = [self._state("lift", self._lift(*row)) for row in examples]
        for row in islice(_rows(inputs), _MOST_ROWS):
            try:
                found.append(self._state("lift", self._lift(*row)))
            except (ArithmeticError, ValueError):
                continue
        if not found:
            raise QueryError(
                f"aggregate `{self._name}`: `lift` fails for every test value",
                hint="give values of its domain as `examples = [...]`",
            )
        return found + [self._of(a, b) for a, b in zip(found, found[3:], strict=False)]

    def _check(
        self,
        law: str,
        operands: Sequence[State],
        sides: dict[str, State],
        *,
        also: Sequence[State] = (),
        exact: bool = False,
    ) -> None:
        (left, one), (right, other) = sides.items()
        for position, (x, y) in enumerate(zip(one, other, strict=True)):
            size = max(
                (abs(each[position]) for each in (*operands, *also) if math.isfinite(each[position])), default=0
            )
            if not (same(x, y) or (not exact and math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9 * size))):
                names = "p" if len(operands) == 1 else "abc"
                where = ", ".join(f"{name} = {_shown(state)}" for name, state in zip(names, operands, strict=False))
                raise QueryError(
                    f"aggregate `{self._name}` is not {_LAWS[law]}: {left} = {_shown(one)} "
                    f"but {right} = {_shown(other)} with {where}",
                    hint=_HINTS.get(law),
                )


_LAWS = {
    "identity": "neutral towards its identity",
    "idempotent": "idempotent, as it claims",
    "commutative": "commutative, as it claims",
    "inverse": "undone by its `invert`",
    "associative": "associative",
}


_HINTS = {
    "identity": "the identities of the fields stand for no rows: combining with them must change nothing",
    "associative": "windows are put together from runs of rows, in any grouping of neighbours",
    "inverse": "an inverse must be exact; for floats leave it out, or say `rounding = True`: then it is used where a "
    "query asks for `numerics='fast'`",
}


def same(x: Any, y: Any) -> bool:
    """Equal, or both NaN."""
    return bool(x == y or (x != x and y != y))


def _shown(state: State) -> str:
    return f"({', '.join(map(repr, state))})"


def _rows(inputs: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows over the test values of each input, the same in every run; a single input takes each value once."""
    columns = [_NUMBERS[dtype] for dtype in inputs]
    if len(columns) == 1:
        return iter(product(columns[0]))
    chance = random.Random(0)
    return (tuple(map(chance.choice, columns)) for _ in range(_MOST_ROWS))


def _triples(partials: list[State]) -> Iterator[tuple[State, ...]]:
    """All triples where they are few, else as many by chance, the same in every run."""
    if len(partials) ** 3 <= _MOST_TRIPLES:
        return iter(product(partials, repeat=3))
    chance = random.Random(0)
    return (tuple(chance.choices(partials, k=3)) for _ in range(_MOST_TRIPLES))
