"""The SQL of a selection by the search key: its condition, with bound values, and the order of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from warehouse.serving.keys import KeyColumn, to_parameter
from warehouse.serving.pruning import All, KeyRange, Keys, NullKey, Selection
from warehouse.serving.statement import Statement
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["probe_order", "where_key"]


def probe_order(columns: Sequence[KeyColumn]) -> str:
    """Return the order of a probe: key with nulls first, ``_exp``, ``_ts``."""
    keys = [f"{quoted(column.name)} NULLS FIRST" for column in columns]
    return ", ".join((*keys, "_exp", "_ts"))


def where_key(selection: Selection, columns: Sequence[KeyColumn]) -> Statement:
    """Return the condition of a selection, with its values; empty when every row is selected."""
    match selection:
        case All():
            return Statement("")
        case NullKey():
            return Statement("(" + " OR ".join(f"{quoted(column.name)} IS NULL" for column in columns) + ")")
        case KeyRange(low, high):
            return _range(low, high, columns)
        case Keys(keys):
            return _keys(keys, columns)
        case _:
            assert_never(selection)


def _keys(keys: Sequence[tuple[Any, ...]], columns: Sequence[KeyColumn]) -> Statement:
    """Group keys by the parts that are not null: one key is a comparison, many keys are one semi-join with bound lists."""
    groups: dict[tuple[bool, ...], list[tuple[Any, ...]]] = {}
    for key in keys:
        groups.setdefault(tuple(part is not None for part in key), []).append(key)
    conditions = [_group(present, members, columns) for present, members in groups.items()]
    if not conditions:
        return Statement("false")
    text = " OR ".join(condition.sql for condition in conditions)
    parameters = tuple(value for condition in conditions for value in condition.parameters)
    return Statement(f"({text})" if len(conditions) > 1 else text, parameters)


def _group(present: tuple[bool, ...], keys: Sequence[tuple[Any, ...]], columns: Sequence[KeyColumn]) -> Statement:
    present_columns = [(index, columns[index]) for index, has_value in enumerate(present) if has_value]
    terms = [f"{quoted(columns[index].name)} IS NULL" for index, has_value in enumerate(present) if not has_value]
    parameters: list[Any] = []
    if len(keys) == 1 or not present_columns:
        terms += [f"{quoted(column.name)} = {_bound(column)}" for _, column in present_columns]
        parameters = [to_parameter(keys[0][index], column) for index, column in present_columns]
    else:
        names = ", ".join(quoted(column.name) for _, column in present_columns)
        lists = ", ".join(f"unnest({_bound(column, '[]')})" for _, column in present_columns)
        terms.append(f"({names}) IN (SELECT {lists})" if len(present_columns) > 1 else f"{names} IN (SELECT {lists})")
        parameters = [[to_parameter(key[index], column) for key in keys] for index, column in present_columns]
    return Statement("(" + " AND ".join(terms) + ")", tuple(parameters))


def _bound(column: KeyColumn, suffix: str = "") -> str:
    through = f"VARCHAR{suffix}::" if column.type.startswith("DECIMAL") else ""
    return f"?::{through}{column.type}{suffix}"


def _range(low: tuple[Any, ...] | None, high: tuple[Any, ...] | None, columns: Sequence[KeyColumn]) -> Statement:
    terms: list[str] = [f"{quoted(columns[0].name)} IS NOT NULL"]
    parameters: list[Any] = []
    for bound, sign, null_is_below in ((low, ">", False), (high, "<", True)):
        if bound is not None:
            text, values = _beyond(bound, columns, sign, null_is_below=null_is_below)
            terms.append(text)
            parameters += values
    return Statement(" AND ".join(terms), tuple(parameters))


def _beyond(
    bound: Sequence[Any], columns: Sequence[KeyColumn], sign: str, *, null_is_below: bool
) -> tuple[str, list[Any]]:
    """Compare with a bound part by part, nulls first below the first part; `>` includes the bound, `<` does not.

    The first part is also compared alone, because DuckDB can check this comparison against statistics.
    """
    first = f"{quoted(columns[0].name)} {sign}= {_bound(columns[0])}"
    if len(bound) == 1:
        return (first if sign == ">" else first.replace("<=", "<", 1)), [to_parameter(bound[0], columns[0])]
    alternatives: list[str] = []
    values = [to_parameter(bound[0], columns[0])]
    for depth in range(len(bound)):
        equal = [f"{quoted(column.name)} = {_bound(column)}" for column in columns[:depth]]
        column, last = columns[depth], depth == len(bound) - 1
        comparison = f"{quoted(column.name)} {sign}{'=' if last and sign == '>' else ''} {_bound(column)}"
        if null_is_below and depth:
            comparison = f"({comparison} OR {quoted(column.name)} IS NULL)"
        alternatives.append(" AND ".join((*equal, comparison)))
        values += [to_parameter(part, key_column) for part, key_column in zip(bound[: depth + 1], columns, strict=False)]
    return f"{first} AND (" + " OR ".join(alternatives) + ")", values
