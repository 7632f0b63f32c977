"""Describes operators in words: a name and its arguments, without the plan's quoting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.time import format_duration
from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Filter,
    Group,
    InternalRows,
    Join,
    OuterJoin,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.columns import columns_of
from warehouse.views.language.dialect import as_written, column_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warehouse.views.algebra import Named, Operator
    from warehouse.views.labels import Label

__all__ = ["DELTA", "heading"]

_COMPUTED = re.compile(r"`([^`]*#[^`]*)`(?<!#`)")
DELTA = "delta*"
"""The source's name of the structure in which DISTINCT keeps a spare row for each result."""
_VARIANTS = {
    "MON": "list of seen values",
    "WK": f"{DELTA}: two rows a value at most",
    "WKS": f"{DELTA}: two rows a value at most",
    "STR": "counting",
}


def heading(
    operator: Operator, whole: Operator, tables: Mapping[str, tuple[str, ...]], state: Label, variant: str | None = None
) -> tuple[str, str, str | None]:
    """Return an operator's name, its arguments, and for DISTINCT the variant of its state.

    Parameters
    ----------
    operator
        The operator.
    whole
        The same operator over streams, relations and views alone, to find the expressions of computed columns.
    tables
        The columns of these tables.
    state
        The state label of its rows.
    variant
        ``counting`` for a group that counts the values of DISTINCT.

    """
    if variant is not None and isinstance(operator, Group):
        return "distinct", ", ".join(operator.keys), variant
    if isinstance(operator, (Distinct, BagDifference)):
        distinct_variant = _VARIANTS[state.kind] if isinstance(operator, Distinct) else None
        return "distinct" if distinct_variant else "bag difference", ", ".join(columns_of(whole, tables)), distinct_variant
    name, text = _stateless(operator) or _stateful(operator)
    return name, as_written(_COMPUTED.sub(lambda match: _origin(match[1], whole) or match[0], text)), None


def _origin(name: str, operator: Operator) -> str | None:
    """Return the expression of a computed column."""
    if isinstance(operator, Project):
        sql = next((column.sql for column in operator.columns if column.name == name), None)
        column_name = column_of(sql) if sql else None
        return _origin(column_name, operator.input) if column_name else sql
    if isinstance(operator, Group):
        call = next((aggregate.sql for aggregate in operator.aggregates if aggregate.name == name), None)
        if call is not None:
            return call
    return next((origin for input_operator in inputs_of(operator) if (origin := _origin(name, input_operator))), None)


def _stateless(operator: Operator) -> tuple[str, str] | None:
    match operator:
        case Scan():
            return "scan", operator.table
        case TimeWindow():
            return "time window", format_duration(operator.length) + (", internal" if operator.internal else "")
        case InternalRows():
            return "internal", "bounds memory only"
        case Filter():
            return "filter", operator.condition
        case Project():
            return "project", ", ".join(_column(column) for column in operator.columns)
        case AsOf():
            return "as-of lookup", f"{operator.relation} on {_pairs(operator.on)}" + (", outer" if operator.outer else "")
        case UnionAll():
            return "union all", ""
        case _:
            return None


def _stateful(operator: Operator) -> tuple[str, str]:
    match operator:
        case Join():
            equal = " and ".join(f"`{equality.left_column}` = `{equality.right_column}`" for equality in operator.equal)
            return "join", f"on {equal}" + (f", where {operator.where}" if operator.where else "")
        case Group():
            calls = ", ".join(aggregate.sql for aggregate in operator.aggregates)
            return "group", f"by {', '.join(map(quoted, operator.keys))}: {calls}" if operator.keys else f"all: {calls}"
        case AntiJoin():
            return "anti-join", f"on {_pairs(operator.on)}"
        case OuterJoin():
            where = f", where {operator.where}" if operator.where else ""
            return f"{operator.kind} outer join", f"on {_pairs(operator.on)}{where}"
        case Top():
            return _top(operator)
        case Changes():
            return "changes", "appended"
        case OutputWindow():
            size = format_duration(operator.length) if operator.length is not None else f"{operator.rows} rows"
            return "output window", size
        case _:
            raise TypeError(f"{type(operator).__name__} has its own words")


def _top(operator: Top) -> tuple[str, str]:
    of_each = f" of each {', '.join(map(quoted, operator.partition))}" if operator.partition else ""
    if not operator.order:
        return "row window", f"newest {operator.limit}{of_each}"
    terms = ", ".join(f"`{term.column}`{' desc' if term.descending else ''}" for term in operator.order)
    return "top", f"{operator.limit}{of_each} by {terms}"


def _pairs(on: Iterable[tuple[str, str]]) -> str:
    return " and ".join(f"`{left}` = `{right}`" for left, right in on)


def _column(column: Named) -> str:
    column_name = column_of(column.sql)
    return column.name if column_name == column.name else f"{column.name} = {column.sql}"
