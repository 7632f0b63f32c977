"""The text of a view for Spark: calls of the warehouse's windows are replaced by their argument; nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import TokenType

from warehouse.views.language.dialect import parse_query, tokens_of
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.windows import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import Token

__all__ = ["WindowCall", "windows_in", "without_windows"]

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True)
class WindowCall:
    """The positions of a window call in a text: begin and end (exclusive) of the call and of its first argument.

    ``name`` is the function's name as it is written; ``named`` says whether an alias follows.
    """

    start: int
    end: int
    source: tuple[int, int]
    name: str
    named: bool


def windows_in(sql: str) -> Iterator[WindowCall]:
    """Yield the calls of ``time_window`` and ``row_window`` in a text, in order; calls inside another call are parts of it.

    Examples
    --------
    >>> sql = "SELECT k FROM time_window(a, INTERVAL 1 HOUR) date JOIN row_window(b, 2)"
    >>> [(sql[call.start : call.end], call.named) for call in windows_in(sql)]
    [('time_window(a, INTERVAL 1 HOUR)', True), ('row_window(b, 2)', False)]

    """
    tokens = tokens_of(sql)
    number = 0
    while number + 1 < len(tokens):
        word = tokens[number]
        opens = tokens[number + 1].token_type is TokenType.L_PAREN
        if not (opens and word.token_type in _NAMES and word.text.lower() in WINDOW_FUNCTIONS):
            number += 1
            continue
        first_end, last = _closing(tokens, number + 1)
        following = tokens[last + 1] if last + 1 < len(tokens) else None
        named = following is not None and _is_alias(sql[following.start : following.end + 1])
        source = (tokens[number + 2].start, tokens[first_end].end + 1)
        yield WindowCall(word.start, tokens[last].end + 1, source, sql[word.start : word.end + 1], named)
        number = last + 1


def _closing(tokens: Sequence[Token], start: int) -> tuple[int, int]:
    """Return the last word of the first argument, and the parenthesis that closes the call."""
    depth, comma = 0, None
    for number in range(start, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.COMMA and depth == 1 and comma is None:
            comma = number
        if depth == 0:
            return (comma or number) - 1, number
    return len(tokens) - 1, len(tokens) - 1


@cache
def _is_alias(word: str) -> bool:
    """Whether a word after an item of FROM names it: a word of the language can be a name too, or begin the next clause."""
    if word.upper() == "AS":
        return True
    try:
        item = parse_query(f"SELECT 1 FROM x {word}").args["from_"].this
    except RefusedError:
        return False
    return bool(item.alias)


def without_windows(sql: str) -> str:
    """Return a view's query over whole tables: the columns and their types are the same.

    Examples
    --------
    >>> without_windows("SELECT w.k FROM a JOIN time_window(b, INTERVAL 1 HOUR) w ON w.k = a.k")
    'SELECT w.k FROM a JOIN b w ON w.k = a.k'
    >>> without_windows("SELECT k FROM row_window((SELECT k FROM time_window(a, INTERVAL 2 HOURS)), 3, k)")
    'SELECT k FROM (SELECT k FROM a) AS row_window'

    """
    while (call := next(windows_in(sql), None)) is not None:
        source = sql[slice(*call.source)]
        alias = f" AS {call.name}" if not call.named and source.startswith("(") else ""
        sql = f"{sql[: call.start]}{source}{alias}{sql[call.end :]}"
    return sql
