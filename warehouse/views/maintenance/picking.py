"""Pipelines over few rows in the driver: what they read is given as Arrow tables, and what is left of them is Arrow again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.views.algebra import AsOf, Filter, InternalRows, Project, Scan, TimeWindow, UnionAll, inputs_of, scanned
from warehouse.views.language.dialect import column_of, names_in
from warehouse.views.language.driver_sql import LeftToSparkError
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.feeds import feed, looked_up, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["earlier", "evaluated", "evaluated_above", "keeps_values", "lasting", "later", "narrowed", "picks_only"]


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


def evaluated(
    operator: Operator, tables: Mapping[str, NodeTable], part: Callable[[NodeTable], pa.Table | None]
) -> pa.Table | None:
    """Return a pipeline's rows over one relation of each table that it scans; None when Spark is to make them.

    Parameters
    ----------
    operator
        The pipeline.
    tables
        The tables that it scans, and the relations in which it looks up versions.
    part
        Returns the rows of a table in the driver, for example ``NodeTable.came``; None when Spark is to read them.

    """
    read = {name: part(tables[name]) for name in set(scanned(operator))}
    read_versions = {name: tables[name].known_versions() for name in set(looked_up(operator))}
    if any(rows is None for rows in (*read.values(), *read_versions.values())):
        return None
    try:
        return feed(operator, _driver_rows(read), _driver_rows(read_versions)).toArrow()
    except LeftToSparkError:
        return None


def _driver_rows(tables: Mapping[str, pa.Table | None]) -> dict[str, DriverRows]:
    return {name: DriverRows.of(rows) for name, rows in tables.items() if rows is not None}


def evaluated_above(operator: Operator, below: Operator, rows: pa.Table, where: str | None) -> pa.Table | None:
    """Return what filters and projections down to ``below`` make of its rows, of which a condition holds; None: Spark is to."""
    try:
        given = DriverRows.of(rows)
        return over(operator, below, given if where is None else given.where(where)).toArrow()
    except LeftToSparkError:
        return None


def narrowed(operator: Operator, wanted: Iterable[str], tables: dict[str, set[str]]) -> Operator:
    """Return a pipeline with the wanted columns at least, which need not compute others.

    Parameters
    ----------
    operator
        The pipeline.
    wanted
        Names of columns of it, in lower case.
    tables
        Gets the names, in lower case, of the columns of the tables that these are made of.

    Examples
    --------
    >>> from warehouse.views.algebra import Named
    >>> read = {}
    >>> pipeline = Filter(Project(Scan("a"), (Named("k", "`tail`"), Named("h", "`m` / 2"), Named("o", "`p`"))), "`h` > 1")
    >>> [column.name for column in narrowed(pipeline, ["k"], read).input.columns], {"a": sorted(read["a"])}
    (['k', 'h'], {'a': ['m', 'tail']})
    """
    names = set(wanted)
    match operator:
        case Scan():
            tables.setdefault(operator.table, set()).update(names)
            return operator
        case UnionAll():
            return UnionAll(tuple(narrowed(each, names, tables) for each in operator.inputs))
        case TimeWindow():
            return TimeWindow(narrowed(operator.input, names, tables), operator.length, operator.internal)
        case InternalRows():
            return InternalRows(narrowed(operator.input, names, tables))
        case Filter():
            below = narrowed(operator.input, {*names, *map(str.lower, names_in(operator.condition))}, tables)
            return Filter(below, operator.condition)
        case Project():
            kept = tuple(column for column in operator.columns if column.name.lower() in names)
            read = {name.lower() for column in kept for name in names_in(column.sql)}
            return Project(narrowed(operator.input, read, tables), kept)
        case AsOf():
            names |= {column.lower() for column, _ in operator.on}
            return AsOf(narrowed(operator.input, names, tables), operator.relation, operator.on, operator.columns, operator.outer)
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a pipeline")


def keeps_values(operator: Operator, below: Operator) -> bool:
    """Whether what is above ``below`` picks and filters only: nothing makes values, which might be larger."""
    while operator is not below:
        if not isinstance(operator, Filter) and not (isinstance(operator, Project) and _picks(operator)):
            return False
        operator = operator.input
    return True


def _picks(operator: Project) -> bool:
    return all(column_of(column.sql) for column in operator.columns)


def earlier(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the earlier one of each two times, for which Arrow has no function of its own."""
    return pc.min_element_wise(one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)


def later(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the later one of each two times."""
    return pc.max_element_wise(one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)


def lasting(rows: pa.Table, column: str, instant: int) -> pa.Table:
    """Return the rows of which a time is after an instant in microseconds."""
    return rows.filter(pc.greater(rows[column].cast(pa.int64()), instant))
