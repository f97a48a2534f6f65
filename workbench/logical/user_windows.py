"""Window types that a user defines in Python, by the three interfaces of *General Stream Slicing* §5.4.2.

Which one a class implements decides how its windows are run, by the decision tree of the paper's Figure 4:

- ``next_edge`` and ``trigger``: *context free*. Edges are asked for while rows are cut into slices, which are shared
  with all other windows; rows are folded at once.
- ``notify``: *forward context free*. Called for the rows of a key in order of time, it begins and ends windows that
  follow one another. Rows are kept until no earlier one can come.
- ``notify_context`` and ``earliest``: *forward context aware*. Called for the same rows, it adds and removes windows
  wherever they begin and end.

Times are int64 microseconds.
"""

from __future__ import annotations

import inspect
import keyword
import pickle
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from workbench.algebra.meaning import digest
from workbench.algebra.registry import Registry, plain_name
from workbench.algebra.user import by_value
from workbench.errors import DataError, QueryError
from workbench.logical.expressions import Expression, Literal
from workbench.time import format_duration

#: Constants of a call; a duration is a :class:`Micros`.
Constant: TypeAlias = bool | int | float | str

_KINDS = {
    "context free": ("next_edge", "trigger"),
    "forward context free": ("notify",),
    "forward context aware": ("notify_context", "earliest"),
}
_CALLED = {
    "__init__": "__init__(self, ...)",
    "next_edge": "next_edge(self, time)",
    "trigger": "trigger(self, after, until)",
    "notify": "notify(self, context, time, ...)",
    "notify_context": "notify_context(self, context, time, ...)",
    "earliest": "earliest(self, context)",
}


def whole(value: Any) -> int:
    """A whole number that a user's class gives, numpy's or a float's as well. Raises ValueError for what is none."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, str) or number != value:
        raise ValueError(f"`{value}` is no whole number")
    return number


def _int64(value: Any) -> int:
    number = whole(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"`{value}` is too large for `int64`")
    return number


#: Types of the fields that are kept of a key, and what makes one of a value.
FIELD_TYPES: dict[str, Callable[[Any], Any]] = {"int64": _int64, "float64": float}


class Micros(int):
    """A duration among the constants of a call, microseconds."""


@dataclass(frozen=True)
class Definition:
    """What a class says, taken apart. ``name`` has a version; ``values`` is how many columns it reads of a row."""

    name: str
    cls: type
    kind: str
    fields: tuple[tuple[str, str, Any], ...]
    values: int

    @property
    def plain(self) -> str:
        """The name as it is written."""
        return plain_name(self.name)


#: Every window type by name.
WINDOW_TYPES: Registry[Definition] = Registry({})


@dataclass(frozen=True)
class UserWindow:
    """A call of a window type: its name with a version, what it reads of each row, and its constants."""

    name: str
    arguments: tuple[Expression, ...] = ()
    constants: tuple[Constant, ...] = ()

    @property
    def definition(self) -> Definition:
        """What the class says."""
        return WINDOW_TYPES[self.name]

    @property
    def label(self) -> str:
        """The call as SQL, such as ``"moved(km, 2.5)"``."""
        return f"{plain_name(self.name)}({', '.join([*map(str, self.arguments), *map(_text, self.constants)])})"

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method of the class returns. Raises DataError, with the class and the method, where it fails.

        The object behind it is one a process: a class must not keep anything of a stream in itself.
        """
        instance = _instance(self)
        try:
            return getattr(instance, method)(*arguments)
        except DataError:
            raise
        except Exception as error:  # the user's own code
            raise self.fault(f"`{method}` failed: {type(error).__name__}: {error}", method) from error

    def number(self, value: Any, method: str) -> int:
        """What a method gave, as a whole number. Raises DataError."""
        if type(value) is int:
            return value
        try:
            return whole(value)
        except ValueError:
            raise self.fault(f"`{method}` gave `{value}`, which is no whole number", method) from None

    def fault(self, message: str, method: str) -> DataError:
        """An error of the class, with the method's signature as the hint."""
        return DataError(
            f"window type `{self.definition.plain}`: {message}", hint=f"it is called as {_CALLED[method]}"
        )


@dataclass(frozen=True)
class UserGrid(UserWindow):
    """A context-free one."""


@dataclass(frozen=True)
class UserContext(UserWindow):
    """One that depends on the rows of the key."""


@lru_cache(maxsize=256)
def _instance(window: UserWindow) -> Any:
    try:
        return window.definition.cls(*window.constants)
    except Exception as error:  # the user's own code
        raise window.fault(f"`__init__` failed: {type(error).__name__}: {error}", "__init__") from error


def _text(constant: Constant) -> str:
    if isinstance(constant, Micros):
        return f"INTERVAL '{format_duration(constant)}'"
    return str(Literal(None, constant))


def define(name: str, cls: type) -> None:
    """Check a class and make it a window type; one of that name is replaced for queries to come.

    Raises QueryError for a class that lacks something.
    """

    def fault(message: str, hint: str | None = None) -> QueryError:
        return QueryError(f"window type `{name}`: {message}", hint=hint)

    found = [kind for kind, methods in _KINDS.items() if inspect.getattr_static(cls, methods[0], None) is not None]
    if len(found) != 1:
        first = " and ".join(f"`{_KINDS[kind][0]}`" for kind in found) or "none of them"
        hint = "`next_edge` for edges that are known, `notify` for windows in a row, `notify_context` for all others"
        raise fault(f"the class has one of three interfaces, got {first}", hint)
    for method in _KINDS[found[0]]:
        if not callable(getattr(cls, method, None)):
            raise fault(f"the class has no method `{method}`", f"it is called as {_CALLED[method]}")
    values = 0
    for method in _KINDS[found[0]]:
        taken = list(inspect.signature(getattr(cls, method)).parameters.values())
        least = _CALLED[method].count(",") + 1 - _CALLED[method].count("...")
        more = "..." in _CALLED[method]
        if any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in taken) or (
            len(taken) < least if more else len(taken) != least
        ):
            raise fault(
                f"`{method}` has other parameters than it is called with", f"{_CALLED[method]}, all by position"
            )
        values = max(values, len(taken) - least)
    fields = _fields(cls, fault) if found[0] != "context free" else ()
    version = digest(name, found[0], fields, cls) or secrets.token_hex(8)
    entry = Definition(f"{name}#{version}", cls, found[0], fields, values)
    WINDOW_TYPES.add(entry.name, entry, latest=True)


def _fields(cls: type, fault: Callable[..., QueryError]) -> tuple[tuple[str, str, Any], ...]:
    given = getattr(cls, "fields", {})
    if not isinstance(given, Mapping):
        raise fault("`fields` must name what is kept of a key", 'such as `fields = {"last": ("int64", 0)}`')
    found = []
    for field, content in given.items():
        if not isinstance(field, str) or not field.isidentifier() or keyword.iskeyword(field) or field[0] == "_":
            raise fault(f"`{field}` is no name for a field")
        if field in RESERVED:
            raise fault(f"`{field}` is what the context itself has", "give the field another name")
        if not isinstance(content, tuple) or len(content) != 2 or content[0] not in FIELD_TYPES:
            raise fault(f"field `{field}` must be a type and a value, got `{content}`", "types: float64, int64")
        try:
            found.append((field, content[0], FIELD_TYPES[content[0]](content[1])))
        except (TypeError, ValueError, OverflowError):
            raise fault(f"the value `{content[1]}` of field `{field}` is no `{content[0]}`") from None
    return tuple(found)


#: What a context has beside the fields.
RESERVED = ("begin", "end", "add", "remove", "rows", "windows")


def call_of(name: str, arguments: Sequence[Expression], constants: Sequence[Constant]) -> UserGrid | UserContext:
    """The windows that a call of a window type means. Raises QueryError where its class refuses the constants."""
    entry = WINDOW_TYPES[name]
    make = UserGrid if entry.kind == "context free" else UserContext
    window = make(entry.name, tuple(arguments), tuple(constants))
    try:
        _instance(window)
    except DataError as error:
        raise QueryError(error.message, hint=error.hint) from error.__cause__
    return window


def export(names: Sequence[str]) -> list[bytes]:
    """Definitions by value, for another process; their modules need not exist there. Inverse of :func:`restore`."""
    return [by_value(WINDOW_TYPES[name], [WINDOW_TYPES[name].cls]) for name in names]


def restore(definitions: Sequence[bytes]) -> None:
    """Take over definitions of the process that made the plan; its plain names are not touched here."""
    for content in definitions:
        entry: Definition = pickle.loads(content)
        if entry.name not in WINDOW_TYPES:
            WINDOW_TYPES.add(entry.name, entry, latest=False)
