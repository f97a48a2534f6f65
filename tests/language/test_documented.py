"""docs/sql.md says what the registries hold, and its examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from workbench.language.operators import NAMED_HANDLERS, OPERATORS
from workbench.language.over_functions import OVER_FUNCTIONS
from workbench.language.windows import FORMS
from workbench.logical.expressions import INFIX
from workbench.logical.functions import SQL_FUNCTIONS
from workbench.logical.types import SQL_TYPES
from workbench.notebook import commands, completion

TEXT = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
CELLS = re.findall(r"```(?:python|sql)\n(.*?)```", TEXT, re.DOTALL)


def section(title: str) -> str:
    """The text below a heading, up to the next one of its rank."""
    rank, _, _ = title.partition(" ")
    return re.split(rf"^{rank} ", TEXT.partition(f"\n{title}\n")[2], flags=re.MULTILINE)[0]


def calls(text: str) -> set[str]:
    """Names of the functions in the first column of tables."""
    return {name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)\(", row)}


def test_every_function_has_a_row() -> None:
    assert calls(section("## Functions")) == {*SQL_FUNCTIONS, *NAMED_HANDLERS}


def test_every_window_form_has_a_row() -> None:
    assert calls(section("## Windows")) == set(FORMS)


def test_every_function_before_over_has_a_row() -> None:
    assert calls(section("## A result for each row")) == {"agg", *OVER_FUNCTIONS}


def test_every_option_and_command_has_a_row() -> None:
    rows = re.findall(r"^\| (`.*?) \|", section("## Cells and commands"), re.MULTILINE)
    assert {word for row in rows for word in re.findall(r"`(--[\w-]+)", row)} == set(completion.OPTIONS)
    assert {word for row in rows for word in re.findall(r"`%winquery (\w+)", row)} == set(commands.COMMANDS)


def test_every_type_and_operator_is_there() -> None:
    aliases = {"integer", "long"}
    assert set(re.findall(r"`(\w+)`", section("## Types and constants"))) >= set(SQL_TYPES) - aliases
    operators = section("## Operators")
    words = {INFIX.get(name, "||") for name in OPERATORS.values()}
    assert {word for word in words if word not in operators} == set()


def test_the_examples_run(shell: InteractiveShell) -> None:
    for cell in CELLS:
        assert shell.run_cell(cell).success, cell
    names = {
        name: len(shell.user_ns[name].results()) for name in ("delays", "pair_2", "late", "names", "some", "worst")
    }
    assert all(names.values())
    steps = shell.user_ns["steps"].results()
    assert sorted(zip(steps["carrier"].fillna("-"), steps["n"], steps["step"].fillna(0), strict=True)) == [
        ("-", 1, 0), ("B6", 1, 0), ("UA", 1, 0), ("UA", 2, 39)
    ]  # fmt: skip
    assert shell.user_ns["names"].results()[["name", "n"]].to_dict("records") == [{"name": "United", "n": 2}]
    assert shell.user_ns["worst"].results()["worst"].tolist() == [41.0]
    fuel = shell.user_ns["fuel"].results()[["car", "window_start", "n"]]
    assert fuel.to_numpy().tolist() == [["a", 0.0, 2], ["a", 10.0, 1], ["b", 70.0, 1], ["b", 80.0, 1]]
    assert shell.user_ns["fuel"].status().backward == 1
    assert "checked" not in shell.user_ns
