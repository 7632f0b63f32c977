"""Options of ``init --from``: values of the user that replace guesses about a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.spelling import nearest
from warehouse.catalog.types import parse_type
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.sniffed_file import SniffedColumn

__all__ = ["NEVER", "InitOptions", "column_named", "column_or_expression"]

NEVER = "never"
"""The value of ``expires`` for rows that never expire."""


@dataclass(frozen=True)
class InitOptions:
    """The options of ``init --from``; missing ones are guessed.

    Attributes
    ----------
    key
        Columns of the search key, by their names in the file or in the table.
    arrival, expires
        A column, or an expression in Spark SQL over the columns of the table; ``expires`` may be ``never``.
    interval
        The update interval, in microseconds.
    columns
        The columns that are declared; others are ignored.

    """

    key: tuple[str, ...] = ()
    arrival: str | None = None
    expires: str | None = None
    interval: int | None = None
    columns: tuple[str, ...] = ()


def column_named(name: str, columns: Sequence[SniffedColumn], option: str) -> SniffedColumn:
    """Return the column that has a name in the file or in the table, ignoring case.

    Raises
    ------
    UsageError
        When there is no such column (the message has the nearest name), or it cannot be declared.

    """
    column = _found(name, columns)
    if column is None:
        names = [name_or_source for column in columns for name_or_source in (column.name, column.source or column.name)]
        meant = nearest(name, names)
        hint = f' Did you mean "{meant}"?' if meant else ""
        raise UsageError(f'{option}: there is no column "{name}".{hint} There are {", ".join(dict.fromkeys(names))}')
    if column.type is None:
        raise UsageError(f'{option}: the column "{column.name}" cannot be declared: {column.refused}')
    return column


def column_or_expression(text: str, columns: Sequence[SniffedColumn], option: str, *, allows_ts: bool) -> SniffedColumn | str:
    """Return the column that a text names; if it names none, return the text itself if it is a valid expression.

    Raises
    ------
    UsageError
        When the text is neither.

    """
    column = _found(text.strip("`"), columns)
    if column is not None:
        return column_named(text.strip("`"), columns, option)
    types = {column.name: parse_type(column.type) for column in columns if column.type}
    for fault in expression_faults(text, types, allows_ts=allows_ts):
        hint = f' Did you mean "{fault.suggestion}"?' if fault.suggestion else ""
        raise UsageError(f"{option}: found {fault.found}; allowed: {fault.allowed}.{hint}")
    return text


def _found(name: str, columns: Sequence[SniffedColumn]) -> SniffedColumn | None:
    for normalised in (str, str.lower):
        for column in columns:
            if normalised(name) in (normalised(column.name), normalised(column.source or column.name)):
                return column
    return None
