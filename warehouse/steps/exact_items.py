"""Counts frequent items in the stored rows; lists give the candidates (frequent-items sheet, section 11).

Every item above the largest count of an unlisted item is a candidate (G6), so a complete answer becomes exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.aggregates.synopses import ARRIVED, PARTS, UNTIL
from warehouse.catalog.duck_sql import quoted
from warehouse.catalog.identifiers import quoted as spark_quoted
from warehouse.ingest.try_eval import try_eval
from warehouse.steps.merging import FIRSTS
from warehouse.storage.duckdb_sql import in_memory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from warehouse.aggregates.definition import AggregateDefinition, FrequentItems

__all__ = ["exact_items"]


def exact_items(definition: AggregateDefinition, candidates: pa.Table, due: pa.Table, rows: DataFrame) -> pa.Table:
    """Return the answers with their items and exact counts.

    Parameters
    ----------
    definition
        The aggregate's definition; it has ``frequent``.
    candidates
        Answers from lists, with the last slot ``_end`` and the rows ``_total`` of each window.
    due
        The windows: ``_text``, ``_first`` and ``_end``; for a join also the first slots of its inputs.
    rows
        All rows that can count: the columns of the source, the slots of arrival and of expiration, and the slots of a join's
        parts.
    """
    frequent = definition.frequent
    if frequent is None or not candidates.num_rows:
        return candidates
    groups = [name for name, _ in definition.group_by]
    items = candidates.select([*groups, "window_length", "_end", "item"]).rename_columns(
        [*(f"_g{number}" for number in range(len(groups))), "_text", "_last", "_item"]
    )
    session = rows.sparkSession
    windows = session.createDataFrame(due.select(["_text", "_end", "_first", *(FIRSTS if definition.parts else ())]))
    listed = session.createDataFrame(items).join(windows.withColumnRenamed("_end", "_last"), ["_text", "_last"])
    for name, sql in definition.computed:
        kind = dict(definition.group_by)[name]
        tried = rows.withColumn("_group", try_eval(session, f"CAST(({sql}) AS {kind})"))
        rows = tried.where("_group IS NOT NULL").withColumn(name, F.expr("_group.v"))  # a failed one counts in no group
    counted_rows = rows if definition.where is None else rows.where(try_eval(session, definition.where).getField("v"))
    conditions = [f"{spark_quoted(name)} <=> _g{number}" for number, name in enumerate(groups)]
    conditions += [f"{spark_quoted(frequent.column)} <=> _item", f"{ARRIVED} BETWEEN _first AND _last"]
    conditions += [f"{UNTIL} > _last"] if definition.over == "live" else []
    conditions += [f"{name} >= {first}" for name, first in zip(PARTS, FIRSTS, strict=True)] if definition.parts else []
    by = [*(f"_g{number}" for number in range(len(groups))), "_text", "_last", "_item"]
    counts = (
        counted_rows.join(F.broadcast(listed), F.expr(" AND ".join(conditions)))
        .groupBy(*by)
        .agg(F.expr("count(*) AS _count"))
        .toArrow()
    )
    equal = [f"c.{quoted(name)} IS NOT DISTINCT FROM n._g{number}" for number, name in enumerate(groups)]
    equal += ["c.window_length = n._text", "c._end = n._last", "c.item IS NOT DISTINCT FROM n._item"]
    part = ", ".join(["window_length", "_end", *(quoted(name) for name in groups)])
    with in_memory(()) as connection:
        connection.register("candidates", candidates)
        connection.register("counts", counts)
        joined = f"SELECT c.*, n._count FROM candidates AS c JOIN counts AS n ON {' AND '.join(equal)}"
        belongs, certain = _belongs(frequent, part)
        replaced = f"REPLACE (_count AS at_least, _count AS at_most, {certain} AS certain)"
        query = f"SELECT * {replaced} FROM (SELECT *, {belongs} AS _in FROM ({joined})) WHERE _in"
        return connection.sql(f"SELECT * EXCLUDE (_count, _in) FROM ({query})").to_arrow_table()


def _belongs(frequent: FrequentItems, part: str) -> tuple[str, str]:
    """The SQL conditions that a counted item belongs to an answer, and that it certainly does."""
    if frequent.top is not None:
        return f"rank() OVER (PARTITION BY {part} ORDER BY _count DESC) <= {frequent.top}", "complete"
    share = Fraction(repr(frequent.above or 0.0))
    return f"_count * {share.denominator}::HUGEINT > _total * {share.numerator}::HUGEINT", "true"
