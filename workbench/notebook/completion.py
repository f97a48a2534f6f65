"""Tab completion in ``%%winquery`` cells and ``%winquery`` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from workbench.algebra import AGGREGATES
from workbench.language.operators import NAMED_HANDLERS
from workbench.language.over_functions import OVER_FUNCTIONS
from workbench.language.parameters import is_constant
from workbench.language.windows import window_forms
from workbench.logical import Numerics
from workbench.logical.expressions import quote_name
from workbench.logical.functions import SQL_FUNCTIONS
from workbench.notebook.commands import COMMANDS
from workbench.session import default_session

#: Text to complete with, and what it is.
Candidate = tuple[str, str]

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL",
    "BETWEEN", "LIKE", "ILIKE", "RLIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST", "EXTRACT",
    "JOIN", "LEFT JOIN", "ON", "USING", "WITH", "INTERVAL", "DISTINCT", "NULL", "TRUE", "FALSE",
    "FILL NULL", "FILL ZERO", "FILL PREVIOUS",
)  # fmt: skip
OPTIONS = (
    "--source", "--live", "--explain", "--dry-run", "--from-now", "--numerics", "--param", "--save", "--with",
    "--out", "--help",
)  # fmt: skip
_CELL, _LINE = re.compile(r"\s*%%winquery\b"), re.compile(r"\s*%winquery\s")
_FRAGMENT = re.compile(r"[\w.]*$")
_ENTRY = re.compile(
    r"\b(?:from|join)\s+(\w+)(?:\s+(?:as\s+)?(?!where\b|group\b|join\b|left\b|on\b|using\b)(\w+))?", re.I
)


def complete(before: str, after: str, variables: Mapping[str, object]) -> tuple[str, list[Candidate]]:
    """The piece of text before the cursor that is meant, and what it can become.

    ``before`` and ``after`` are the cell on both sides of the cursor, ``variables`` those of the notebook.
    """
    line = before.rpartition("\n")[2]
    if _LINE.match(line):
        return _of_command(line)
    if "\n" not in before:
        return _of_options(line)
    sql = before.partition("\n")[2]
    parameter = re.search(r"\{\{\s*(\w*)$", sql)
    if parameter is not None:
        names = [name for name, value in variables.items() if not name.startswith("_") and is_constant(value)]
        return _matching(parameter[1], [(name, "parameter") for name in names])
    if _inside_text(sql):
        return "", []
    if sql.count("`") % 2:
        return _in_backticks(sql.rpartition("`")[2], after, before + after)
    fragment = _FRAGMENT.search(sql)
    word = fragment[0] if fragment is not None else ""
    word, found = _matching(word, list(_of_sql(sql[: len(sql) - len(word)], word, before + after)))
    place = word.rfind(".") + 1
    return word, [
        (text[:place] + quote_name(text[place:]) if kind == "column" else text, kind) for text, kind in found
    ]


def _in_backticks(fragment: str, after: str, cell: str) -> tuple[str, list[Candidate]]:
    """The columns that begin so, with the backtick behind them if it is not there yet."""
    names = [(name, "column") for names in _columns(cell).values() for name in names]
    end = "" if after.startswith("`") else "`"
    return fragment, [(name.replace("`", "``") + end, kind) for name, kind in _matching(fragment, names)[1]]


def _matching(fragment: str, candidates: list[Candidate]) -> tuple[str, list[Candidate]]:
    folded = fragment.casefold()
    found = [each for each in dict.fromkeys(candidates) if each[0].casefold().startswith(folded)]
    return fragment, found


def _of_command(line: str) -> tuple[str, list[Candidate]]:
    words = line.split()
    fragment = "" if line.endswith(" ") else words[-1]
    place = len(words) - (fragment != "")
    if place == 1:
        return _matching(fragment, [(name, "command") for name in COMMANDS])
    session = default_session()
    names: dict[str, list[str]] = {
        "sources": list(session.sources),
        "tables": list(session.tables),
        "snippets": list(session.snippets),
        "help": ["functions"],
    }
    queries = [handle.name for handle in session.queries()]
    return _matching(fragment, [(name, "name") for name in names.get(words[1], queries)])


def _of_options(line: str) -> tuple[str, list[Candidate]]:
    words = line.split()
    fragment = "" if line.endswith(" ") else words[-1]
    previous = words[-1] if not fragment else words[-2] if len(words) > 1 else ""
    session = default_session()
    if previous in ("--source", "-s"):
        return _matching(fragment, [(name, "source") for name in session.sources])
    if previous in ("--with", "-w"):
        return _matching(fragment.rpartition(",")[2], [(name, "snippet") for name in session.snippets])
    if previous == "--numerics":
        return _matching(fragment, [(each.value, "numerics") for each in Numerics])
    return _matching(fragment, [(option, "option") for option in OPTIONS])


def _inside_text(sql: str) -> bool:
    """Whether the cursor stands between quotes or in a comment."""
    plain = re.sub(r"--[^\n]*\n|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "", sql)
    return "'" in plain or '"' in plain or "--" in plain


def _of_sql(before: str, word: str, cell: str) -> Iterator[Candidate]:
    """What can stand behind ``before``; columns first, since they are what is typed most."""
    previous = (re.findall(r"\w+|\S", before) or [""])[-1].casefold()
    session = default_session()
    if previous == "from":
        yield from ((name, "source") for name in (*session.sources, *_with(cell)))
    elif previous == "join":
        yield from ((name, "table") for name in session.tables)
    elif "." in word:
        qualifier = word.rpartition(".")[0]
        yield from ((f"{qualifier}.{name}", "column") for name in _columns(cell).get(qualifier.casefold(), []))
    else:
        yield from ((name, "column") for names in _columns(cell).values() for name in names)
        yield from ((f"{name}(", "window") for name in window_forms() if "group by" in before.casefold())
        yield from ((f"{name}(", "aggregate") for name in AGGREGATES)
        yield from ((f"{name}(", "function") for name in (*SQL_FUNCTIONS, *NAMED_HANDLERS, *OVER_FUNCTIONS))
        yield from ((name, "keyword") for name in KEYWORDS)


def _with(cell: str) -> list[str]:
    """The snippets that the first line of a cell asks for."""
    found = re.findall(r"(?:--with|-w)[\s=]+([\w,]+)", cell.partition("\n")[0])
    return [name for entry in found for name in entry.split(",")]


def _columns(cell: str) -> dict[str, list[str]]:
    """The columns of each source and table that a cell names, by the name that may stand before them.

    All sources' where none is named yet.
    """
    session = default_session()
    schemas = {name: source.stream.schema for name, source in session.sources.items()}
    tables = {name: table.schema for name, table in session.tables.items()}
    known = {name.casefold(): schema.names for name, schema in {**schemas, **tables}.items()}
    option = re.search(r"(?:--source|-s)[\s=]+(\w+)", cell.partition("\n")[0])
    entries = _ENTRY.findall(cell.partition("\n")[2]) + ([(option[1], "")] if option else [])
    found = {
        (alias or name).casefold(): known[name.casefold()] for name, alias in entries if name.casefold() in known
    }
    return found or {name.casefold(): schema.names for name, schema in schemas.items()}


def add_completions(shell: InteractiveShell) -> None:
    """Let a shell complete in our cells, before its own matchers and without them. Adding twice changes nothing."""

    @context_matcher(identifier="winquery", priority=1_000)
    def match(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        before = "\n".join([*lines[: context.cursor_line], context.text_until_cursor])
        if not (_CELL.match(before) or _LINE.match(context.text_until_cursor)):
            return {"completions": [], "suppress": False}
        after = context.full_text[len(before) :]
        fragment, found = complete(before, after, shell.user_ns)
        completions = [SimpleCompletion(text, type=kind) for text, kind in found]
        return {"completions": completions, "matched_fragment": fragment, "suppress": True}

    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if getattr(each, "matcher_identifier", "") != "winquery"]
    matchers.append(match)
