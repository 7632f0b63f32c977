"""Spark computes the states of a synopsis from rows; :mod:`warehouse.steps.local_states` computes them from few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.aggregates.synopses import AFTER, BATCH, DELTA, FAILED, RANK, ROWS, VALUE, WIDE
from warehouse.catalog.identifiers import quoted
from warehouse.ingest.try_eval import try_eval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.aggregates.synopses import ColumnState, Synopsis

__all__ = ["states_of"]

_HALF = 32
"""Bits of half a `bigint`."""


def states_of(rows: DataFrame, synopsis: Synopsis, batch: int) -> DataFrame:
    """Return a row for each slot and group, and for each value if values are counted; lists are of ``batch``.

    If ``where`` or the expression of a group fails for a row, the row counts as failed in its slot and group, and in no state.
    """
    groups = [*synopsis.slots, *(quoted(name) for name, _ in synopsis.group_by)]
    rows, failed = _grouped(rows, synopsis)
    if synopsis.where is not None:
        tried = rows.withColumn("_tried", try_eval(rows.sparkSession, synopsis.where))
        rows, failed = tried.where("_tried IS NULL OR _tried.v"), f"{failed} OR _tried IS NULL"
    if synopsis.counted is not None:
        column, kind = synopsis.counted
        if synopsis.listed is not None:
            named = rows.withColumn(VALUE, F.expr(f"CAST({quoted(column)} AS {kind})"))
            sums = [f"count_if(NOT ({failed})) AS {ROWS}", f"count_if({failed}) AS {FAILED}"]
            counts = named.groupBy(*groups, VALUE).agg(*(F.expr(sql) for sql in sums))
            return _lists(counts, synopsis, groups, batch)
        counted = rows.where(f"NOT ({failed}) AND {quoted(column)} IS NOT NULL")
        named = counted.withColumn(VALUE, F.expr(f"CAST({quoted(column)} AS {kind})"))
        return named.groupBy(*groups, VALUE).agg(F.expr(f"count(*) AS {ROWS}"))
    sound = f"FILTER (WHERE NOT ({failed}))"
    kinds = dict(rows.dtypes)
    exact = [_state(state, sound, kinds.get(state.column, "")) for state in synopsis.states]
    states = [
        F.expr(f"CAST({sql} AS {state.type})").alias(state.name) for sql, state in zip(exact, synopsis.states, strict=True)
    ]
    return rows.groupBy(*groups).agg(
        F.expr(f"count(*) {sound} AS {ROWS}"), F.expr(f"count_if({failed}) AS {FAILED}"), *states
    )


def _grouped(rows: DataFrame, synopsis: Synopsis) -> tuple[DataFrame, str]:
    """Return rows with the computed groups, and the condition that one failed: the group of such a row is null."""
    kinds = dict(synopsis.group_by)
    evaluated = [f"_group_{number}" for number in range(len(synopsis.computed))]
    for name, (group, sql) in zip(evaluated, synopsis.computed, strict=True):
        rows = rows.withColumn(name, try_eval(rows.sparkSession, f"CAST(({sql}) AS {kinds[group]})"))
    for name, (group, _) in zip(evaluated, synopsis.computed, strict=True):
        rows = rows.withColumn(group, F.expr(f"{name}.v"))
    return rows, " OR ".join(["false", *(f"{name} IS NULL" for name in evaluated)])


def _lists(counts: DataFrame, synopsis: Synopsis, groups: Sequence[str], batch: int) -> DataFrame:
    """Return the lists of a batch: the most frequent items by rank, and a row of rank 0 for all of the batch."""
    k, by = synopsis.listed or 0, ", ".join(groups)
    rank = f"row_number() OVER (PARTITION BY {by} ORDER BY {ROWS} DESC, {VALUE} ASC NULLS LAST)"
    ranked = counts.withColumn(RANK, F.expr(f"CAST({rank} AS bigint)"))
    kind = "" if synopsis.counted is None else synopsis.counted[1]
    names = [quoted(name) for name, _ in synopsis.columns]
    totals = ranked.groupBy(*groups).agg(
        F.expr(f"sum({ROWS}) AS {ROWS}"),
        F.expr(f"sum({FAILED}) AS {FAILED}"),
        F.expr(f"coalesce(max(CASE WHEN {RANK} = {k} THEN {ROWS} END), 0) AS {DELTA}"),
        F.expr(f"coalesce(max(CASE WHEN {RANK} = {k} + 1 THEN {ROWS} END), 0) AS {AFTER}"),
    )
    totals = totals.selectExpr("*", f"CAST({batch} AS bigint) AS {BATCH}", f"0L AS {RANK}", f"CAST(NULL AS {kind}) AS {VALUE}")
    empty = f"CAST(NULL AS bigint) AS {DELTA}", f"CAST(NULL AS bigint) AS {AFTER}", f"CAST({batch} AS bigint) AS {BATCH}"
    listed = ranked.where(f"{RANK} <= {k} AND {ROWS} > 0").withColumn(FAILED, F.lit(0).cast("bigint"))
    items = listed.selectExpr("*", *empty)
    return totals.select(*names).unionByName(items.select(*names))


def _state(state: ColumnState, sound: str, kind: str) -> str:
    """Return the SQL of a state of a column of a type.

    Sums of `bigint` never overflow: the upper and the lower halves of the values are added up apart, as integers. Another sum
    that overflows is null, and so is each answer that it is part of.
    """
    column = quoted(state.column)
    match state.function:
        case "count":
            return f"count({column}) {sound}"
        case "sum" if state.type == WIDE and kind == "bigint":
            upper, lower = f"try_sum(shiftright({column}, {_HALF})) {sound}", f"try_sum({column} & {(1 << _HALF) - 1}L) {sound}"
            return f"(CAST({upper} AS {WIDE}) * {1 << _HALF}L + {lower})"
        case "sum":
            return f"try_sum({column}) {sound}"
        case "min" | "max":
            return f"{state.function}({column}) {sound}"
        case "mean":
            return f"avg(CAST({column} AS double)) {sound}"
        case "m2":
            return f"(var_pop(CAST({column} AS double)) {sound} * count({column}) {sound})"
        case "hll":
            return f"hll_sketch_agg(concat('.', CAST({column} AS string)), {state.size}) {sound}"  # it leaves empty texts out
        case "kll":
            return f"kll_sketch_agg_double(CAST({column} AS double), {state.size}) {sound}"
