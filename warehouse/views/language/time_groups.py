"""``GROUP BY window(ts, '1 hour')``: the tumbling windows of Spark SQL, a structure of start and end for each row.

A sliding window makes several rows of one row, and a session window depends on other rows: both are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.binding import with_field
from warehouse.views.language.dialect import meaning, text
from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["with_window_columns"]

_ARGUMENTS = 2
_CLAUSES = ("expressions", "group", "having", "order", "qualify", "where")


def with_window_columns(select: exp.Select) -> exp.Select:
    """Return a query without rows that have no time, and with ``window`` written out if rows are grouped by it.

    Spark leaves out rows without a window if any part of a SELECT names a window.

    Raises
    ------
    RefusedError
        When the windows are not one tumbling window.

    """
    windows = [call for clause in _CLAUSES for call in _in_clause(select, clause)]
    if not windows:
        return select
    for call in windows:
        if len(call.expressions) != _ARGUMENTS:
            allowed = "a tumbling window, one for each row: window(column, 'length'); sliding windows make several rows of one"
            raise RefusedError(call, text(call), allowed, text(exp.Anonymous(this="window", expressions=call.expressions[:2])))
    second = next((call for call in windows if meaning(call) != meaning(windows[0])), None)
    if second is not None:
        raise RefusedError(second, f"{text(second)} beside {text(windows[0])}", "one window in a SELECT, as Spark has it")
    copy = select.copy()
    _leave_out_null_times(copy, windows[0])
    if list(_in_clause(select, "group")):
        _write_out(copy, windows[0])
    return copy


def _leave_out_null_times(select: exp.Select, window: exp.Anonymous) -> None:
    timed: exp.Expr = exp.Not(this=exp.Is(this=window.expressions[0].copy(), expression=exp.Null()))
    where = select.args.get("where")
    select.set("where", exp.Where(this=timed if where is None else exp.And(this=exp.Paren(this=where.this), expression=timed)))


def _write_out(select: exp.Select, window: exp.Anonymous) -> None:
    """Replace the column ``window`` by the call."""
    for clause in ("expressions", "having", "order", "qualify"):
        for column in [column for node in _nodes(select, clause) for column in node.find_all(exp.Column)]:
            first, *fields = [part.name for part in column.parts]
            if first.lower() == "window":
                call: exp.Expr = window.copy()
                for field in fields:
                    call = with_field(call, field)
                if isinstance(column.parent, exp.Select):
                    call = exp.Alias(this=call, alias=exp.to_identifier(fields[-1] if fields else "window"))
                column.replace(call)


def _nodes(select: exp.Select, clause: str) -> list[exp.Expr]:
    value = select.args.get(clause)
    nodes = value if isinstance(value, list) else [value]
    return [node for node in nodes if isinstance(node, exp.Expr)]


def _in_clause(select: exp.Select, clause: str) -> Iterator[exp.Anonymous]:
    for node in _nodes(select, clause):
        yield from _calls(node)


def _calls(node: exp.Expr) -> Iterator[exp.Anonymous]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Anonymous) and function_name(node) == "window":
        yield node
    for child in node.iter_expressions():
        yield from _calls(child)
