"""The columns of the tables on disk: the user's, then the system columns, then the partition columns (DESIGN 4)."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from warehouse.catalog.types import delta_type
from warehouse.layout.columns import OWED_RESULT, SYSTEM_COLUMNS, WAITING_SLOT
from warehouse.limits import Limits
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column

__all__ = [
    "CHECKPOINT_INTERVAL",
    "FOLDERS",
    "FOUND_BY",
    "LIVE_FOLDER",
    "PROPERTIES",
    "REJECTED_COLUMNS",
    "SYSTEM_COLUMNS",
    "deferred_schema",
    "key_types",
    "lacks_columns",
    "live_schema",
    "log_properties",
    "rejected_schema",
    "restored_schema",
    "rows_schema",
    "schema_file",
    "statistics_columns",
    "table_properties",
    "write_schema_file",
]


FOLDERS = ("tables", "deferred", "rejected", "restored")
"""The folders of the root that hold tables, one for each role; an epoch names the version of each table."""
LIVE_FOLDER = "live"
"""The folder of the live tables, which other tools read and no epoch names."""

_RESTORED_COLUMNS = (*SYSTEM_COLUMNS[:2], ("_epoch", "bigint"))
_DEFERRED_COLUMNS = (("_file", "string"), ("_record", "bigint"), (WAITING_SLOT, "bigint"))
REJECTED_COLUMNS = (
    ("file", "string"),
    ("record", "bigint"),
    ("reason", "string"),
    ("message", "string"),
    ("raw", "string"),
    ("epoch", "bigint"),
)
FOUND_BY = {"rejected": "epoch", "restored": "_epoch"}
"""The column that names the epoch whose update found a row, by the role of the table; files have its bounds in the log."""


def rows_schema(columns: Sequence[Column | ColumnRecord]) -> dict[str, Any]:
    """Return the schema of a table of rows, as Delta and Spark write it in JSON."""
    return _struct([*((column.name, column.type) for column in columns), *SYSTEM_COLUMNS])


def live_schema(columns: Sequence[Column | ColumnRecord]) -> dict[str, Any]:
    """Return the schema of a live table: the user's columns, when a row began and when it ends."""
    return _struct([*((column.name, column.type) for column in columns), *SYSTEM_COLUMNS[:2]])


def deferred_schema(columns: Sequence[Column | ColumnRecord]) -> dict[str, Any]:
    """Return the schema of a table of deferred rows: where each came from, and the slot it waits for."""
    return _struct([*((column.name, column.type) for column in columns), *_DEFERRED_COLUMNS])


def restored_schema(columns: Sequence[Column | ColumnRecord], *, owed: bool) -> dict[str, Any]:
    """Return the schema of a table of short-lived results: when they were in the answer, and the epoch that reported them.

    Where the view has a budget they say whether they were ``owed``.
    """
    marked = ((OWED_RESULT, "boolean"),) if owed else ()
    return _struct([*((column.name, column.type) for column in columns), *_RESTORED_COLUMNS, *marked])


def rejected_schema() -> dict[str, Any]:
    """Return the schema of a table of rejected rows."""
    return _struct(REJECTED_COLUMNS)


def lacks_columns(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a schema lacks a column of another one, or has it with another type (Spark struct types as JSON).

    >>> number, text = ({"name": "v", "type": kind} for kind in ("integer", "string"))
    >>> lacks_columns({"fields": [number, text]}, {"fields": [number]}), lacks_columns({"fields": [number]}, {"fields": [text]})
    (False, True)
    """
    present = [(field["name"], field["type"]) for field in now.get("fields", ())]
    return any((field["name"], field["type"]) not in present for field in wanted["fields"])


def _struct(columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    fields = [{"name": name, "type": delta_type(kind), "nullable": True, "metadata": {}} for name, kind in columns]
    return {"type": "struct", "fields": fields}


def statistics_columns(key: Iterable[tuple[str, str]]) -> list[str]:
    """Return the columns whose bounds are kept for every file; ``key`` holds (column, Spark SQL type).

    Booleans have no bounds: Delta refuses to alter or clone a table that names one in ``delta.dataSkippingStatsColumns``.

    >>> statistics_columns([("open", "boolean"), ("name", "string")])
    ['name', '_ts', '_exp', '_load_slot', '_exp_slot']
    """
    return [*(name for name, kind in key if kind != "boolean"), *(name for name, _ in SYSTEM_COLUMNS[:4])]


def key_types(search_key: Sequence[str], columns: Sequence[Column | ColumnRecord]) -> list[tuple[str, str]]:
    """Return the parts of a search key with their types."""
    types = {column.name: column.type for column in columns}
    return [(name, types[name]) for name in search_key]


def schema_file(path: str, epoch: int | None = None) -> str:
    """Return the zero-row Parquet file of a table's columns, relative as ``path`` is; a view has one for each build."""
    return f"{path}/_schema/{'columns' if epoch is None else epoch}.parquet"


def write_schema_file(file: Path, columns: Sequence[Column | ColumnRecord]) -> None:
    """Write the zero-row Parquet file that every file list of a reader starts with."""
    import pyarrow as pa  # noqa: PLC0415 - only when a table is created
    import pyarrow.parquet as pq  # noqa: PLC0415 - same
    from deltalake import Schema  # noqa: PLC0415 - same

    schema = pa.schema(Schema.from_json(json.dumps(rows_schema(columns))).to_arrow())
    content = io.BytesIO()
    pq.write_table(schema.empty_table(), content, write_page_checksum=True)
    store_of(file).write_replacing(file, content.getvalue())


# The properties of the Delta tables: which columns have statistics, how often logs are summed up, how long they stay.

CHECKPOINT_INTERVAL = Limits.checkpoint_interval
"""A checkpoint of the log is written after this many commits."""
PROPERTIES = 2
"""The number of the set of properties that this build gives its tables.

An epoch records it for each table, and an update sets the properties of a table with a lower number. Raise it with each change of
:func:`table_properties`. 1: no boolean
column in ``delta.dataSkippingStatsColumns``. 2: ``delta.enableExpiredLogCleanup`` is false."""
_DAY = 86_400


def table_properties(statistics: Sequence[str], retain: int) -> dict[str, str]:
    """Return the properties of a table; ``retain`` is in microseconds."""
    return {
        "delta.dataSkippingStatsColumns": ",".join(f"`{name}`" for name in statistics),
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
        **log_properties(retain),
    }


def log_properties(retain: int) -> dict[str, str]:
    """Return how long Delta keeps a table's log and removed files: long enough to open every version an epoch pins.

    No writer cuts the log after a commit, since this depends only on the age of its files: a table without updates for longer
    than this time would lose the version that the newest epoch names.
    """
    seconds = -(-retain // 1_000_000)
    return {
        "delta.deletedFileRetentionDuration": f"interval {max(seconds, 7 * _DAY)} seconds",
        "delta.logRetentionDuration": f"interval {max(seconds + 2 * _DAY, 30 * _DAY)} seconds",
        "delta.enableExpiredLogCleanup": "false",
    }
