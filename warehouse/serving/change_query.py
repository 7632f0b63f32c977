"""The SQL of changes: each row with its kind of change, the epoch and the window time at which it shows.

A row is its user's columns with `_ts` and `_exp`, without its file and the slot that loaded it, since sealing and rollback change
these. Rows are compared as bags: summed up with +1 for each new row and -1 for each row that left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.layout.columns import TIMES
from warehouse.serving.statement import instant
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.serving.change_plan import ChangePlan, MovedFiles
    from warehouse.storage.snapshot import DataFile

__all__ = ["CHANGE_COLUMNS", "LIFE_COLUMNS", "change_query"]

LIFE_COLUMNS = tuple((name, "TIMESTAMP WITH TIME ZONE") for name in TIMES)
"""The system columns that belong to a row in any file."""
CHANGE_COLUMNS = (
    ("_change_type", "VARCHAR"),
    ("_change_epoch", "BIGINT"),
    ("_change_time", "TIMESTAMP WITH TIME ZONE"),
)
"""The columns after a row's own: the kind of change, its epoch, and that epoch's window time."""

_ORDER = ("expire", "delete", "update_preimage", "update_postimage", "insert")


def change_query(
    plan: ChangePlan,
    times: Sequence[tuple[int, int]],
    own: Sequence[str],
    *,
    schema_file: str,
    key: Sequence[str] | None,
    shown: Sequence[str],
    limit: int | None,
) -> str:
    """Return the query of changes in the order in which to apply them: by epoch, removed rows before inserted rows.

    Parameters
    ----------
    plan
        The files to read.
    times
        Number and window time (microseconds) of each epoch with possible changes, ascending.
    own
        The user's columns.
    schema_file
        The zero-row file; a column that a data file lacks is null there.
    key
        The search key of a keyed table: a removed and an inserted row with the same key are reported as an update. None: no
        updates.
    shown
        The columns to show before those of the change.
    limit
        The greatest number of rows.

    """
    row = ", ".join(quoted(name) for name in (*own, *(name for name, _ in LIFE_COLUMNS)))
    expired = [
        _read(schema_file, expiring.files, row, f"_exp > {instant(expiring.after)} AND _exp <= {instant(expiring.until)}")
        for expiring in plan.expiring
    ]
    first_of_time = {time: number for number, time in reversed(times)}
    parts = [_read(schema_file, (), f"{row}, '' AS _change_type, 0::BIGINT AS _change_epoch", "false")]
    if expired:
        epoch = _step("_exp", [(instant(time), str(first_of_time[time])) for time in sorted(first_of_time)])
        parts += [f"SELECT {row}, 'expire', {epoch} FROM ({' UNION ALL '.join(expired)})"]
    parts += [part for moved in plan.moved for part in _plain(schema_file, moved, row)]
    compared = [_compared(schema_file, moved, row) for moved in plan.moved if moved.compared_added]
    if compared:
        parts.append(_change_rows_query(" UNION ALL ".join(compared), row, key))
    time = _step("_change_epoch", [(str(number), instant(at)) for number, at in times]) if times else "NULL::TIMESTAMPTZ"
    projection = ", ".join(f"nullif(_exp, {instant(NEVER)}) AS _exp" if name == "_exp" else quoted(name) for name in shown)
    order = f"list_position([{', '.join(map(literal, _ORDER))}], _change_type)"
    text = (
        f"SELECT {projection}, _change_type, _change_epoch, {time} AS _change_time "
        f"FROM ({' UNION ALL '.join(parts)}) AS _changed ORDER BY _change_epoch, {order}"
    )
    if key:
        text += "".join(f", _changed.{quoted(name)} NULLS FIRST" for name in key)
    return text if limit is None else f"{text} LIMIT {int(limit)}"


def _read(schema_file: str, files: Sequence[DataFile], projection: str, where: str) -> str:
    paths = ", ".join(literal(path) for path in (schema_file, *(file.path for file in files)))
    return f"SELECT {projection} FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false) WHERE {where}"


def _plain(schema_file: str, moved: MovedFiles, row: str) -> list[str]:
    """Return the queries of added and removed rows, if no rows must be compared."""
    live = f"_exp > {instant(moved.window_time)}"
    return [
        _read(schema_file, files, f"{row}, {literal(kind)}, {moved.epoch}", live)
        for kind, files in (("insert", moved.added), ("delete", moved.removed))
        if files
    ]


def _compared(schema_file: str, moved: MovedFiles, row: str) -> str:
    """Return the query of the rows whose number changed; ``_sum`` is the difference, negative for removed rows."""
    live = f"_exp > {instant(moved.window_time)}"
    changed_rows = " UNION ALL ".join(
        _read(schema_file, files, f"{row}, {sign} AS _one", live)
        for sign, files in ((1, moved.compared_added), (-1, moved.compared_removed))
    )
    return f"SELECT {row}, {moved.epoch} AS _epoch, sum(_one) AS _sum FROM ({changed_rows}) GROUP BY {row} HAVING sum(_one) <> 0"


def _change_rows_query(compared: str, row: str, key: Sequence[str] | None) -> str:
    """Return the query that gives each row as often as it was added or removed; both rows of an updated key are a pair."""
    copies = f"SELECT {row}, _epoch, _sum > 0 AS _came, unnest(range(abs(_sum)::BIGINT)) AS _copy FROM ({compared})"
    plain = "CASE WHEN _came THEN 'insert' ELSE 'delete' END"
    if not key:
        return f"SELECT {row}, {plain}, _epoch FROM ({copies})"
    of_key = f"PARTITION BY _epoch, {', '.join(quoted(name) for name in key)}"
    numbered = (
        f"SELECT *, row_number() OVER ({of_key}, _came ORDER BY _ts, _exp, {row}) AS _nth, "
        f"least(count(*) FILTER (WHERE _came) OVER ({of_key}), count(*) FILTER (WHERE NOT _came) OVER ({of_key})) AS _pairs "
        f"FROM ({copies})"
    )
    paired = "CASE WHEN _came THEN 'update_postimage' ELSE 'update_preimage' END"
    return f"SELECT {row}, CASE WHEN _nth <= _pairs THEN {paired} ELSE {plain} END, _epoch FROM ({numbered})"


def _step(value: str, bounds: Sequence[tuple[str, str]]) -> str:
    """Return the second part of the first bound that is not below a value, found by halving.

    >>> _step("x", [("1", "'a'"), ("2", "'b'"), ("5", "'c'")])
    "CASE WHEN x <= 1 THEN 'a' ELSE CASE WHEN x <= 2 THEN 'b' ELSE 'c' END END"
    """
    if len(bounds) == 1:
        return bounds[0][1]
    middle = len(bounds) // 2
    below, above = _step(value, bounds[:middle]), _step(value, bounds[middle:])
    return f"CASE WHEN {value} <= {bounds[middle - 1][0]} THEN {below} ELSE {above} END"
