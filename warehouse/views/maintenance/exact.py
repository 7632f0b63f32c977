"""Grouping by values as they are stored: Spark takes -0.0 for 0.0 when it groups, and writes 0.0 for both.

A group is one of the values and of the signs of their zeros; the values themselves are those of one of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

__all__ = ["grouped_exactly"]

_SCALAR = ("float", "double")


def grouped_exactly(rows: DataFrame, columns: Sequence[str], aggregates: Sequence[Column]) -> DataFrame:
    """Return aggregates for each combination of values; 0.0 and -0.0, also inside structures and arrays, are two.

    Parameters
    ----------
    rows
        The rows.
    columns
        Names of columns.
    aggregates
        What is computed of each group, with names.

    """
    kinds = dict(rows.dtypes)
    floating = [name for name in columns if any(kind in kinds[name] for kind in _SCALAR)]
    by = [F.col(quoted(name)) for name in columns]
    if not floating:
        return rows.groupBy(*by).agg(*aggregates)
    signs = [_sign(name, kinds[name]).alias(f"_sign_{number}") for number, name in enumerate(floating)]
    values = F.struct(*[F.col(quoted(name)).alias(f"f{number}") for number, name in enumerate(floating)])
    grouped = rows.groupBy(*by, *signs).agg(*aggregates, F.first(values).alias("_floating"))
    own = {name: F.col(f"_floating.f{number}").alias(name) for number, name in enumerate(floating)}
    others = [F.col(quoted(name)) for name in grouped.columns[len(columns) + len(signs) : -1]]
    return grouped.select(*[own.get(name, F.col(quoted(name))) for name in columns], *others)


def _sign(name: str, kind: str) -> Column:
    """What tells values apart that Spark groups together: whether a zero is negative, or all of a nested value as text."""
    column = quoted(name)
    if kind in _SCALAR:
        return F.expr(f"CASE WHEN {column} = 0 THEN CAST({column} AS string) = '-0.0' END")
    return F.expr(f"CAST({column} AS string)")
