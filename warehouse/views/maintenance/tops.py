"""Top-k and count-based windows: the first rows of each partition that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Order, Top

__all__ = ["first_rows", "newest_rows", "terms_of"]


def first_rows(top: Top, rows: DataFrame) -> DataFrame:
    """Return the first rows of each partition; equal ones by arrival, newest first, then by all columns."""
    return _ranked(rows, top.partition, terms_of(top.order), top.limit)


def newest_rows(rows: DataFrame, limit: int) -> DataFrame:
    """Return the rows generated last (update-patterns sheet, 4.2)."""
    return _ranked(rows, (), [], limit)


def terms_of(order: Sequence[Order]) -> list[str]:
    """Return the terms of an order as Spark SQL."""
    return [
        f"{quoted(term.column)} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"
        for term in order
    ]


def _ranked(rows: DataFrame, partition: Sequence[str], terms: Sequence[str], limit: int) -> DataFrame:
    columns = [quoted(name) for name in rows.columns]
    own = [quoted(name) for name in rows.columns if not name.startswith("_")]
    order = ", ".join([*terms, "_ts DESC", "_exp DESC", *own])
    by = f"PARTITION BY {', '.join(map(quoted, partition))} " if partition else ""
    ranked = rows.selectExpr(*columns, f"row_number() OVER ({by}ORDER BY {order}) AS _rank")
    return ranked.where(f"_rank <= {limit}").selectExpr(*columns)
