"""SQL text to syntax trees, and places in the text back from them. The only user of sqlglot's parser.

The dialect is Spark's. Functions stay as they were written (``Anonymous`` nodes): our own closed list decides what
they mean, not sqlglot's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from workbench.errors import QueryError, Span, did_you_mean
from workbench.logical.types import SQL_TYPES
from workbench.time import is_unit

_DIALECT = Spark()
#: Stands for the word ``FILL`` where it is a clause; Spark has no use for this token.
_FILL = TokenType.FORMAT


class _Parser(SparkParser):
    """Spark's grammar without Spark's functions, but for those with a syntax of their own, such as ``CAST``."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    #: In Spark `||` is as tight as `+`, so `s || n + 1` adds 1 to a text; sqlglot has it looser.
    TERM: ClassVar[dict[Any, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.QUERY_MODIFIER_PARSERS,
        _FILL: lambda self: ("fill", self._parse_fill()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar[set[Any]] = {*SparkParser.QUERY_MODIFIER_TOKENS, _FILL}

    def _parse_fill(self) -> exp.Var:
        """``FILL`` and the word behind it."""
        first = self._curr
        self._advance(2)
        node = exp.Var(this=self._prev.text)
        node.meta.update(start=first.start, end=self._prev.end)
        return node

    def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
        """The same with its place, which sqlglot does not mark."""
        first = self._curr
        node = super()._parse_interval(*args, **options)
        if isinstance(node, exp.Interval):
            node.meta.update(start=first.start, end=self._prev.end)
        return node

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """The same with the word that was written: sqlglot makes one type of the names of many dialects."""
        first = self._curr
        node: exp.Expr | None = super()._parse_types(*args, **options)
        if isinstance(node, exp.DataType) and first is not None:
            node.meta["written"] = first.text.casefold()
        return node


#: The word with which a node begins where its first child is not its beginning.
_FIRST_WORDS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Case: ("CASE",),
    exp.TryCast: ("CAST", "TRY_CAST"),
    exp.Extract: ("EXTRACT",),
    exp.Trim: ("TRIM",),
    exp.Not: ("NOT", "!"),
    exp.Neg: ("-",),
    exp.BitwiseNot: ("~",),
    exp.Paren: ("(",),
    exp.Subquery: ("(",),
    exp.Tuple: ("(",),
    exp.Distinct: ("DISTINCT",),
    exp.Placeholder: (":", "?"),
    exp.Parameter: ("$", "@"),
    exp.Select: ("SELECT",),
    exp.Union: ("SELECT",),
    exp.Except: ("SELECT",),
    exp.Intersect: ("SELECT",),
    exp.Exists: ("EXISTS",),
    exp.Null: ("NULL",),
    exp.With: ("WITH",),
    exp.Group: ("GROUP BY",),
    exp.Rollup: ("ROLLUP",),
    exp.Cube: ("CUBE",),
    exp.GroupingSets: ("GROUPING SETS",),
    exp.Order: ("ORDER BY",),
    exp.Limit: ("LIMIT",),
    exp.Offset: ("OFFSET",),
    exp.Join: ("JOIN", ","),
}
#: Words that no column can be called without backticks.
_RESERVED = (TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.ON)
_OPENING = {"(": ")", "[": "]", "CASE": "END"}
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_BEGINNINGS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.SEMICOLON)
_CLOSING = set(_OPENING.values())
_IS_WORDS = {"IS", "NOT", "NULL", "TRUE", "FALSE"}
_FILL_WORDS = (TokenType.VAR, TokenType.NULL, TokenType.NUMBER, *_QUOTED)
_ENDS_EXPRESSION = (*_FILL_WORDS, TokenType.R_PAREN, TokenType.TRUE, TokenType.FALSE, TokenType.END)
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "JOIN")
#: After a comma something must come; sqlglot would not mind these.
_CLAUSE_WORDS = {",", ")", ";", "FROM", "WHERE", "GROUP BY", "HAVING"}


@dataclass(frozen=True)
class SqlText:
    """A piece of SQL with its tokens: errors raised through it underline the place of a node."""

    sql: str
    tokens: tuple[Token, ...]

    def error(self, message: str, node: exp.Expr | Span, *, hint: str | None = None) -> QueryError:
        """A QueryError that underlines ``node``."""
        span = node if isinstance(node, Span) else self.span(node)
        return QueryError(message, hint=hint, sql=self.sql, span=span)

    @contextmanager
    def at(self, node: exp.Expr) -> Iterator[None]:
        """Give a QueryError without a place that is raised inside the place of ``node``."""
        try:
            yield
        except QueryError as error:
            if error.span is not None:
                raise
            raise self.error(error.message, node, hint=error.hint) from None

    def source(self, node: exp.Expr) -> str:
        """The text of ``node`` as the user wrote it."""
        span = self.span(node)
        return self.sql[span.start : span.end]

    def span(self, node: exp.Expr) -> Span:
        """The place of ``node``. sqlglot marks names, literals and functions; the rest follows from the tokens."""
        marks = [inner.meta for inner in node.walk() if "start" in inner.meta]
        if not marks:
            return self._unmarked(node)
        start, end = min(mark["start"] for mark in marks), max(mark["end"] for mark in marks)
        first = max(i for i, token in enumerate(self.tokens) if token.start <= start)
        last = max(i for i, token in enumerate(self.tokens) if token.start <= end)
        first = self._first_word(node, first)
        last = self._last_bracket(node, first, last)
        return Span(self.tokens[first].start, self.tokens[last].end + 1)

    def _unmarked(self, node: exp.Expr) -> Span:
        """The place of a node without names and literals: its own word after the node around it, or all of that."""
        if node.parent is None:
            return Span(0, len(self.sql))
        around = self.span(node.parent)
        words = _FIRST_WORDS.get(type(node), ())
        for token in self.tokens:
            if token.start >= around.start and token.text.upper() in words:
                return Span(token.start, token.end + 1)
        return around

    def first_word(self, node: exp.Expr) -> Span:
        """The first word of the statement that holds ``node``."""
        start = self.span(node).start
        before = [token.end for token in self.tokens if token.text == ";" and token.start < start]
        first = next(token for token in self.tokens if token.start > max(before, default=-1))
        return Span(first.start, first.end + 1)

    def _first_word(self, node: exp.Expr, first: int) -> int:
        words = _FIRST_WORDS.get(type(node), ())
        if isinstance(node, exp.TryCast):  # `x::int` and `5L` have no word, and one before them is another's
            start = self.span(node.this).start
            inner = next(place for place, token in enumerate(self.tokens) if token.start == start)
            called = inner > 1 and self.tokens[inner - 2].text.upper() in words
            return inner - 2 if called else inner
        for position in range(first, -1, -1) if words else ():
            if self.tokens[position].text.upper() in words:
                return position
        return first

    def _last_bracket(self, node: exp.Expr, first: int, last: int) -> int:
        """Go on to the bracket or END that closes what was opened since ``first``."""
        if isinstance(node, exp.Anonymous):
            last = max(last, first + 1)
        depth, position = 0, first
        while position < len(self.tokens) and (position <= last or depth > 0):
            word = self.tokens[position].text.upper()
            if self.tokens[position].token_type not in _QUOTED:
                depth += (word in _OPENING) - (word in _CLOSING and depth > 0)
            position += 1
        return position - 1 + self._unmarked_tail(node, position)

    def _unmarked_tail(self, node: exp.Expr, position: int) -> int:
        """How many tokens from ``position`` on belong to ``node`` and are marked by none of its children."""
        is_test = isinstance(node, exp.Is) or isinstance(node.this, exp.Is)
        words = [token.text.upper() for token in self.tokens[position : position + 3]] if is_test else []
        return len(list(takewhile(_IS_WORDS.__contains__, words)))


def parse_statements(sql: str) -> tuple[SqlText, list[exp.Select]]:
    """The SELECT statements of a text, in order; at least one. Raises QueryError for everything else."""
    text = tokenize(sql)
    statements = [_select(text, node) for node in _parse(text, "statements") if node is not None]
    if not statements:
        raise QueryError("the query is empty", hint="write a SELECT statement")
    return text, statements


def parse_expression(sql: str) -> tuple[SqlText, exp.Expr]:
    """A single expression, such as the builder's fragments. Raises QueryError for everything else."""
    text = tokenize(sql)
    nodes = _parse(text, "expression") if text.tokens else []
    if len(nodes) != 1 or nodes[0] is None:
        raise QueryError(f"expected one expression, got `{sql}`")
    return text, nodes[0]


def tokenize(sql: str) -> SqlText:
    """Cut a text into tokens; raises QueryError for an open quote or comment."""
    try:
        return SqlText(sql, tuple(_DIALECT.tokenize(sql)))
    except TokenError as error:
        # sqlglot gives the line, then the position in the whole text.
        place = re.search(r"Missing (\S+) from \d+:(\d+)", str(error.__cause__))
        if place is None:
            raise QueryError("cannot read the SQL: a quote or a comment is not closed") from None
        start = int(place[2])
        message = f"cannot read the SQL: the quote {place[1]} is never closed"
        raise QueryError(message, sql=sql, span=Span(start, start + 1)) from None


def _parse(text: SqlText, what: str) -> list[exp.Expr | None]:
    _refuse_loose_commas(text)
    _refuse_pipes(text)
    parser = _Parser(dialect=_DIALECT)
    try:
        if what == "expression":
            return parser.parse_into(exp.Condition, _words(text), text.sql)
        _refuse_commands(text)
        nodes = parser.parse(_words(text), text.sql)
    except ParseError as error:
        raise _syntax_error(text, error) from None
    except RecursionError:
        raise QueryError("the SQL is nested too deeply") from None
    # A comment after the last `;` comes as a node of its own.
    return [None if isinstance(node, exp.Semicolon) else node for node in nodes]


def _words(text: SqlText) -> list[Token]:
    """The tokens. ``WINDOW`` is a name except in ``WINDOW name AS``: ``GROUP BY window(...)`` calls a function.

    ``FILL`` is a clause where an expression has ended and a word follows, a name anywhere else.
    """
    words = []
    tokens = text.tokens
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        kind, ahead = token.token_type, None if after is None else after.token_type
        if kind in (_FILL, TokenType.SESSION) or (kind == TokenType.WINDOW and ahead != TokenType.VAR):
            kind = TokenType.VAR
        elif token.text.upper() == "FILL" and kind == TokenType.VAR and ahead in _FILL_WORDS:
            kind = _FILL if before is not None and before.token_type in _ENDS_EXPRESSION else kind
        if kind != token.token_type:
            token = Token(kind, token.text, token.line, token.col, token.start, token.end, token.comments)
        words.append(token)
    return words


def _select(text: SqlText, node: exp.Expr) -> exp.Select:
    if isinstance(node, exp.Select):
        return node
    if isinstance(node, exp.SetOperation):
        word = type(node).__name__.upper()
        raise text.error(
            f"`{word}` is not supported: each query has its own windows",
            node,
            hint="write the statements one after the other, with `;` between them",
        )
    raise text.error("expected a SELECT statement", text.first_word(node))


def _refuse_commands(text: SqlText) -> None:
    """Raise QueryError for a statement that does not begin as a SELECT does: sqlglot would parse it, or warn."""
    for before, token in zip((None, *text.tokens), text.tokens, strict=False):
        begins = before is None or before.token_type == TokenType.SEMICOLON
        if begins and token.token_type not in _BEGINNINGS:
            hint = did_you_mean(token.text, ["SELECT"])
            hint = "did you mean `--`, which begins a comment?" if token.text == "#" else hint
            place = Span(token.start, token.end + 1)
            raise text.error("expected a SELECT statement", place, hint=hint if hint.startswith("did") else None)


def _refuse_pipes(text: SqlText) -> None:
    """Raise QueryError for ``FROM x |> WHERE ...``: sqlglot would make sub-selects of it, or fail at some."""
    for token in text.tokens:
        if token.token_type == TokenType.PIPE_GT:
            raise text.error(
                "`|>` is not supported", Span(token.start, token.end + 1), hint="write a SELECT statement"
            )


def _refuse_loose_commas(text: SqlText) -> None:
    for token, after in zip_longest(text.tokens, text.tokens[1:]):
        ends = after is None or (after.token_type not in _QUOTED and after.text.upper() in _CLAUSE_WORDS)
        if token.token_type == TokenType.COMMA and ends:
            raise text.error("nothing comes after this comma", Span(token.start, token.end + 1))


def _syntax_error(text: SqlText, error: ParseError) -> QueryError:
    fault = error.errors[0]
    place = fault.get("highlight") or ""
    end = _position(text.sql, fault["line"] or 1, fault["col"] or 0)
    span = Span(max(0, end - len(place)), end)
    description = str(fault.get("description") or "")
    wanted = description[0].lower() + description[1:] if description.startswith("Expecting") else ""
    message = f"cannot read the SQL at `{place}`" + (f": {wanted}" if wanted else "")
    opened = text.sql.rfind("{{", 0, span.start + 1)
    in_parameter = opened >= 0 and "}}" not in text.sql[opened : span.start]
    hint = "a parameter is one name, `{{name}}`" if in_parameter else None
    at = next((place for place, token in enumerate(text.tokens) if token.start == span.start), None)
    token = None if at is None else text.tokens[at]
    before = text.tokens[at - 1] if at else None
    if place.upper() == "FILL":
        hint = "behind FILL stands NULL, ZERO or PREVIOUS, at the end of the statement and once"
    if hint is None and token is not None and token.token_type in _RESERVED:
        hint = f"`{place}` is a word of SQL; a column of that name stands in backticks"
    if before is not None and before.token_type == TokenType.NUMBER and is_unit(place):
        hint = f"a duration stands in quotes: `'{before.text} {place}'`"
    if hint is None and before is not None and before.token_type in (TokenType.ALIAS, TokenType.DCOLON):
        nearest = did_you_mean(place, SQL_TYPES, "type")
        hint = nearest if nearest.startswith("did") else None
    return text.error(message, span, hint=hint or _misspelt(token, before))


def _misspelt(token: Token | None, before: Token | None) -> str | None:
    """The word that may be meant where the grammar fails at ``token``; ``before`` was read as a name then."""
    if before is None or token is None:
        return None
    if token.token_type == TokenType.L_PAREN and before.token_type == TokenType.VAR:
        return f"is a comma missing before `{before.text}`?"
    for word in (token, before):
        near = did_you_mean(word.text.upper(), _CLAUSES)
        if word.token_type == TokenType.VAR and near.startswith("did"):
            return near.replace("`GROUP`", "`GROUP BY`")
    return None


def _position(sql: str, line: int, column: int) -> int:
    """The position of the ``column``-th character of line ``line`` (from 1), both as sqlglot counts them."""
    lines = sql.split("\n")
    return sum(len(before) + 1 for before in lines[: line - 1]) + column
