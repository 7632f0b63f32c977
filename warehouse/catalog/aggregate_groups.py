"""``group_by`` of an aggregate: columns of its stream, and expressions of them that are named with ``AS``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.expression_types import type_of
from warehouse.catalog.spelling import FaultError, nearest
from warehouse.catalog.types import Array, AtomicType, Decimal, SqlType, Struct, canonical, unusable_name
from warehouse.layout.columns import is_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["GroupColumn", "groups_of"]

_EXAMPLE = '"year(day) AS year"'


@dataclass(frozen=True)
class GroupColumn:
    """A group's column in answers: a column of the stream, or the value of ``expression`` (Spark SQL)."""

    name: str
    type: SqlType
    expression: str | None = None


def groups_of(group_by: Sequence[str], types: Mapping[str, SqlType | None], source: str) -> Iterator[GroupColumn | FaultError]:
    """Yield the column of each group in ``group_by``, or its fault.

    Parameters
    ----------
    group_by
        Names of columns, and expressions with their names.
    types
        The columns of the stream with their types; None for a type with a fault.
    source
        The stream, for messages.

    """
    seen: set[str] = set()
    for text in group_by:
        declared = next((name for name in types if name.lower() == text.lower()), None)
        group = _named_expression(text, types, source) if declared is None else _column(declared, types[declared])
        if isinstance(group, GroupColumn):
            if group.name.lower() in seen:
                yield FaultError(f'"{group.name}" twice', "each column once")
                continue
            seen.add(group.name.lower())
        yield group


def _column(name: str, column_type: SqlType | None) -> GroupColumn | FaultError:
    if column_type is None or isinstance(column_type, Array | Struct):
        found = "a type that is at fault or that only Spark can determine"
        allowed = f"columns without parts; in a view's SQL, CAST(... AS ...) AS {name} says a type"
        if column_type is not None:
            found, allowed = f"type {canonical(column_type)}", "columns without parts"
        return FaultError(f'the column "{name}" of {found}', allowed)
    return GroupColumn(name, column_type)


def _named_expression(text: str, types: Mapping[str, SqlType | None], source: str) -> GroupColumn | FaultError:
    """Return the group of an expression ``EXPRESSION AS NAME``."""
    columns = f"a column of {source} ({', '.join(types)})"
    parts = _expression_and_name(text)
    if parts is None:
        remedy = f"{columns}, or an expression of them with a name, e.g. {_EXAMPLE}"
        return FaultError(f'"{text}"', remedy, nearest(text, types))
    expression, name = parts
    if any(name.lower() == column.lower() for column in types):
        return FaultError(f'the name "{name}" of an expression, which a column of {source} has', "another name")
    if is_reserved(name):
        return FaultError(f'the reserved name "{name}"', "names other than sub_index, exp_block and _*")
    if reason := unusable_name(name):
        return FaultError(f'{reason} in the name "{name}"', "letters, digits and underscores")
    column_type = type_of(expression, types)
    for fault in expression_faults(expression, types, allows_ts=False, result_type=column_type or AtomicType("string")):
        if column_type is not None or "which gives" not in fault.found:
            return fault
    if not isinstance(column_type, AtomicType | Decimal):
        remedy = f"an expression whose type is written, e.g. CAST({expression} AS int) AS {name}"
        return FaultError(f'"{expression}", whose type is not known', remedy)
    return GroupColumn(name, column_type, expression)


def _expression_and_name(text: str) -> tuple[str, str] | None:
    """Return the text of an expression, and its name (None if it has no name).

    >>> _expression_and_name("year(day) AS y"), _expression_and_name("day")
    (('year(day)', 'y'), None)
    """
    import sqlglot  # noqa: PLC0415 - it takes time to import, and most warehouses have no aggregate
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - same

    try:
        tokens = sqlglot.tokenize(text, read="spark")
    except SqlglotError:
        return None
    fewest_tokens = 3
    if len(tokens) < fewest_tokens or tokens[-2].text.lower() != "as" or tokens[-1].token_type.name == "STRING":
        return None
    return text[: tokens[-2].start].strip(), tokens[-1].text
