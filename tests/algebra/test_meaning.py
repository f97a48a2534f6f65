"""Equal code has one digest in every process, other code another one; what cannot be told has none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from workbench.algebra.meaning import digest

CODE = """
    import math

    LIMIT = 3

    def helper(x, times=2):
        return [x * y for y in range(times)] if x in {1, 2, "a", "b"} else x

    def outer(power):
        def inner(x):
            return math.sqrt(helper(x)) ** power + LIMIT
        return inner

    made = outer(2)

    class Steps:
        fields = {"begun": ("int64", 0)}
        STEP = 5
        def __init__(self, size): self.size = size
        @property
        def double(self): return self.size * self.STEP
        @staticmethod
        def least(x): return min(x, 7)
        def notify(self, context, time):
            if time >= context.begun + self.double: context.begin(Steps.least(time))
"""


def names(code: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(textwrap.dedent(code), "cell", "exec", dont_inherit="# more" in code), space)
    return space


def of(code: str, name: str = "made") -> str | None:
    return digest("a", names(code)[name])


@pytest.mark.parametrize("name", ["made", "Steps"])
def test_the_same_code_elsewhere_is_the_same(name: str) -> None:
    """In another process, whose texts have other hashes, lines below, and with another `__future__`."""
    text = f"from tests.algebra.test_meaning import CODE, of; print(of('    # more\\n\\n' + CODE, {name!r}))"
    said = {
        subprocess.run(
            [sys.executable, "-c", text],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    here = of(CODE, name)
    assert here is not None
    assert len(here) == 16
    assert said == {here}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", "LIMIT = (3,)"),
        ("times=2", "times=3"),
        ('"a", "b"', '"a", "c"'),
        ("x * y", "x + y"),
        ("outer(2)", "outer(3)"),
        ("math.sqrt", "math.exp"),
        ("range(times)", "reversed(times)"),
    ],
)
def test_whatever_a_function_means_counts(before: str, after: str) -> None:
    assert before in CODE
    assert of(CODE.replace(before, after)) not in (of(CODE), None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("STEP = 5", "STEP = 6"),
        ("min(x, 7)", "min(x, 8)"),
        ("self.size * self", "self.size + self"),
        ("@staticmethod", "@classmethod"),
        ("begin(Steps", "end(Steps"),
        ("def notify", "def inform"),
        ("class Steps:", "class Base: X = 1\n    class Steps(Base):"),
    ],
)
def test_whatever_a_class_means_counts(before: str, after: str) -> None:
    assert before in CODE
    assert of(CODE.replace(before, after), "Steps") not in (of(CODE, "Steps"), None)


@pytest.mark.parametrize(
    "line",
    [
        "LIMIT = [3]",
        "LIMIT = {3: 3}",
        "LIMIT = object()",
        "import workbench as LIMIT",
        "from workbench.time import DAY as LIMIT",
    ],
)
def test_what_may_change_without_its_text_has_no_digest(line: str) -> None:
    found = of(CODE.replace("LIMIT = 3", line))
    assert found is None or "DAY" in line, "a number that is imported is a number"


@pytest.mark.parametrize(
    "body", ["import workbench; return x", "global LIMIT; LIMIT = x; return x", "return print(x)"]
)
def test_code_that_reaches_further_has_no_digest(body: str) -> None:
    """But for that of Python itself, here `print`."""
    found = of(f"def made(x): {body}")
    assert (found is not None) == ("print" in body)


def test_functions_that_call_each_other_are_told() -> None:
    code = "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - {})"
    first, second = (of(code.format(step), "even") for step in (1, 2))
    assert None not in (first, second)
    assert first != second
    assert of("def made(x): return later(x)") != of("def made(x): return sooner(x)")
    nowhere: dict[str, Any] = {}
    exec("class Int: X = 1\nother = Int\nclass Int: X = 2", nowhere)
    assert nowhere["Int"].__module__ == "builtins"
    assert digest(nowhere["Int"]) != digest(nowhere["other"])
    assert digest((1, 2), 3) != digest((1,), 2, 3)
