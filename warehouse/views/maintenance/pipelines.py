"""The inputs of a node's operators: stateless pipelines over stored tables, as Spark's frames or as few rows in the driver.

One function, :func:`rows_of`, defines a pipeline. :func:`relation` and :func:`live` give it Spark's frames; :func:`evaluated`
gives it rows in the driver and returns an Arrow table.

The rows have the columns of the pipeline and three carried ones: ``_ts`` (gen), ``_exp`` (when the row leaves the state) and
``_out`` (when its results leave the answer; later than ``_exp`` only under internal windows). Changes also carry ``_weight``: +1
for an inserted row, -1 for a removed row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import TIMES
from warehouse.time import NEVER
from warehouse.views.algebra import AsOf, Filter, InternalRows, Operator, Project, Scan, TimeWindow, UnionAll, inputs_of, scanned
from warehouse.views.language.dialect import column_of, names_in
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.inputs import NodeTable, user_columns
from warehouse.views.maintenance.keys import grouped_exactly, paired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Join
    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.input_facts import Move

__all__ = [
    "CARRIED",
    "LOADED",
    "PLACE",
    "UNIT",
    "carried_by",
    "changes",
    "ending_after",
    "evaluated",
    "evaluated_above",
    "keeps_values",
    "live",
    "looked_up",
    "most_arrived",
    "named_above",
    "narrowed",
    "net_changes",
    "over",
    "picks_only",
    "pipeline",
    "reads_row_windows",
    "relation",
    "rows_of",
    "window_lengths",
]

CARRIED = (*TIMES, "_out")
LOADED, PLACE, UNIT = "_loaded", "_place", "_unit"
"""Under a budget: the load slot of a row; the place of a pair in its unit, and the unit."""
_WEIGHT = "_weight"


def relation(
    operator: Operator, tables: Mapping[str, NodeTable], part: Callable[[NodeTable], DataFrame]
) -> DataFrame:
    """Return a pipeline's rows over one relation of each table that it scans, for example ``NodeTable.arrived``."""
    return rows_of(operator, {name: part(tables[name]) for name in set(scanned(operator))}, _versions(operator, tables))


def live(
    operator: Operator,
    tables: Mapping[str, NodeTable],
    keys: Mapping[str, pa.Table] | None = None,
    *,
    earlier: bool = False,
) -> DataFrame:
    """Return a pipeline's rows that are live at the window time, or with ``earlier`` that were live at the last epoch.

    ``keys`` are lookup keys of some of its tables: rows of these tables with other values may be missing.
    """
    wanted = keys or {}
    rows = {
        name: tables[name].live_before(wanted.get(name)) if earlier else tables[name].live_now(wanted.get(name))
        for name in set(scanned(operator))
    }
    return rows_of(operator, rows, _versions(operator, tables))


def _versions(operator: Operator, tables: Mapping[str, NodeTable]) -> dict[str, DataFrame]:
    return {name: tables[name].versions() for name in set(looked_up(operator))}


def looked_up(operator: Operator) -> Iterator[str]:
    """Yield the relations in which an operator looks up a version for each row."""
    if isinstance(operator, AsOf):
        yield operator.relation
    for below in inputs_of(operator):
        yield from looked_up(below)


def carried_by(rows: DataFrame | DriverRows) -> list[str]:
    """Return the carried columns that a frame has."""
    return [name for name in (*CARRIED, _WEIGHT, LOADED, PLACE, UNIT) if name in rows.columns]


def rows_of(operator: Operator, tables: Mapping[str, Frame], versions: Mapping[str, Frame]) -> Frame:
    """Return a stateless pipeline's rows, from the rows of the tables that it scans and the versions that it looks up."""
    match operator:
        case Scan():
            rows = tables[operator.table]
            return rows.selectExpr(*map(quoted, user_columns(rows)), *carried_by(rows), "_exp AS _out")
        case UnionAll():
            parts = [rows_of(branch, tables, versions) for branch in operator.inputs]
            union = parts[0]
            for part in parts[1:]:
                union = union.unionByName(part)
            return union
        case TimeWindow():
            return _ended(rows_of(operator.input, tables, versions), operator)
        case InternalRows():
            rows = rows_of(operator.input, tables, versions)
            columns = [quoted(name) for name in rows.columns if name != "_out"]
            return rows.selectExpr(*columns, f"timestamp_micros({NEVER}L) AS _out")
        case AsOf():
            return _looked_up(rows_of(operator.input, tables, versions), operator, versions[operator.relation])
        case Filter() | Project():
            return over(operator, operator.input, rows_of(operator.input, tables, versions))
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a pipeline")


def most_arrived(operator: Operator, tables: Mapping[str, NodeTable]) -> int | None:
    """Return an upper bound of the rows that arrived in a pipeline; None if it is unknown, or if rows are wide."""
    total = 0
    for table in scanned(operator):
        most = tables[table].most_arrived()
        if most is None:
            return None
        total += most
    return total


def changes(operator: Operator, tables: Mapping[str, NodeTable], move: Move) -> DataFrame:
    """Return a pipeline's newly live rows, and the rows that were live at the last epoch and no longer are.

    A time window of the pipeline may end a row before the table does. If rows of a table may leave before their own end, both
    contents of the table are compared, row by row.
    """
    lives, lived = f"unix_micros(_exp) > {move.now}L", f"unix_micros(_exp) > {move.before}L"
    if any(tables[table].keyed for table in scanned(operator)):
        before = live(operator, tables, earlier=True).where(lived)
        return _net_of_bags(live(operator, tables).where(lives), before)
    earlier = relation(operator, tables, NodeTable.live_before if any(window_lengths(operator)) else NodeTable.ended)
    return net_changes(relation(operator, tables, NodeTable.arrived), earlier, move)


def net_changes(arrived: Frame, earlier: Frame, move: Move) -> Frame:
    """Return the arrived rows that are live now, and the earlier rows that were live then and are not live now."""
    lives, lived = f"unix_micros(_exp) > {move.now}L", f"unix_micros(_exp) > {move.before}L"
    inserted, removed = arrived.where(lives), earlier.where(f"{lived} AND NOT ({lives})")
    return inserted.selectExpr("*", f"1 AS {_WEIGHT}").unionByName(removed.selectExpr("*", f"-1 AS {_WEIGHT}"))


def _net_of_bags(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return the difference of two bags of rows with the same lifetimes; ``_ts`` is the latest of equal rows."""
    names = [*user_columns(now), "_exp", "_out"]
    columns = list(map(quoted, names))
    both = now.selectExpr(*columns, "_ts", "1 AS _one").unionByName(before.selectExpr(*columns, "_ts", "-1 AS _one"))
    summed = grouped_exactly(both, names, [F.expr("max(_ts) AS _ts"), F.expr("CAST(sum(_one) AS int) AS _sum")])
    repeated = f"explode(array_repeat(CAST(signum(_sum) AS int), abs(_sum))) AS {_WEIGHT}"
    return summed.selectExpr(*columns, "_ts", repeated)


def reads_row_windows(operator: Operator) -> bool:
    """Whether a pipeline reads internal row windows, whose rows leave early and end no result."""
    return isinstance(operator, InternalRows) or any(reads_row_windows(below) for below in inputs_of(operator))


def window_lengths(operator: Operator) -> Iterator[tuple[str, int]]:
    """Yield each table that is read through a time window, with the window's length in microseconds."""
    for below in inputs_of(operator):
        if isinstance(operator, TimeWindow):
            yield from ((table, operator.length) for table in scanned(below))
        yield from window_lengths(below)


def over(operator: Operator, below: Operator, rows: Frame) -> Frame:
    """Apply the filters and projections of ``operator`` above ``below`` to the rows of ``below``."""
    if operator is below:
        return rows
    match operator:
        case Filter():
            return over(operator.input, below, rows).where(operator.condition)
        case Project():
            inner = over(operator.input, below, rows)
            named = [f"{column.sql} AS {quoted(column.name)}" for column in operator.columns]
            return inner.selectExpr(*named, *carried_by(inner))
        case _:
            raise TypeError(f"{type(operator).__name__} is neither a filter nor a projection")


def _ended(rows: Frame, window: TimeWindow) -> Frame:
    """End rows at ``ts + length``; an internal window ends them in the state only."""
    columns = [quoted(name) for name in rows.columns if name not in ("_exp", "_out")]
    end = f"unix_micros(_ts) + {window.length}L"
    out = f"timestamp_micros({NEVER}L)" if window.internal else f"timestamp_micros(least(unix_micros(_out), {end}))"
    return rows.selectExpr(*columns, f"timestamp_micros(least(unix_micros(_exp), {end})) AS _exp", f"{out} AS _out")


def _looked_up(rows: Frame, lookup: AsOf, versions: Frame) -> Frame:
    """Join with the version that each row sees: ``valid_from < ts <= valid_to`` (update-patterns sheet, 4.3)."""
    keys = [f"{quoted(column)} AS _key_{number}" for number, (_, column) in enumerate(lookup.on)]
    added = [f"{column.sql} AS {quoted(column.name)}" for column in lookup.columns]
    renamed_versions = versions.selectExpr(*keys, *added, "_ts AS _valid_from", "_exp AS _valid_to")
    names = [*rows.columns, *(column.name for column in lookup.columns)]
    return paired(rows, renamed_versions, _sees(lookup), "left" if lookup.outer else "inner").selectExpr(*map(quoted, names))


def _sees(lookup: AsOf) -> str:
    equal = [f"{quoted(column)} = _key_{number}" for number, (column, _) in enumerate(lookup.on)]
    return " AND ".join([*equal, "_valid_from < _ts", "_ts <= _valid_to"])


# --- in the driver, over few rows ---


def picks_only(operator: Operator) -> bool:
    """Whether a pipeline only picks and renames columns and ends rows: this cannot fail for any row."""
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
    """Return a pipeline's rows over one relation of each table that it scans; None: Spark must compute them.

    Parameters
    ----------
    operator
        The pipeline.
    tables
        The tables that it scans, and the relations in which it looks up versions.
    part
        Returns the rows of a table in the driver, for example ``NodeTable.arrived_in_driver``; None: Spark must read them.

    """
    try:
        if isinstance(operator, Scan):  # as in `rows_of`, without a DuckDB query
            scan = part(tables[operator.table])
            return None if scan is None else _scanned(scan)
        rows = pipeline(operator, tables, part)
        return None if rows is None else rows.toArrow()
    except LeftToSparkError:
        return None


def pipeline(
    operator: Operator, tables: Mapping[str, NodeTable], part: Callable[[NodeTable], pa.Table | None]
) -> DriverRows | None:
    """Return the same as :func:`evaluated`, not computed yet.

    Raises
    ------
    LeftToSparkError
        When Spark must compute it.

    """
    read = {name: part(tables[name]) for name in set(scanned(operator))}
    read_versions = {name: tables[name].versions_in_driver() for name in set(looked_up(operator))}
    if any(rows is None for rows in (*read.values(), *read_versions.values())):
        return None
    return rows_of(operator, _driver_rows(read), _driver_rows(read_versions))


def _scanned(rows: pa.Table) -> pa.Table:
    driver_rows = DriverRows.of(rows)
    return rows.select([*user_columns(driver_rows), *carried_by(driver_rows)]).append_column("_out", rows["_exp"])


def _driver_rows(tables: Mapping[str, pa.Table | None]) -> dict[str, DriverRows]:
    return {name: DriverRows.of(rows) for name, rows in tables.items() if rows is not None}


def evaluated_above(operator: Operator, below: Operator, rows: pa.Table, where: str | None) -> pa.Table | None:
    """Return the results of the operators above ``below`` over its rows for which a condition holds; None: Spark must compute."""
    try:
        driver_rows = DriverRows.of(rows)
        return over(operator, below, driver_rows if where is None else driver_rows.where(where)).toArrow()
    except LeftToSparkError:
        return None


def narrowed(operator: Operator, wanted: Iterable[str], tables: dict[str, set[str]]) -> Operator:
    """Return the pipeline with at least the wanted columns; it need not compute other columns.

    Parameters
    ----------
    operator
        The pipeline.
    wanted
        Names of its columns, in lower case.
    tables
        Receives the names, in lower case, of the tables' columns from which the wanted columns are computed.

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
            return UnionAll(tuple(narrowed(branch, names, tables) for branch in operator.inputs))
        case TimeWindow():
            return TimeWindow(narrowed(operator.input, names, tables), operator.length, operator.internal)
        case InternalRows():
            return InternalRows(narrowed(operator.input, names, tables))
        case Filter():
            below = narrowed(operator.input, {*names, *map(str.lower, names_in(operator.condition))}, tables)
            return Filter(below, operator.condition)
        case Project():
            columns = tuple(column for column in operator.columns if column.name.lower() in names)
            read = {name.lower() for column in columns for name in names_in(column.sql)}
            return Project(narrowed(operator.input, read, tables), columns)
        case AsOf():
            names |= {column.lower() for column, _ in operator.on}
            return AsOf(narrowed(operator.input, names, tables), operator.relation, operator.on, operator.columns, operator.outer)
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a pipeline")


def keeps_values(operator: Operator, below: Operator) -> bool:
    """Whether the operators above ``below`` only select and filter, and compute no values, which might be larger."""
    while operator is not below:
        if not isinstance(operator, Filter) and not (isinstance(operator, Project) and _picks(operator)):
            return False
        operator = operator.input
    return True


def _picks(operator: Project) -> bool:
    return all(column_of(column.sql) for column in operator.columns)


def ending_after(rows: pa.Table, column: str, instant: int) -> pa.Table:
    """Return the rows in which a time is after an instant in microseconds."""
    return rows.filter(pc.greater(rows[column].cast(pa.int64()), instant))


def named_above(operator: Operator, core: Join) -> set[str] | None:
    """Return the names, in lower case, that the filters and projections above a join may use; None: they use all.

    Examples
    --------
    >>> from warehouse.views.algebra import Filter, Join, Named, Project, Scan
    >>> join = Join((Scan("l"), Scan("r")), ())
    >>> above = Project(Filter(join, "`a` > `B`.`c`"), (Named("x", "`D` + 1"),))
    >>> sorted(named_above(above, join)), named_above(Filter(join, "`a` > 1"), join)
    (['a', 'b', 'c', 'd'], None)
    >>> sorted(named_above(Project(join, (Named("x", "concat('`', `a`, '`', `b`)"),)), join))
    ['a', 'b']
    """
    texts, picks = [core.where or ""], False
    while operator is not core:
        match operator:
            case Project():
                texts += [column.sql for column in operator.columns]
                picks = True
            case Filter():
                texts.append(operator.condition)
            case _:
                return None
        operator = operator.input
    return {name.lower() for text in texts for name in names_in(text)} if picks else None
