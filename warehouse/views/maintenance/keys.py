"""Rows of some keys: joins by keys in which null is a value like others.

Where keys are known to have no null, plain equality finds the same rows: by hashing the key itself, not a pair of it and
whether it is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

__all__ = ["among", "beside", "renamed"]


def among(rows: DataFrame, keys: DataFrame | None, columns: Sequence[str], by: Sequence[str] | None = None) -> DataFrame:
    """Return the rows whose columns are one of the keys; no keys: all rows.

    ``by`` are the names of the same columns in ``keys``, where they differ.
    """
    return rows if keys is None else _matched(rows, keys, columns, by, "left_semi")


def beside(rows: DataFrame, keys: DataFrame | None, columns: Sequence[str], by: Sequence[str] | None = None) -> DataFrame:
    """Return the other rows; no keys: none."""
    return rows.where("false") if keys is None else _matched(rows, keys, columns, by, "left_anti")


def renamed(rows: DataFrame, columns: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return exactly these columns, under other names."""
    return rows.selectExpr(*[f"{quoted(column)} AS {quoted(name)}" for column, name in zip(columns, names, strict=True)])


def _matched(rows: DataFrame, keys: DataFrame, columns: Sequence[str], by: Sequence[str] | None, how: str) -> DataFrame:
    if not columns:
        return rows if how == "left_semi" else rows.where("false")
    plain = renamed(keys, by or columns, [f"_key_{number}" for number in range(len(columns))])
    signs = ["<=>" if field.nullable else "=" for field in plain.schema.fields]
    equal = " AND ".join(
        f"{quoted(column)} {sign} _key_{number}" for number, (column, sign) in enumerate(zip(columns, signs, strict=True))
    )
    return rows.join(plain, F.expr(equal), how)
