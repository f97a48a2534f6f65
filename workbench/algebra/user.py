"""Aggregates that a user defines in Python: a class with fields, ``lift``, ``combine`` and ``lower``.

They are monoids like all others: shared by equal parts, cut into slices, put together from them. What numba can
compile is compiled into the kernels as an object (no text of a user's becomes code); the rest runs in Python.
"""

from __future__ import annotations

import inspect
import keyword
import pickle
import re
import secrets
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from workbench.algebra.aggregates import Aggregate, Family, Operands, Part, number
from workbench.algebra.laws import Trial
from workbench.algebra.meaning import digest
from workbench.algebra.partials import Array, Field, Fields, PartialKind
from workbench.algebra.registry import AGGREGATES, PARTIALS, plain_name
from workbench.errors import DataError, QueryError

#: Behind the name of a kind: the same with an inverse that rounds.
FAST = ".fast"
_DTYPES = ("float64", "int64")
_RESULTS = {"double": pa.float64(), "bigint": pa.int64(), "boolean": pa.bool_(), "string": pa.string()}


@dataclass(frozen=True)
class Definition:
    """What a class says, taken apart.

    ``name`` has a version, of equal code the same where that can be told; ``python`` says why it cannot be compiled;
    ``rounding`` that its inverse is not exact.
    """

    name: str
    fields: tuple[tuple[str, str, Any], ...]
    inputs: tuple[str, ...]
    result: pa.DataType
    lift: Callable[..., Any]
    combine: Callable[..., Any]
    lower: Callable[..., Any]
    invert: Callable[..., Any] | None
    commutative: bool
    idempotent: bool
    examples: tuple[tuple[Any, ...], ...]
    python: str | None = None
    rounding: bool = False

    @property
    def plain(self) -> str:
        """The name as it is written."""
        return plain_name(self.name)


_definitions: dict[str, Definition] = {}


def define(name: str, cls: type) -> None:
    """Check a class and make it an aggregate; one of that name is replaced for queries to come.

    Raises QueryError for a class that lacks something, or that breaks a law, with the counterexample.
    """
    draft = _read(name, cls)
    functions = _functions(draft, compiled=False)
    try:
        commutative = Trial(name, draft.fields, functions.lift, functions.combine).run(
            draft.inputs,
            draft.examples,
            commutative=draft.commutative,
            idempotent=draft.idempotent,
            invert=functions.invert,
            rounding=draft.rounding,
        )
    except QueryError:
        raise
    except Exception as error:  # the user's own code
        raise QueryError(f"aggregate `{name}` fails on a test value: {type(error).__name__}: {error}") from error
    reason = _obstacle(draft)
    _adopt(replace(draft, python=reason, commutative=commutative), latest=True)


def definition(name: str) -> Definition:
    """The definition behind a versioned name."""
    return _definitions[name]


def export(kinds: Sequence[str]) -> list[bytes]:
    """Definitions behind kinds of partials, each once, by value, for another process; inverse of :func:`restore`.

    Their modules need not exist there.
    """
    entries = [_definitions[name] for name in dict.fromkeys(kind.removesuffix(FAST) for kind in kinds)]
    return [by_value(entry, [entry.lift, entry.combine, entry.lower]) for entry in entries]


def by_value(entry: Any, code: Sequence[Any]) -> bytes:
    """A definition with the code of its functions or classes, for a process that cannot import their modules."""
    from pyspark import cloudpickle

    modules = {sys.modules.get(each.__module__) for each in code}
    shipped = [module for module in modules if module is not None and module.__name__ != "__main__"]
    for module in shipped:
        cloudpickle.register_pickle_by_value(module)
    try:
        content: bytes = cloudpickle.dumps(entry)
        return content
    finally:
        for module in shipped:
            cloudpickle.unregister_pickle_by_value(module)


def restore(definitions: Sequence[bytes]) -> None:
    """Take over definitions of the process that made the plan; its plain names are not touched here."""
    for content in definitions:
        entry: Definition = pickle.loads(content)
        if entry.name not in _definitions:
            _adopt(entry, latest=False)


def _read(name: str, cls: type) -> Definition:
    """The parts of a class; everything that is missing or odd is refused here."""

    def fault(message: str, hint: str | None = None) -> QueryError:
        return QueryError(f"aggregate `{name}`: {message}", hint=hint)

    functions: dict[str, Callable[..., Any] | None] = {}
    for part in ("lift", "combine", "lower", "invert"):
        function = inspect.getattr_static(cls, part, None)
        function = function.__func__ if isinstance(function, staticmethod) else function
        if function is None and part != "invert":
            raise fault(f"the class has no function `{part}`", "it needs `fields`, `lift`, `combine` and `lower`")
        if function is not None and not inspect.isfunction(function):
            raise fault(f"`{part}` must be a plain function, got `{type(function).__name__}`")
        functions[part] = function
    lift, combine, lower = functions["lift"], functions["combine"], functions["lower"]
    assert lift is not None
    assert combine is not None
    assert lower is not None
    width = len(inspect.signature(lift).parameters)
    inputs = tuple(getattr(cls, "inputs", None) or ("float64",) * width)
    if not width or len(inputs) != width or any(dtype not in _DTYPES for dtype in inputs):
        raise fault(
            f"`lift` takes {width} values, so `inputs` must be {width} of {', '.join(_DTYPES)}, got `{inputs}`"
        )
    result = getattr(cls, "result", "double")
    kind = result if isinstance(result, pa.DataType) else _RESULTS.get(result)
    if kind is None:
        raise fault(f"unknown result type `{result}`", f"one of {', '.join(_RESULTS)}, or an Arrow type")
    examples = tuple(row if isinstance(row, tuple) else (row,) for row in getattr(cls, "examples", ()))
    if any(len(row) != width for row in examples):
        raise fault(f"each of `examples` must have {width} values")
    rounding = bool(getattr(cls, "rounding", False))
    if rounding and functions["invert"] is None:
        raise fault("`rounding` is said of its `invert`, and the class has none", "leave `rounding` out")
    fields = _fields(cls, fault)
    commutative, idempotent = (bool(getattr(cls, flag, False)) for flag in ("commutative", "idempotent"))
    facts = fields, inputs, str(kind), commutative, idempotent, rounding
    version = digest(name, facts, *functions.values()) or secrets.token_hex(8)
    return Definition(
        f"{name}#{version}",
        fields,
        inputs,
        kind,
        lift,
        combine,
        lower,
        functions["invert"],
        commutative,
        idempotent,
        examples,
        rounding=rounding,
    )


def _fields(cls: type, fault: Callable[..., QueryError]) -> tuple[tuple[str, str, Any], ...]:
    given = getattr(cls, "fields", None)
    if not isinstance(given, Mapping) or not given:
        raise fault("`fields` must name the fields of a partial", 'such as `fields = {"n": ("int64", 0)}`')
    found = []
    for field, content in given.items():
        if not isinstance(field, str) or not field.isidentifier() or keyword.iskeyword(field) or field[0] == "_":
            raise fault(f"`{field}` is no name for a field")
        if not isinstance(content, tuple) or len(content) != 2 or content[0] not in _DTYPES:
            raise fault(
                f"field `{field}` must be a type and its identity, got `{content}`", f"types: {', '.join(_DTYPES)}"
            )
        dtype, identity = content
        try:
            plain = np.dtype(dtype).type(identity).item()
        except (TypeError, ValueError, OverflowError):
            raise fault(f"the identity `{identity}` of field `{field}` is no `{dtype}`") from None
        found.append((field, dtype, plain))
    return tuple(found)


@dataclass(frozen=True)
class _Functions:
    """A user's functions over plain values: each takes what the fields or inputs hold and gives a tuple of fields."""

    lift: Callable[..., Any]
    combine: Callable[..., Any]
    invert: Callable[..., Any] | None


def _functions(entry: Definition, *, compiled: bool) -> _Functions:
    """The functions as they are, or compiled (on their first call)."""
    state = state_of(entry)

    def own(function: Callable[..., Any]) -> Callable[..., Any]:
        if not compiled:
            return function
        # Only here, as numba takes half a second to import: a session without aggregates of its own needs none.
        from workbench.kernels.jit import jit

        return jit(function, keep=False)

    def of_states(function: Callable[..., Any]) -> Callable[..., Any]:
        width, inner = len(entry.fields), own(function)

        def flat(*fields: Any) -> Any:
            return inner(state(*fields[:width]), state(*fields[width:]))

        return own(flat)

    return _Functions(
        own(entry.lift), of_states(entry.combine), None if entry.invert is None else of_states(entry.invert)
    )


def state_of(entry: Definition) -> Any:
    """The class of the named tuples that a user's functions are called with."""
    return namedtuple("State", [field for field, _, _ in entry.fields])


def _obstacle(entry: Definition) -> str | None:
    """Why the functions cannot be compiled, in a few words, or None if they can."""
    from workbench.kernels.compiler import errors

    functions = _functions(entry, compiled=True)
    identity = [np.dtype(dtype).type(value) for _, dtype, value in entry.fields]
    calls: list[tuple[Any, list[Any]]] = [
        (functions.lift, [np.dtype(dtype).type(0) for dtype in entry.inputs]),
        (functions.combine, identity * 2),
    ]
    calls += [(functions.invert, identity * 2)] if functions.invert is not None else []
    for function, values in calls:
        try:
            function(*values)
        except errors.NumbaError as error:
            return telling(str(error)) or type(error).__name__
        except (ArithmeticError, ValueError):  # compiled, and the identity is outside of its domain
            continue
    return None


def telling(message: str) -> str:
    """The line of a message of numba's that says what is wrong; without its colours, which colorama brings."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", message).splitlines() if line.strip()]
    good = [line for line in lines if not line.startswith("Failed in")]
    return next(iter(good or lines), "")[:100].rstrip(".:")


def _adopt(entry: Definition, *, latest: bool) -> None:
    """Put a definition where the plan and the kernels find it."""
    token = entry.name.partition("#")[2]
    functions = _functions(entry, compiled=entry.python is None)
    scalars: dict[str, Callable[..., Any]] = {}

    def arrays(part: str, function: Callable[..., Any], width: int) -> Callable[..., Fields]:
        scalars[f"{part}_{token}"] = function
        return _elementwise(entry, f"{part}_{token}", function, width)

    width = len(entry.fields)
    kind = PartialKind(
        entry.name,
        tuple(Field(*field) for field in entry.fields),
        entry.inputs,
        arrays("lift", functions.lift, len(entry.inputs)),
        arrays("combine", functions.combine, 2 * width),
        idempotent=entry.idempotent,
        commutative=entry.commutative,
        exact=False,
        python=entry.python,
        scalars=scalars,
        fast=entry.name + FAST if entry.rounding else None,
    )
    if functions.invert is not None:
        invertible = replace(kind, invert=arrays("invert", functions.invert, 2 * width), fast=None)
        if entry.rounding:
            PARTIALS.add(entry.name + FAST, replace(invertible, name=entry.name + FAST, rounding=True), latest=False)
        else:
            kind = invertible
    _definitions[entry.name] = entry
    PARTIALS.add(entry.name, kind, latest=False)
    AGGREGATES.add(entry.name, _aggregate(entry), latest=latest)


def _elementwise(entry: Definition, name: str, function: Callable[..., Any], width: int) -> Callable[..., Fields]:
    """A function of scalars as one of arrays, element by element."""
    dtypes = [dtype for _, dtype, _ in entry.fields]
    single = len(dtypes) == 1
    ufunc = np.frompyfunc((lambda *values: function(*values)[0]) if single else function, width, len(dtypes))

    def apply(*columns: Array) -> Fields:
        try:
            out = ufunc(*columns)
            return tuple(np.asarray(c).astype(d) for c, d in zip((out,) if single else out, dtypes, strict=True))
        except Exception as error:  # the user's own code
            raise _failure(entry, error) from error

    apply.__name__ = name
    return apply


def _failure(entry: Definition, error: Exception) -> DataError:
    return DataError(f"aggregate `{entry.plain}` failed: {type(error).__name__}: {error}")


def _aggregate(entry: Definition) -> Aggregate:
    state = state_of(entry)

    def result_type(operands: Operands) -> pa.DataType:
        for position, dtype in enumerate(entry.inputs):
            if dtype == "int64" and not is_.is_integer(operands.types[position]):
                raise operands.misfit(position, "an integer")
            number(operands, position)
        return entry.result

    def parts(operands: Operands) -> tuple[Part, ...]:
        feeds = tuple(range(len(entry.inputs)))
        return (Part(entry.name, feeds), Part("count", feeds))

    def lower(fields: Sequence[Fields], operands: Operands, kind: pa.DataType, text: str) -> pa.Array:
        rows = zip(*(field.tolist() for field in fields[0]), strict=True)
        try:
            values = [
                entry.lower(state(*row)) if count else None
                for row, count in zip(rows, fields[1][0].tolist(), strict=True)
            ]
            return pa.array(values, kind, from_pandas=False)
        except Exception as error:  # the user's own code
            raise _failure(entry, error) from error

    width = len(entry.inputs)
    return Aggregate(entry.name, (width, width), Family.ALGEBRAIC, result_type, parts, lower)
