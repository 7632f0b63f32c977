"""Rows of a pipeline that have one of some keys: which columns of the stored tables the keys are values of.

A pipeline keeps no state, so that a row of it comes from one row of a table; where a column of the pipeline is a column of the
table, rows with other values there need not be read. What is left out is a matter of speed alone: whoever asks compares
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from warehouse.views.algebra import AsOf, Filter, InternalRows, Project, Scan, TimeWindow, UnionAll
from warehouse.views.language.dialect import column_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Operator

__all__ = ["Found", "Scanned", "distinct_keys", "narrowed", "origins", "sought"]


class Scanned(Protocol):
    """What gives a table's rows; where ``keys`` are given, rows that have other values in these columns may be missing."""

    def __call__(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return rows of a table."""


def narrowed(
    operator: Operator, scan: Scanned, columns: Sequence[str], keys: pa.Table | None
) -> Callable[[str], DataFrame]:
    """Return a scan of a pipeline's tables that may leave out what makes no row with one of the keys.

    Parameters
    ----------
    operator, scan
        The pipeline, and what gives its tables' rows.
    columns, keys
        Columns of the pipeline, and values of them in the same order; none: any.

    """
    if keys is None:
        return scan
    keys_of = _keys_of(operator, columns, keys)
    return lambda table: scan(table, keys_of(table))


class Found(Protocol):
    """What looks keys up in a table; ``columns`` (in lower case) are those that are wanted, none: all."""

    def __call__(self, table: str, keys: pa.Table, columns: AbstractSet[str] | None = None) -> pa.Table | None:
        """Return the rows; none when they are not to be had here."""


def sought(
    operator: Operator, found: Found, columns: Sequence[str], keys: pa.Table, wanted: AbstractSet[str] | None
) -> Callable[[str], pa.Table | None]:
    """Return what looks the keys up in each of a pipeline's tables; for one that they are no values of it gives none.

    ``wanted`` are the columns of the pipeline, in lower case, that are asked for beside; none: all.
    """
    keys_of = _keys_of(operator, columns, keys)
    names: dict[str, set[str]] | None = None
    if wanted is not None:
        names = {}
        for table, held in origins(operator, {name.lower(): name for name in (*wanted, *columns)}):
            names.setdefault(table, set()).update(held)

    def sought_in(table: str) -> pa.Table | None:
        values = keys_of(table)
        return None if values is None else found(table, values, None if names is None else names.get(table, set()))

    return sought_in


def _keys_of(operator: Operator, columns: Sequence[str], keys: pa.Table) -> Callable[[str], pa.Table | None]:
    """Return what gives the values that a table's columns must have, under their names there."""
    places: dict[str, Mapping[str, str] | None] = {}
    for table, held in origins(operator, dict(zip((name.lower() for name in columns), keys.column_names, strict=True))):
        places[table] = held if places.get(table, held) == held else None  # read twice, by other columns

    def keys_of(table: str) -> pa.Table | None:
        held = places.get(table)
        return keys.select(list(held.values())).rename_columns(list(held)) if held else None

    return keys_of


def origins(operator: Operator, wanted: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each table that a pipeline scans, and which of its columns are the wanted ones.

    Parameters
    ----------
    operator
        The pipeline.
    wanted
        What columns of the pipeline (in lower case) are called elsewhere.

    Examples
    --------
    >>> from warehouse.views.algebra import Named
    >>> renamed = Project(Scan("flights"), (Named("k", "`tail`"), Named("half", "`hour` / 2")))
    >>> list(origins(renamed, {"k": "key", "half": "h"}))
    [('flights', {'tail': 'key'})]
    """
    match operator:
        case Scan():
            yield operator.table, wanted
        case UnionAll():
            for each in operator.inputs:
                yield from origins(each, wanted)
        case TimeWindow() | InternalRows() | Filter():
            yield from origins(operator.input, wanted)
        case AsOf():
            added = {column.name.lower() for column in operator.columns}
            yield from origins(operator.input, {name: key for name, key in wanted.items() if name not in added})
        case Project():
            picked = {column.name.lower(): column_of(column.sql) for column in operator.columns}
            yield from origins(
                operator.input, {place.lower(): key for name, key in wanted.items() if (place := picked.get(name))}
            )
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a pipeline")


def distinct_keys(rows: pa.Table, columns: Sequence[str], *, nulls: bool) -> pa.Table:
    """Return the distinct values of columns that can be looked up, with or without nulls."""
    own = [f"key_{place}" for place in range(len(columns))]  # a column may be asked for twice
    values = pa.table(dict(zip(own, (rows[name] for name in columns), strict=True))).group_by(own).aggregate([]).select(own)
    return values if nulls else values.drop_null()
