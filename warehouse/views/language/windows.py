"""``time_window(s, INTERVAL ...)`` and ``row_window(s, n [, column])`` in FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.spelling import nearest
from warehouse.views.algebra import (
    AntiJoin,
    BagDifference,
    Changes,
    Distinct,
    Group,
    OuterJoin,
    Scan,
    Top,
    inputs_of,
)
from warehouse.views.labels import STR
from warehouse.views.language.dialect import text
from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.intervals import microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator
    from warehouse.views.labels import Label

__all__ = ["WINDOW_FUNCTIONS", "DeclaredWindow", "check_output_window", "read_window"]


WINDOW_FUNCTIONS = ("time_window", "row_window")
_TIME = "time_window(table, INTERVAL 1 HOUR), with internal => true for a window that only bounds memory"
_ROWS = "row_window(table, 1000), or row_window(table, 10, column) for the newest rows of each value"
_FEWEST_ARGUMENTS = 2
_MOST_ARGUMENTS = {"time_window": 2, "row_window": 3}


@dataclass(frozen=True)
class DeclaredWindow:
    """A window over ``source``: of a length in microseconds, or of a number of rows (of each value of a column)."""

    source: exp.Expr
    length: int | None = None
    rows: int | None = None
    partition: exp.Column | None = None
    internal: bool = False


def read_window(call: exp.Anonymous) -> DeclaredWindow:
    """Return the window that a table function in FROM declares.

    Raises
    ------
    RefusedError
        When its arguments do not describe a window.

    """
    name = function_name(call) or ""
    usage = _TIME if name == "time_window" else _ROWS
    named_arguments = [argument for argument in call.expressions if isinstance(argument, exp.Kwarg)]
    positional = [argument for argument in call.expressions if not isinstance(argument, exp.Kwarg)]
    if not _FEWEST_ARGUMENTS <= len(positional) <= _MOST_ARGUMENTS[name]:
        raise RefusedError(call, f"{name} with {len(positional)} arguments", usage)
    internal = _internal(named_arguments)
    source = positional[0]
    if not isinstance(source, (exp.Column, exp.Subquery)) or (isinstance(source, exp.Column) and source.table):
        raise RefusedError(call, f"{text(source)} as the input of {name}", "the name of a stream, a view or a WITH query")
    if name == "time_window":
        return DeclaredWindow(source, length=_length(positional[1]), internal=internal)
    partition = positional[2] if len(positional) == _MOST_ARGUMENTS[name] else None
    if partition is not None and not isinstance(partition, exp.Column):
        raise RefusedError(partition, f"{text(partition)} as the third argument of row_window", "a column of its input")
    return DeclaredWindow(source, rows=_rows(positional[1]), partition=partition, internal=internal)


def _internal(named_arguments: list[exp.Kwarg]) -> bool:
    internal = False
    for argument in named_arguments:
        key = argument.this.name
        if key.lower() != "internal":
            raise RefusedError(argument, f'the argument "{key}"', "internal => true", nearest(key, ["internal"]))
        if not isinstance(argument.expression, exp.Boolean):
            raise RefusedError(argument, f"internal => {text(argument.expression)}", "internal => true or false")
        internal = bool(argument.expression.this)
    return internal


def _length(node: exp.Expr) -> int:
    length = microseconds(node)
    if length is None:
        allowed = "a constant INTERVAL of weeks, days, hours, minutes and seconds, such as INTERVAL 1 HOUR"
        raise RefusedError(node, f"the window length {text(node)}", allowed)
    if length <= 0:
        raise RefusedError(node, f"the window length {text(node)}", "an interval longer than zero")
    return length


def _rows(node: exp.Expr) -> int:
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit() or int(node.name) < 1:
        raise RefusedError(node, f"the window size {text(node)}", "a whole number of rows from 1")
    return int(node.name)


# --- which queries can have an output window: queries whose results stay (update-patterns sheet, 4.2) ---
# It keeps the newest results, by time or by number, so the windows below are internal. Over a duplicate
# elimination or a negation the answer would show duplicates or forbidden rows; an external aggregate has one current
# value only.

_WORDS: tuple[tuple[type[Operator], str], ...] = (
    (Distinct, "a duplicate elimination (DISTINCT, UNION, INTERSECT, EXISTS, IN)"),
    (AntiJoin, "a negation"),
    (BagDifference, "a negation"),
    (OuterJoin, "an outer join, which contains a negation"),
    (Top, "rows that others push out (LIMIT, QUALIFY, row_window)"),
    (Group, "an aggregate over external windows, which has one current value"),
)


def check_output_window(query: exp.Query, plan: Operator, labels: Mapping[str, Label]) -> None:
    """Refuse an output window over a plan whose results can leave before their own end.

    Raises
    ------
    RefusedError
        With the reason.

    """
    obstacle = _obstacle(plan, labels)
    if obstacle is None:
        return
    allowed = "an output window over a selection, a join or an aggregate over internal windows"
    raise RefusedError(query, f"output_window over {obstacle}", allowed, text(query))


def _obstacle(plan: Operator, labels: Mapping[str, Label]) -> str | None:
    if isinstance(plan, Changes):
        return None
    if isinstance(plan, Scan):
        return f"{plan.table}, whose rows can leave before their own end" if labels[plan.table] == STR else None
    word = next((word for kind, word in _WORDS if isinstance(plan, kind)), None)
    return word or next((obstacle for input_operator in inputs_of(plan) if (obstacle := _obstacle(input_operator, labels))), None)
