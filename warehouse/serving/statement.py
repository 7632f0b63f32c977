"""The SQL of reads, built from quoted names, our own literals and bound values.

A read is `{ r : r in files and r._exp > tau and the selection holds }`. Files whose rows are surely all live are read without the
condition on `_exp`, so a scan without `_exp` in its result does not decode it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from warehouse.layout.columns import CELL, OWED_RESULT, TIMES
from warehouse.layout.columns import SYSTEM_COLUMNS as STORED
from warehouse.serving.lazy_rows import lazy_rows, points_read
from warehouse.storage.duckdb_sql import listed, literal, quoted
from warehouse.time import NEVER, format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from warehouse.epochs.following import LazyTable

__all__ = ["RESTORED_COLUMNS", "SYSTEM_COLUMNS", "Memory", "Source", "Statement", "instant", "restored_query", "select"]


_DUCK_TYPES = {"timestamp": "TIMESTAMP WITH TIME ZONE", "bigint": "BIGINT", "int": "INTEGER"}
SYSTEM_COLUMNS = tuple((name, _DUCK_TYPES[kind]) for name, kind in STORED)
"""The columns that every table has in addition to the user's, with DuckDB's types, in the order in which they are shown."""

_FILE = "_file"
_IN_MEMORY = "held_rows"
_PLACE = r"sub_index=(-?\d+)/exp_block=(-?\d+)/[^/]*$"


@dataclass(frozen=True)
class Statement:
    """A query, the values that are bound in it, and rows in memory that it reads by these names."""

    sql: str
    parameters: tuple[Any, ...] | Mapping[str, Any] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def bound(self) -> list[Any] | dict[str, Any]:
        """The values as DuckDB takes them: by position, or by name."""
        return dict(self.parameters) if isinstance(self.parameters, Mapping) else list(self.parameters)


def in_memory_rows(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> Statement:
    """Return the statement that gives rows in memory, in their order, as columns of these types.

    Two columns may have the same name, as in a query.
    """
    renamed = rows.rename_columns([f"c{position}" for position in range(len(columns))])
    projection = ", ".join(f"CAST(c{position} AS {kind}) AS {quoted(name)}" for position, (name, kind) in enumerate(columns))
    return Statement(f"SELECT {projection} FROM {_IN_MEMORY}", tables={_IN_MEMORY: renamed})


@dataclass(frozen=True)
class Memory:
    """Rows of a source's files that are in memory: the files' columns with their places in the grid.

    ``live`` files have no dead row, ``mixed`` files may have some; ``table`` is the table's name.
    """

    table: str
    live: pa.Table
    mixed: pa.Table

    @property
    def relations(self) -> tuple[str, str]:
        """The names by which queries read the two; no table of a user's has a colon in its name."""
        return f"{self.table}: live", f"{self.table}: mixed"

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The rows by these names."""
        return dict(zip(self.relations, (self.live, self.mixed), strict=True))


@dataclass(frozen=True)
class Source:
    """The files of a read: the zero-row schema file, files whose rows are all live, and files that may have dead rows.

    Rows that are in memory are read from memory; they may be fewer than in the files: only rows that a selection can have. With
    ``open_until`` (microseconds) the open rows of a coalesced table are valid until then. For a ``lazy`` table the files are the
    files of its stream with points that are live at the window time, ``points_at``; its rows are computed from these points.
    """

    schema_file: str
    live: tuple[str, ...]
    mixed: tuple[str, ...]
    tau: int
    memory: Memory | None = None
    open_until: int | None = None
    lazy: LazyTable | None = None
    points_at: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The data files."""
        return (*self.live, *self.mixed)

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The rows in memory by the names of their relations."""
        return {} if self.memory is None else self.memory.tables


def instant(micros: int) -> str:
    """Return a timestamp literal."""
    return f"TIMESTAMPTZ '{format_instant(micros)}'"


def select(
    source: Source,
    columns: Sequence[str],
    where: str = "",
    order: str = "",
    limit: int | None = None,
    *,
    paths: Callable[[Sequence[str]], str] = listed,
    window_time: str = "",
    both_lists: bool = False,
) -> str:
    """Return the query that gives the live rows of some columns.

    ``where`` is a condition over table columns, ``paths`` makes the expression that reads some files, and ``window_time`` is an
    expression that stands for the source's window time where its rows are read from files. With ``both_lists`` the query reads a
    list of files whose rows are all live and a list of the others even if one of them is empty.
    """
    if source.lazy is not None:
        parts = _lazy_parts(source, source.lazy, columns, where, paths)
    elif source.memory is not None:
        parts = _memory_parts(source, source.memory, columns, where)
    else:
        tau = window_time or instant(source.tau)
        parts = _file_parts(source, columns, where, paths, tau, at_once=bool(order), both_lists=both_lists)
    text = " UNION ALL ".join(parts)
    ordered = f"{text} ORDER BY {order}" if order else text
    return ordered if limit is None else f"{ordered} LIMIT {int(limit)}"


def _file_parts(
    source: Source,
    columns: Sequence[str],
    where: str,
    paths: Callable[[Sequence[str]], str],
    tau: str,
    *,
    at_once: bool,
    both_lists: bool,
) -> list[str]:
    """Return a query over the files without dead rows, and one over the others, which compares ``_exp`` with ``tau``.

    ``at_once``: one query over all files, for an order by columns that may not be in the result.
    """
    projection = ", ".join(_shown(column, source.open_until) for column in columns)
    has_cell = any(column in CELL for column in columns)
    filename_column = f", filename = '{_FILE}'" if has_cell else ""

    def part(files: Sequence[str], expiry: str) -> str:
        listed_files = paths((source.schema_file, *files))
        scan = f"read_parquet({listed_files}, union_by_name = true, hive_partitioning = false{filename_column})"
        return _part(projection, scan, (expiry, where))

    is_live = f"_exp > {tau}"
    if not both_lists and (not source.live or not source.mixed):
        return [part(source.files, is_live if source.mixed else "")]
    if at_once:
        return [part(source.files, is_live)]
    return [part(source.live, ""), part(source.mixed, is_live)]


def _memory_parts(source: Source, memory: Memory, columns: Sequence[str], where: str) -> list[str]:
    projection = ", ".join(quoted(column) if column in CELL else _shown(column, source.open_until) for column in columns)
    live, mixed = map(quoted, memory.relations)
    parts = [_part(projection, live, (where,))] if memory.live.num_rows else []
    if memory.mixed.num_rows or not parts:
        parts.append(_part(projection, mixed, (f"_exp > {instant(source.tau)}", where)))
    return parts


def _lazy_parts(
    source: Source, table: LazyTable, columns: Sequence[str], where: str, paths: Callable[[Sequence[str]], str]
) -> list[str]:
    """Return a query over the rows that the points of a lazy table make; they have no place in the grid and no slots."""
    points = select(replace(source, lazy=None, tau=source.points_at), [*points_read(table), "_ts", "_load_slot"], paths=paths)
    rows = lazy_rows(table, points, source.points_at)
    none = {name: f"NULL::{kind} AS {quoted(name)}" for name, kind in SYSTEM_COLUMNS if name not in TIMES}
    projection = ", ".join(none.get(column) or _shown(column, source.open_until) for column in columns)
    return [_part(projection, f"({rows})", (f"_exp > {instant(source.tau)}", where))]


def _part(projection: str, relation: str, conditions: Iterable[str]) -> str:
    combined = " AND ".join(condition for condition in conditions if condition)
    where = f" WHERE {combined}" if combined else ""
    return f"SELECT {projection} FROM {relation}{where}"


def _shown(column: str, open_until: int | None) -> str:
    """Return the expression that shows a column: rows that never expire show no ``_exp``, partitions come from the path.

    The zero-row file has no place in the grid, but a condition on it is evaluated for its path too.
    """
    match column:
        case "_exp":
            return f"nullif(_exp, {instant(NEVER)}) AS _exp"
        case "sub_index":
            return f"TRY_CAST(regexp_extract({_FILE}, '{_PLACE}', 1) AS INTEGER) AS sub_index"
        case "exp_block":
            return f"TRY_CAST(regexp_extract({_FILE}, '{_PLACE}', 2) AS BIGINT) AS exp_block"
        case "valid_to" if open_until is not None:
            return f'CASE WHEN "open" THEN greatest(valid_to, {instant(open_until)}) ELSE valid_to END AS valid_to'
        case _:
            return quoted(column)


# --- the query of short-lived results: rows of a view that began and ended between two updates ---
# Invariant: the files hold ``{ r : r in the view's query over time, no window time in [r._ts, r._exp) }`` for the
# epochs that were committed while the view was declared with ``short_lived = "report"`` (update-patterns sheet, 4.4:
# restore semantics), as far back as ``keep`` says (:mod:`warehouse.planning.keeping`).

RESTORED_COLUMNS = (
    *((name, "TIMESTAMP WITH TIME ZONE") for name in TIMES),
    ("_epoch", "BIGINT"),
)
"""The columns after the view's own: the result's life, and the epoch whose update found it."""


def restored_query(
    own: Sequence[tuple[str, str]], files: Sequence[str], limit: int | None, *, owed: bool = False
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the query and its columns (name and DuckDB type); without files it has no rows.

    Parameters
    ----------
    own
        The current columns of the view. A result of a former declaration has null in a column that it lacks.
    files
        Absolute paths.
    limit
        The greatest number of rows, of the earliest epochs first; None: all rows, in no order.
    owed
        Whether to mark results that were owed before they were made.

    """
    columns = (*own, *RESTORED_COLUMNS, *(((OWED_RESULT, "BOOLEAN"),) if owed else ()))
    nulls = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in columns)
    names = ", ".join(quoted(name) for name, _ in columns)
    parts = [f"SELECT {nulls} WHERE false"]
    if files:
        paths = ", ".join(map(literal, files))
        parts.append(f"SELECT * FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)")
    end = "" if limit is None else f" ORDER BY _epoch, _ts, _exp LIMIT {int(limit)}"
    return f"SELECT {names} FROM ({' UNION ALL BY NAME '.join(parts)}){end}", columns
