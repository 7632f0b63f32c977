"""Calculates columns with an ``expr`` from the fields of a record, before its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.columns import inputs_of
from warehouse.ingest.try_eval import try_eval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Column, Stream

__all__ = ["calculations", "result_type", "with_calculated"]

_CARRIED = "_carried_\u2028"
"""The column that carries the columns that an expression must not see; no column name of the user has this character."""


def with_calculated(rows: DataFrame, stream: Stream, carried: Sequence[str]) -> DataFrame:
    """Return the rows with the declared columns, then the ``carried`` columns.

    If an expression fails for a record, the record gets the fault ``expr_failed``, unless it has a fault already.
    """
    columns = [quoted(column.name) for column in stream.columns]
    if all(column.expr is None for column in stream.columns):
        return rows
    tried = calculations(rows, stream)
    fault, message = F.col("_fault"), F.col("_fault_message")
    values = {}
    for number, column in _calculated(stream):
        result = F.col(f"_tried_{number}")
        failed = F.col("_fault").isNull() & result.isNull()
        fault = F.coalesce(fault, F.when(failed, F.lit("expr_failed")))
        text = F.lit(f'column "{column.name}": its expr ({column.expr}) fails on this record')
        message = F.coalesce(message, F.when(failed, text))
        values[column.name] = result.getField("v").cast(column.type)
    frame = tried.select(
        *[values.get(column.name, F.col(name)).alias(column.name) for column, name in zip(stream.columns, columns, strict=True)],
        *[name for name in carried if name not in ("_fault", "_fault_message")],
        fault.alias("_fault"),
        message.alias("_fault_message"),
    )
    return frame.select(*columns, *carried)


def calculations(rows: DataFrame, stream: Stream) -> DataFrame:
    """Return the rows with the struct ``v`` of each expression's value, ``_tried_0`` and so on; null where it fails."""
    session = rows.sparkSession
    seen = [F.col(quoted(input_.label)).alias(input_.source) for input_ in inputs_of(stream) if input_.in_expressions]
    scope = rows.select(F.struct(*[F.col(quoted(name)) for name in rows.columns]).alias(_CARRIED), *seen)
    tried = [try_eval(session, column.expr or "").alias(f"_tried_{number}") for number, column in _calculated(stream)]
    return scope.select(f"{quoted(_CARRIED)}.*", *tried)


def result_type(rows: DataFrame, number: int) -> str:
    """Return the type of the expression with a number."""
    kind = rows.schema[f"_tried_{number}"].dataType.simpleString()
    return kind.removeprefix("struct<v:").removesuffix(">")


def _calculated(stream: Stream) -> Iterator[tuple[int, Column]]:
    return enumerate(column for column in stream.columns if column.expr is not None)
