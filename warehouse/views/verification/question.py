"""What Spark is asked to verify a view: the view's own text over the live rows. Pure.

The text is taken as it was written, not as it was read: a fault of ours in reading it must not be in the question too. Only calls
of ours, ``time_window`` and ``row_window``, are replaced, each by the name of a temporary view of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AsOf, Changes, InternalRows, OutputWindow, TimeWindow, inputs_of
from warehouse.views.language.dialect import parse_query, tokens_of
from warehouse.views.language.windows import WINDOW_FUNCTIONS, Window, read_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import Token

    from warehouse.views.algebra import Operator

__all__ = ["Asked", "Question", "Unverifiable", "question_of"]


@dataclass(frozen=True)
class Asked:
    """A window of ours over a table, as the temporary view ``name``."""

    name: str
    table: str
    window: Window


@dataclass(frozen=True)
class Question:
    """A view's text for Spark, with all names in it that may be tables, in lower case, and the windows that it reads."""

    sql: str
    tables: tuple[str, ...]
    windows: tuple[Asked, ...] = ()


@dataclass(frozen=True)
class Unverifiable:
    """Why a view's answer is not a function of the rows that are live."""

    reason: str


def question_of(sql: str, operators: Sequence[Operator]) -> Question | Unverifiable:
    """Return what Spark is asked for a view of that text, or why its answer cannot be asked for.

    ``operators`` are those of all the view's nodes.

    >>> question_of("SELECT k FROM time_window(a, INTERVAL 1 HOUR)", []).sql
    'SELECT k FROM `stream_wh_window_1` AS `a`'
    """
    for operator in operators:
        for each in _every(operator):
            reason = _history(each)
            if reason:
                return Unverifiable(reason)
    tree = parse_query(sql)
    own = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    tokens = tokens_of(sql)
    text, end = [], 0
    windows: list[Asked] = []
    for start, stop in _calls(tokens):
        begins, ends = tokens[start].start, tokens[stop].end + 1
        window = _window(sql[begins:ends])
        if not isinstance(window.source, exp.Column) or window.source.name.lower() in own:
            return Unverifiable("it has a window over a query of its own, of whose rows only the warehouse knows the times")
        asked = Asked(f"stream_wh_window_{len(windows) + 1}", window.source.name.lower(), window)
        windows.append(asked)
        text += [sql[end:begins], quoted(asked.name)]
        following = tokens[stop + 1].token_type if stop + 1 < len(tokens) else None
        if following not in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER):
            text.append(f" AS {quoted(window.source.name)}")
        end = ends
    # A WITH query may be called as the table that it reads.
    names = {table.name.lower() for table in tree.find_all(exp.Table)} | {asked.table for asked in windows}
    return Question("".join([*text, sql[end:]]), tuple(sorted(names - {""})), tuple(windows))


def _every(operator: Operator) -> Iterator[Operator]:
    yield operator
    for each in inputs_of(operator):
        yield from _every(each)


def _history(operator: Operator) -> str | None:
    match operator:
        case AsOf():
            return f"its rows keep the version of {operator.relation} that they saw when they came"
        case OutputWindow():
            return "its output window keeps results of rows that are gone"
        case InternalRows() | Changes() | TimeWindow(internal=True):
            return "its internal window decides which rows meet; what came of them stays"
        case _:
            return None


def _calls(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last token of each call of ours in FROM; one inside another is a part of it."""
    number = 0
    while number + 1 < len(tokens):
        token = tokens[number]
        opens = tokens[number + 1].token_type == TokenType.L_PAREN
        before = tokens[number - 1].token_type if number else None
        in_from = before in (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
        if opens and in_from and token.text.lower() in WINDOW_FUNCTIONS:
            last = _closing(tokens, number + 1)
            yield number, last
            number = last
        number += 1


def _closing(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for number in range(start, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return number
    return len(tokens) - 1


def _window(call: str) -> Window:
    source = parse_query(f"SELECT 1 FROM {call}").args["from_"].this
    if not isinstance(source.this, exp.Anonymous):
        raise TypeError(f"{call} is no call of a window")
    return read_window(source.this)
