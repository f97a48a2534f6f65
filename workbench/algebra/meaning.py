"""What code of a user's means, as a digest that is the same in every process of the same Python.

A definition of a user's has the digest as its version: after a restart the same cell gives the same version, so a
query that reads it is the same query. Byte code, constants and names are looked at, and whatever the code names
outside of itself, as far as that is as immutable as the code: constants, other functions, and what Python and NumPy
bring. Code that names anything else has no digest, as what it means may change without its text.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
#: Entries of a class that say nothing of what it does; ``fields`` are told by whoever has read them.
_ASIDE = {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "fields"}
_ASIDE |= {"__firstlineno__", "__static_attributes__"}
_KNOWN = {*sys.stdlib_module_names, "numpy"} - {"__main__"}


def digest(*parts: Any) -> str | None:
    """Sixteen digits for values, functions and classes; None where one of them cannot be told."""
    try:
        text = "\n".join(_told(parts, []))
    except _Untold:
        return None
    return hashlib.sha256(f"{sys.version_info[:2]}\n{text}".encode()).hexdigest()[:16]


class _Untold(Exception):
    """Something whose meaning is not in what can be seen of it."""


def _told(value: Any, above: list[Any]) -> Iterator[str]:
    """All that a value is, in lines; ``above`` are the functions and classes that it is part of."""
    yield type(value).__name__
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, tuple):
        yield str(len(value))
        for each in value:
            yield from _told(each, above)
    elif isinstance(value, frozenset):
        yield from sorted("\n".join(_told(each, above)) for each in value)
    elif isinstance(value, CodeType):
        yield from _of_code(value, above)
    elif _is_known(value):
        yield _called(value)
    elif any(value is each for each in above):
        yield str([value is each for each in above].index(True))
    elif isinstance(value, FunctionType):
        yield from _of_function(value, [*above, value])
    elif isinstance(value, staticmethod | classmethod):
        yield from _told(value.__func__, above)
    elif isinstance(value, property):
        yield from _told((value.fget, value.fset, value.fdel), above)
    elif type(value) is type:
        yield from _told(value.__bases__, [*above, value])
        for name, entry in sorted(vars(value).items()):
            if name not in _ASIDE:
                yield name
                yield from _told(entry, [*above, value])
    else:
        raise _Untold


def _of_code(code: CodeType, above: list[Any]) -> Iterator[str]:
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    # Without flags of `__future__`, which say how it was compiled: what came of that is in the code.
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 0xFFF
    yield from _told((*counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars), above)
    yield from _told(code.co_consts, above)


def _of_function(function: FunctionType, above: list[Any]) -> Iterator[str]:
    try:
        closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
    except ValueError:  # a name that has no value yet
        raise _Untold from None
    yield from _told((function.__code__, function.__defaults__, closure), above)
    yield from _told(tuple(sorted((function.__kwdefaults__ or {}).items())), above)
    for name in sorted(set(_globals(function.__code__))):
        yield name
        if name in function.__globals__:
            yield from _told(function.__globals__[name], above)


def _globals(code: CodeType) -> Iterator[str]:
    """The names that code looks for outside of all functions, that of functions inside it too."""
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield each.argval
        elif each.opname == "STORE_GLOBAL" or (each.opname == "IMPORT_NAME" and not _is_of_python(each.argval)):
            raise _Untold
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)


def _is_known(value: Any) -> bool:
    """Whether something is of Python or NumPy, so that its name tells all."""
    if isinstance(value, ModuleType):
        return _is_of_python(value.__name__)
    if not isinstance(value, BuiltinFunctionType | FunctionType | type):
        return isinstance(value, np.ufunc)
    module = str(value.__module__)
    return _is_of_python(module) and getattr(sys.modules.get(module), value.__name__, None) is value


def _is_of_python(module: str) -> bool:
    return module.partition(".")[0] in _KNOWN


def _called(value: Any) -> str:
    name = value.__name__ if isinstance(value, ModuleType | np.ufunc) else f"{value.__module__}.{value.__qualname__}"
    return f"{name} {np.__version__}"
