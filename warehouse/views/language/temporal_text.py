"""Calls of temporal functions in a text, replaced by plain SQL; everything else stays as it was written.

So DuckDB can run a query of a prompt, and Spark can read a view's text. Arguments are copied word for word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from warehouse.catalog.duck_sql import quoted
from warehouse.views.language.dialect import text, tokens_of
from warehouse.views.language.temporal import BOUNDS, DOTTED, FUNCTIONS, SPARK, Engine, called

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot import Token

__all__ = ["for_duckdb", "for_spark"]

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_BEFORE_ITEMS = (TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA)
_AFTER_ITEMS = (None, TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.UNION, TokenType.LIMIT, TokenType.SEMICOLON)
_CALL = re.compile(rf"\b({'|'.join(sorted(FUNCTIONS))})\s*\(", re.IGNORECASE)


def _duck_length(start: exp.Expr, end: exp.Expr) -> exp.Expr:
    micros = [exp.Anonymous(this="epoch_us", expressions=[instant]) for instant in (start, end)]
    return exp.Anonymous(this="to_microseconds", expressions=[exp.Sub(this=micros[1], expression=micros[0])])


def _duck_row(values: tuple[exp.Expr, exp.Expr]) -> exp.Expr:
    pairs = zip(BOUNDS, values, strict=True)
    fields = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in pairs]
    return exp.Anonymous(this="struct_pack", expressions=fields)


_DUCKDB = Engine("epoch_us", _duck_length, _duck_row)


def for_duckdb(sql: str) -> str:
    """Return a query or condition of DuckDB's without calls of temporal functions.

    Raises
    ------
    RefusedError
        For wrong arguments.

    Examples
    --------
    >>> for_duckdb("SELECT k FROM a, b WHERE a.k = b.k AND interval_before(a, valid(b.x, b.y + INTERVAL 1 HOUR)) -- valid(a)")
    'SELECT k FROM a, b WHERE a.k = b.k AND (a.valid_to <= b.x AND a.valid_from < a.valid_to AND b.x < (b.y + INTERVAL 1 HOUR)) -- valid(a)'

    """  # noqa: E501 - one query
    return _replaced(sql, _Reader(DuckDB().tokenize, _DUCKDB, _written_for_duckdb)) if _CALL.search(sql) else sql


def for_spark(sql: str) -> str:
    """Return a view's query as Spark can read it, without calls of temporal functions; otherwise as written.

    Raises
    ------
    RefusedError
        For wrong arguments.

    """
    return _replaced(sql, _Reader(tokens_of, SPARK, text)) if _CALL.search(sql) else sql


@dataclass(frozen=True)
class _Reader:
    """How an engine's text is read and written."""

    tokens: Callable[[str], list[Token]]
    engine: Engine
    written: Callable[[exp.Expr], str]


def _written_for_duckdb(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", normalize_functions=False)


def _replaced(sql: str, reader: _Reader) -> str:
    try:
        tokens = reader.tokens(sql)
    except SqlglotError:
        return sql  # the engine reports the fault
    parts, end, number = [], 0, 0
    listing: list[bool] = [False]
    while number + 1 < len(tokens):
        last = _end_of_call(tokens, number)
        if last is None:
            _follow(listing, tokens[number].token_type)
            number += 1
            continue
        expression = called(_call(sql, tokens, number, last, reader), reader.engine)
        operand = expression if isinstance(expression, (exp.Paren, exp.Anonymous)) else exp.Paren(this=expression)
        needs_name = reader.engine is _DUCKDB and _is_item(tokens, number, last, listing=listing[-1])
        name = f" AS {quoted(sql[tokens[number].start : tokens[last].end + 1])}" if needs_name else ""
        parts += [sql[end : tokens[number].start], reader.written(operand), name]
        end, number = tokens[last].end + 1, last + 1
    return "".join([*parts, sql[end:]])


def _follow(listing: list[bool], kind: TokenType) -> None:
    """Follow one word: ``listing`` says for each open parenthesis whether it contains items of a SELECT."""
    if kind in _OPENING:
        listing.append(False)
    elif kind in _CLOSING and len(listing) > 1:
        listing.pop()
    elif kind in (TokenType.SELECT, TokenType.FROM):
        listing[-1] = kind is TokenType.SELECT


def _is_item(tokens: Sequence[Token], first: int, last: int, *, listing: bool) -> bool:
    """Whether a call is a whole item of a SELECT, so that the user gave its column no name."""
    before = tokens[first - 1].token_type if first else None
    after = tokens[last + 1].token_type if last + 1 < len(tokens) else None
    return listing and before in _BEFORE_ITEMS and after in _AFTER_ITEMS


def _end_of_call(tokens: Sequence[Token], number: int) -> int | None:
    """Return the closing parenthesis of a temporal call that begins at a word; None if there is no such call."""
    word = tokens[number]
    is_temporal = word.text.lower() in FUNCTIONS and word.token_type is not TokenType.STRING
    qualified = number > 0 and tokens[number - 1].token_type is TokenType.DOT
    if not is_temporal or qualified or number + 1 >= len(tokens) or tokens[number + 1].token_type is not TokenType.L_PAREN:
        return None
    depth = 0
    for position in range(number + 1, len(tokens)):
        depth += (tokens[position].token_type in _OPENING) - (tokens[position].token_type in _CLOSING)
        if depth == 0:
            return position
    return None


def _call(sql: str, tokens: Sequence[Token], first: int, last: int, reader: _Reader) -> exp.Anonymous:
    arguments, depth, start = [], 0, first + 2
    for position in range(first + 2, last + 1):
        kind = tokens[position].token_type
        ends = position == last or (kind is TokenType.COMMA and depth == 0)
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if ends and position > start:
            arguments.append(_argument(sql, tokens[start:position], reader))
        if ends:
            start = position + 1
    return exp.Anonymous(this=tokens[first].text, expressions=arguments)


def _argument(sql: str, tokens: Sequence[Token], reader: _Reader) -> exp.Expr:
    """Return an argument: a temporal call, a name, or another text as it is written."""
    if _end_of_call(tokens, 0) == len(tokens) - 1:
        return _call(sql, tokens, 0, len(tokens) - 1, reader)
    argument_text = sql[tokens[0].start : tokens[-1].end + 1]
    if re.fullmatch(DOTTED, argument_text):
        return exp.Var(this=argument_text)
    return exp.Paren(this=exp.Var(this=_replaced(argument_text, reader)))
