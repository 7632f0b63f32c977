"""Rows by keys in which null is an ordinary value: semi-join, anti-join, lookup keys, grouping by stored values.

If keys have no null, plain equality finds the same rows: Spark then hashes the key itself, and not a pair of the key and whether
it is null. When Spark groups, it treats -0.0 as 0.0 and writes 0.0 for both. So rows are grouped by the values and by the signs
of zeros, and a group has the values of one of its rows.

A pipeline keeps no state, so each of its rows comes from one row of a table. If a column of the pipeline is a column of the
table, rows with other values than the lookup keys need not be read. This only saves time: the caller compares again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AsOf, Filter, InternalRows, Project, Scan, TimeWindow, UnionAll
from warehouse.views.language.dialect import column_of
from warehouse.views.maintenance.driver_rows import DriverRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.driver_rows import Frame

__all__ = [
    "anti_joined",
    "bag_difference",
    "bag_intersection",
    "grouped",
    "grouped_exactly",
    "lookup_keys",
    "numbered",
    "origins",
    "paired",
    "renamed",
    "semi_joined",
]

_SCALAR = ("float", "double")


def semi_joined(rows: Frame, keys: Frame | None, columns: Sequence[str], by: Sequence[str] | None = None) -> Frame:
    """Return the rows whose columns have one of the keys; no keys: all rows.

    ``by`` are the names of the same columns in ``keys``, if they differ.
    """
    return rows if keys is None else _matched(rows, keys, columns, by, "left_semi")


def anti_joined(rows: Frame, keys: Frame | None, columns: Sequence[str], by: Sequence[str] | None = None) -> Frame:
    """Return the rows that have none of the keys; with ``keys`` None, no rows."""
    return rows.where("false") if keys is None else _matched(rows, keys, columns, by, "left_anti")


def renamed(rows: Frame, columns: Sequence[str], names: Sequence[str]) -> Frame:
    """Return exactly these columns, under other names."""
    return rows.selectExpr(*[f"{quoted(column)} AS {quoted(name)}" for column, name in zip(columns, names, strict=True)])


def _matched(rows: Frame, keys: Frame, columns: Sequence[str], by: Sequence[str] | None, how: str) -> Frame:
    if not columns:
        return rows if how == "left_semi" else rows.where("false")
    plain = renamed(keys, by or columns, [f"_key_{number}" for number in range(len(columns))])
    nullable = [True] * len(columns) if isinstance(plain, DriverRows) else [field.nullable for field in plain.schema.fields]
    signs = ["<=>" if may_be_null else "=" for may_be_null in nullable]
    equal = " AND ".join(
        f"{quoted(column)} {sign} _key_{number}" for number, (column, sign) in enumerate(zip(columns, signs, strict=True))
    )
    if isinstance(rows, DriverRows):
        return rows.matched(plain, columns, equal, how)
    return paired(rows, plain, equal, how)


def paired(rows: Frame, others: Frame, condition: str, how: str) -> Frame:
    """Return pairs of rows for which a condition holds; ``how`` is Spark's name of the kind of join."""
    if isinstance(rows, DriverRows):
        return rows.join(others, condition, how)
    return rows.join(others, F.expr(condition), how)


def numbered(rows: Frame, partition: Sequence[str], order: Sequence[str], name: str) -> Frame:
    """Return the rows, numbered from 1 in an order (terms of Spark SQL) within each partition."""
    if isinstance(rows, DriverRows):
        return rows.numbered(partition, order, name)
    by = f"PARTITION BY {', '.join(map(quoted, partition))} " if partition else ""
    columns = map(quoted, rows.columns)
    return rows.selectExpr(*columns, f"row_number() OVER ({by}ORDER BY {', '.join(order)}) AS {quoted(name)}")


def grouped(rows: Frame, columns: Sequence[str], aggregates: Sequence[tuple[str, str]]) -> Frame:
    """Return aggregates (Spark SQL, name) of each combination of values; no columns: of all rows."""
    if isinstance(rows, DriverRows):
        return rows.grouped(columns, aggregates)
    values = [F.expr(f"{sql} AS {quoted(name)}") for sql, name in aggregates]
    return rows.groupBy(*[F.col(quoted(name)) for name in columns]).agg(*values)


def grouped_exactly(rows: DataFrame, columns: Sequence[str], aggregates: Sequence[Column]) -> DataFrame:
    """Return aggregates for each combination of values; 0.0 and -0.0 differ, also inside structures and arrays.

    Parameters
    ----------
    rows
        The rows.
    columns
        Names of columns.
    aggregates
        The aggregates of each group, with names.

    """
    kinds = dict(rows.dtypes)
    floating = [name for name in columns if any(kind in kinds[name] for kind in _SCALAR)]
    by = [F.col(quoted(name)) for name in columns]
    if not floating:
        return rows.groupBy(*by).agg(*aggregates)
    signs = [_sign(name, kinds[name]).alias(f"_sign_{number}") for number, name in enumerate(floating)]
    values = F.struct(*[F.col(quoted(name)).alias(f"f{number}") for number, name in enumerate(floating)])
    grouped = rows.groupBy(*by, *signs).agg(*aggregates, F.first(values).alias("_floating"))
    restored = {name: F.col(f"_floating.f{number}").alias(name) for number, name in enumerate(floating)}
    aggregated = [F.col(quoted(name)) for name in grouped.columns[len(columns) + len(signs) : -1]]
    return grouped.select(*[restored.get(name, F.col(quoted(name))) for name in columns], *aggregated)


def bag_difference(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the rows of ``left`` without the rows of ``right``, with repetitions (EXCEPT ALL); 0.0 and -0.0 differ."""
    return _as_often(left, right, "_left - _right")


def bag_intersection(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the rows that both have, with repetitions (INTERSECT ALL); 0.0 and -0.0 differ."""
    return _as_often(left, right, "least(_left, _right)")


def _as_often(left: DataFrame, right: DataFrame, times: str) -> DataFrame:
    names = left.columns
    rows = left.selectExpr("*", "1L AS _left", "0L AS _right").unionByName(right.selectExpr("*", "0L AS _left", "1L AS _right"))
    counted = grouped_exactly(rows, names, [F.sum("_left").alias("_left"), F.sum("_right").alias("_right")])
    repeated = counted.where(f"{times} > 0").selectExpr("*", f"explode(array_repeat(0, CAST({times} AS int))) AS _copy")
    return repeated.select(*[F.col(quoted(name)) for name in names])


def _sign(name: str, kind: str) -> Column:
    """Return a term that distinguishes values that Spark groups together: the sign of a zero, or a nested value as text."""
    column = quoted(name)
    if kind in _SCALAR:
        return F.expr(f"CASE WHEN {column} = 0 THEN CAST({column} AS string) = '-0.0' END")
    return F.expr(f"CAST({column} AS string)")


def lookup_keys(operator: Operator, columns: Sequence[str], keys: pa.Table) -> dict[str, pa.Table]:
    """Return lookup keys for the tables of a pipeline: only rows of a table with them can lead to rows with one of ``keys``.

    Parameters
    ----------
    operator
        The pipeline.
    columns, keys
        Columns of the pipeline, and their values in the same order.

    Returns
    -------
    dict
        The lookup keys by table, with the table's names of the columns; tables without columns of the keys are missing.

    """
    by_table: dict[str, Mapping[str, str] | None] = {}
    for table, key_columns in origins(operator, dict(zip((name.lower() for name in columns), keys.column_names, strict=True))):
        by_table[table] = key_columns if by_table.get(table, key_columns) == key_columns else None  # read twice, by other columns
    return {
        table: keys.select(list(key_columns.values())).rename_columns(list(key_columns))
        for table, key_columns in by_table.items()
        if key_columns
    }


def origins(operator: Operator, wanted: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each table that a pipeline scans, and its columns that are wanted, each with its other name.

    Parameters
    ----------
    operator
        The pipeline.
    wanted
        Columns of the pipeline (in lower case), each with its other name.

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
            for branch in operator.inputs:
                yield from origins(branch, wanted)
        case TimeWindow() | InternalRows() | Filter():
            yield from origins(operator.input, wanted)
        case AsOf():
            added = {column.name.lower() for column in operator.columns}
            yield from origins(operator.input, {name: key for name, key in wanted.items() if name not in added})
        case Project():
            picked = {column.name.lower(): column_of(column.sql) for column in operator.columns}
            yield from origins(
                operator.input, {source.lower(): key for name, key in wanted.items() if (source := picked.get(name))}
            )
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a pipeline")
