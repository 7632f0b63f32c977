"""Checks the expressions of a declaration with Spark, on no rows, before anything is read or recorded.

The catalog has found all faults that can be found without Spark. Only Spark knows some types; a wrong type is a fault of the
declaration, and the message names its key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from warehouse.catalog.identifiers import quoted
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import widens
from warehouse.errors import ConfigurationError, Problem
from warehouse.ingest.calculated_columns import calculations, result_type
from warehouse.ingest.columns import inputs_of
from warehouse.ingest.try_eval import try_eval
from warehouse.storage.arrow_types import local_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column, Stream

__all__ = ["check_condition", "check_expressions", "needs_no_check"]

_TIMESTAMP_EXPRESSION = "an expression that gives a timestamp, e.g. with CAST(... AS TIMESTAMP) or to_timestamp(...)"
_checked: set[tuple[object, ...]] = set()


def needs_no_check(stream: Stream) -> bool:
    """Whether all of a stream's expressions are columns, whose types the catalog has checked."""
    timestamps = {column.name.lower() for column in stream.columns if column.type == "timestamp"}
    plain = all(sql is None or sql.lower() in timestamps for sql in (stream.arrival, stream.expires))
    return plain and stream.changes is None and all(column.expr is None for column in stream.columns)


def check_expressions(session: SparkSession, stream: Stream) -> None:
    """Check ``arrival``, ``expires``, a relation's ``op`` and each column's ``expr``.

    Raises
    ------
    ConfigurationError
        With every expression that Spark refuses, or that gives another type than the expected one.

    """
    identity = (stream.name, stream.columns, stream.sources, stream.arrival, stream.expires, stream.changes)
    if identity in _checked:
        return
    section = f"{'streams' if stream.changes is None else 'relations'}.{stream.name}"
    problems = [
        Problem("warehouse.toml", f"{section}.{key}", fault.found, fault.allowed)
        for key, fault in (*_column_faults(session, stream), *_time_faults(session, stream))
    ]
    if problems:
        raise ConfigurationError(problems)
    _checked.add(identity)


def check_condition(
    session: SparkSession, name: str, columns: Sequence[Column | ColumnRecord], key: str, sql: str
) -> None:
    """Check a condition over the columns of a stream or view; ``key`` is its key in the configuration.

    Raises
    ------
    ConfigurationError
        When Spark refuses the condition, or its result is no boolean.

    """
    identity = (name, tuple(columns), key, sql)
    if identity in _checked:
        return
    rows = local_frame(session, [], ", ".join(f"{quoted(column.name)} {column.type}" for column in columns))
    try:
        result = rows.select(try_eval(session, sql).alias("_tried_0")).schema["_tried_0"].dataType.simpleString()
    except AnalysisException as error:
        refusal = f'"{sql}", which Spark refuses: {_first_line(error)}'
        raise ConfigurationError([Problem("warehouse.toml", key, refusal, f"a condition over columns of {name}")]) from error
    result = result.removeprefix("struct<v:").removesuffix(">")
    if result not in ("boolean", "void"):
        raise ConfigurationError([Problem("warehouse.toml", key, f'"{sql}", which gives {result}', "a condition, true or false")])
    _checked.add(identity)


def _column_faults(session: SparkSession, stream: Stream) -> Iterator[tuple[str, FaultError]]:
    inputs = inputs_of(stream)
    no_rows = local_frame(session, [], ", ".join(f"{quoted(input_.label)} {input_.type}" for input_ in inputs))
    plain_columns = tuple(column for column in stream.columns if column.expr is None)
    for column in stream.columns:
        if column.expr is None:
            continue
        try:
            result = result_type(calculations(no_rows, replace(stream, columns=(*plain_columns, column))), 0)
        except AnalysisException as error:
            allowed = f"an expression of source columns that gives {column.type}"
            refusal = f'expr = "{column.expr}", which Spark refuses: {_first_line(error)}'
            yield f"columns.{column.name}", FaultError(refusal, allowed)
            continue
        if not _is_accepted_type(result, column):
            allowed = f"an expression that gives {column.type}, e.g. CAST({column.expr} AS {column.type}), or the type {result}"
            yield f"columns.{column.name}", FaultError(f'expr = "{column.expr}", which gives {result}', allowed)


def _is_accepted_type(result: str, column: Column) -> bool:
    try:
        return result in (column.type, "void") or widens(result, column.type)
    except FaultError:  # a type that no table has
        return False


def _time_faults(session: SparkSession, stream: Stream) -> Iterator[tuple[str, FaultError]]:
    rows = local_frame(session, [], ", ".join(f"{quoted(column.name)} {column.type}" for column in stream.columns))
    own_ts = any(column.name.lower() == "ts" for column in stream.columns)
    columns = "" if own_ts else ", CAST(NULL AS timestamp) AS ts"
    clock = "arrival" if stream.changes is None else "changed_at"
    expressions = [(clock, stream.arrival, "timestamp", False), ("expires", stream.expires, "timestamp", True)]
    if stream.changes is not None:
        expressions.append(("op", stream.changes.op, "string", False))
    for key, sql, expected, sees_ts in expressions:
        if sql is None:
            continue
        scope = rows.selectExpr("*", columns.removeprefix(", ")) if sees_ts and columns else rows
        try:
            result = scope.select(try_eval(session, sql).alias("_tried_0")).schema["_tried_0"].dataType.simpleString()
        except AnalysisException as error:
            yield (
                key,
                FaultError(
                    f'"{sql}", which Spark refuses: {_first_line(error)}',
                    _TIMESTAMP_EXPRESSION if expected == "timestamp" else _OPERATION_EXPRESSION,
                ),
            )
            continue
        result = result.removeprefix("struct<v:").removesuffix(">")
        if result not in (expected, "void") and expected == "timestamp":
            yield key, FaultError(f'"{sql}", which gives {result}', _TIMESTAMP_EXPRESSION)


_OPERATION_EXPRESSION = "an expression that gives 'upsert' or 'delete'"


def _first_line(error: AnalysisException) -> str:
    line = str(error).strip().splitlines()[0]
    return line.partition(" SQLSTATE")[0].rstrip(" ;")
