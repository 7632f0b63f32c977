"""The query that verifies a view by Spark: the view's own text over the live rows. Pure.

The text is used as it was written, not as the warehouse parsed it, so that a fault of the parser is not in both. Only calls of
the warehouse's functions are replaced: ``time_window`` and ``row_window`` by names of temporary views of their rows, and temporal
functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AsOf, Changes, InternalRows, OutputWindow, TimeWindow, inputs_of
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.temporal_text import for_spark
from warehouse.views.language.window_calls import windows_in
from warehouse.views.language.windows import DeclaredWindow, read_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.views.algebra import Operator

__all__ = ["Unverifiable", "VerifyingQuery", "ViewWindow", "verifying_query"]


@dataclass(frozen=True)
class ViewWindow:
    """A window function of the warehouse over a table, as the temporary view ``name``."""

    name: str
    table: str
    window: DeclaredWindow


@dataclass(frozen=True)
class VerifyingQuery:
    """A view's text for Spark, with all names in it that may be tables, in lower case, and the windows that it reads."""

    sql: str
    tables: tuple[str, ...]
    windows: tuple[ViewWindow, ...] = ()


@dataclass(frozen=True)
class Unverifiable:
    """Why a view's answer is not a function of the live rows."""

    reason: str


def verifying_query(sql: str, operators: Sequence[Operator]) -> VerifyingQuery | Unverifiable:
    """Return the query that Spark runs for a view of this text, or why Spark cannot run it.

    ``operators`` are the operators of all nodes of the view.

    >>> verifying_query("SELECT k FROM time_window(a, INTERVAL 1 HOUR)", []).sql
    'SELECT k FROM `stream_wh_window_1` AS `a`'
    """
    for operator in operators:
        for inner_operator in _every(operator):
            reason = _history(inner_operator)
            if reason:
                return Unverifiable(reason)
    sql = for_spark(sql)
    tree = parse_query(sql)
    with_names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    text, end = [], 0
    windows: list[ViewWindow] = []
    for call in windows_in(sql):
        window = _window(sql[call.start : call.end])
        if not isinstance(window.source, exp.Column) or window.source.name.lower() in with_names:
            return Unverifiable("it has a window over a query of its own, of whose rows only the warehouse knows the times")
        view_window = ViewWindow(f"stream_wh_window_{len(windows) + 1}", window.source.name.lower(), window)
        windows.append(view_window)
        text += [sql[end : call.start], quoted(view_window.name), "" if call.named else f" AS {quoted(window.source.name)}"]
        end = call.end
    # A WITH query may be called as the table that it reads.
    names = {table.name.lower() for table in tree.find_all(exp.Table)} | {view_window.table for view_window in windows}
    return VerifyingQuery("".join([*text, sql[end:]]), tuple(sorted(names - {""})), tuple(windows))


def _every(operator: Operator) -> Iterator[Operator]:
    yield operator
    for input_operator in inputs_of(operator):
        yield from _every(input_operator)


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


def _window(call: str) -> DeclaredWindow:
    source = parse_query(f"SELECT 1 FROM {call}").args["from_"].this
    if not isinstance(source.this, exp.Anonymous):
        raise TypeError(f"{call} is no call of a window")
    return read_window(source.this)
