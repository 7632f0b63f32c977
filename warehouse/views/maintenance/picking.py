"""Pipelines that only pick, over rows at hand: what Spark makes of them as frames, made of Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.time import NEVER
from warehouse.views.algebra import Filter, Project, Scan, TimeWindow, UnionAll, inputs_of
from warehouse.views.language.dialect import column_of
from warehouse.views.maintenance.feeds import CARRIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator

__all__ = ["earlier", "keeps_values", "lasting", "later", "picked", "picked_above", "picks_only"]


def picks_only(operator: Operator) -> bool:
    """Whether a pipeline only picks and renames columns and ends rows, which can be done with any row."""
    match operator:
        case Scan():
            return True
        case UnionAll() | TimeWindow():
            return all(map(picks_only, inputs_of(operator)))
        case Project():
            return _picks(operator) and picks_only(operator.input)
        case _:
            return False


def picked(operator: Operator, tables: Mapping[str, pa.Table | None]) -> pa.Table | None:
    """Return the rows of a pipeline that only picks, as :func:`~warehouse.views.maintenance.feeds.feed` does.

    They have those of its columns that the tables' rows have. None: Spark is to read a table, or to make columns alike.
    """
    match operator:
        case Scan():
            rows = tables[operator.table]
            return None if rows is None else rows.append_column("_out", rows["_exp"])
        case UnionAll():
            parts = [picked(each, tables) for each in operator.inputs]
            first = parts[0]
            if first is None or any(part is None or not _same(part, first) for part in parts):
                return None
            return pa.concat_tables([part.select(first.column_names) for part in parts if part is not None])
        case TimeWindow():
            rows = picked(operator.input, tables)
            return None if rows is None else _ended(rows, operator)
        case Project():
            rows = picked(operator.input, tables)
            return None if rows is None else _projected(rows, operator)
        case _:
            raise TypeError(f"{type(operator).__name__} does more than pick")


def picked_above(operator: Operator, below: Operator, rows: pa.Table) -> pa.Table | None:
    """Return what the projections down to ``below``, whose rows are given, pick of them; none when they do more than pick."""
    if operator is below:
        return rows
    if not isinstance(operator, Project) or not _picks(operator):
        return None
    inner = picked_above(operator.input, below, rows)
    own = None if inner is None else _projected(inner, operator)
    return own if own is not None and own.num_columns == len(operator.columns) + len(CARRIED) else None


def keeps_values(operator: Operator, below: Operator) -> bool:
    """Whether what is above ``below`` picks and filters only: nothing makes values, which might be larger."""
    while operator is not below:
        if not isinstance(operator, Filter) and not (isinstance(operator, Project) and _picks(operator)):
            return False
        operator = operator.input
    return True


def _picks(operator: Project) -> bool:
    return all(column_of(column.sql) for column in operator.columns)


def _projected(rows: pa.Table, operator: Project) -> pa.Table:
    places = {name.lower(): rows[name] for name in rows.column_names}
    asked = {column.name: (column_of(column.sql) or "").lower() for column in operator.columns}
    own = {name: places[place] for name, place in asked.items() if place in places}
    return pa.table({**own, **{name: rows[name] for name in CARRIED}})


def _same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same columns, which Spark would otherwise make alike."""
    return {field.name: field.type for field in one.schema} == {field.name: field.type for field in other.schema}


def _ended(rows: pa.Table, window: TimeWindow) -> pa.Table:
    kind = rows.schema.field("_exp").type
    end = pc.add(rows["_ts"].cast(pa.int64()), window.length).cast(kind)
    ends = {
        "_exp": earlier(rows["_exp"], end),
        "_out": pa.repeat(pa.scalar(NEVER, kind), rows.num_rows) if window.internal else earlier(rows["_out"], end),
    }
    return pa.table({name: ends.get(name, rows[name]) for name in rows.column_names})


def earlier(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the earlier one of each two times, for which Arrow has no function of its own."""
    return pc.min_element_wise(one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)


def later(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the later one of each two times."""
    return pc.max_element_wise(one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)


def lasting(rows: pa.Table, column: str, instant: int) -> pa.Table:
    """Return the rows of which a time is after an instant in microseconds."""
    return rows.filter(pc.greater(rows[column].cast(pa.int64()), instant))
