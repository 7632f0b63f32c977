"""Proves that files have exactly the rows of other files, as an OPTIMIZE claims, and can replace them.

Rows are compared as bags, per partition: their number, and the sums of both halves of the MD5 of each row's text (DuckDB's text
of a struct distinguishes types, nulls and strings). Different bags have equal sums with a probability of 2^-128.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warehouse.objects.path import parquet_source
from warehouse.storage.copies import Copies, fresh_copies
from warehouse.storage.duckdb_sql import in_memory, listed, quoted
from warehouse.storage.snapshot import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.foreign import Change
    from warehouse.storage.snapshot import Bounds, DataFile

__all__ = ["RowProof", "proven"]

_SHOWN = 3


@dataclass(frozen=True)
class RowProof:
    """Whether the rows are the same, or why not; if they are, a further reason against the files (empty: no reason)."""

    same_rows: bool
    reason: str = ""
    unfit: str = ""


def proven(root: Path, path: str, change: Change, *, schema_file: str | None, bounded: Sequence[str]) -> RowProof:
    """Return whether the files that a change added have the rows of the files that it removed, partition by partition.

    Parameters
    ----------
    root, path
        The warehouse's directory, and the table's relative to it.
    change
        The change by outsiders.
    schema_file
        The zero-row file of the table's columns, relative to the root; None where the table has none.
    bounded
        The columns whose bounds readers rely on.

    """
    table = root / path
    missing = [name for name in (*change.removed, *change.added) if not (table / name).is_file()]
    if missing:
        return RowProof(same_rows=False, reason=f"{len(missing)} file(s) are not there ({', '.join(missing[:_SHOWN])})")
    with ExitStack() as resources:
        proving = _Proving(table)
        resources.callback(proving.connection.close)
        proving.copies = resources.enter_context(fresh_copies(root))
        try:
            schema_files = [] if schema_file is None else [proving.place(root / schema_file)]
            differing = proving.difference(change, schema_files)
            if differing:
                return RowProof(same_rows=False, reason=differing)
            logged = {file.path: file for file in read_snapshot(root, path, change.last, bounded).files} if bounded else {}
            return RowProof(same_rows=True, unfit=proving.unfit(change, logged, bounded))
        except Exception as error:  # noqa: BLE001 - whatever damaged or odd files make their reader raise: they prove nothing
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            return RowProof(same_rows=False, reason=f"its files cannot be compared ({first})")


@dataclass
class _Proving:
    """A table's files in an engine that reads them."""

    table: Path
    connection: Any = field(default_factory=lambda: in_memory(()))
    copies: Copies | None = None

    def place(self, path: Path) -> str:
        """Return where a file can be read."""
        return str(path) if self.copies is None else self.copies.whole([str(path)])[0]

    def difference(self, change: Change, schema_files: list[str]) -> str:
        """Return in which partition the rows differ, and how; empty: in none. ``schema_files`` are read with each partition."""
        for partition in sorted({*map(_partition, change.added.values()), *map(_partition, change.removed.values())}):
            before = self._bag(schema_files, (name for name, add in change.removed.items() if _partition(add) == partition))
            after = self._bag(schema_files, (name for name, add in change.added.items() if _partition(add) == partition))
            if before != after:
                subject = ", ".join(f"{name} {value}" for name, value in partition) or "the table"
                rows = f"{after[0]} rows instead of {before[0]}"
                return f"{subject} has {rows if before[0] != after[0] else 'other rows than before'}"
        return ""

    def _bag(self, schema_files: list[str], names: Iterable[str]) -> tuple[int, int, int]:
        """Return the number of rows of files, and the sums of their hashes."""
        files = [*schema_files, *(self.place(self.table / name) for name in names)]
        if not files:
            return 0, 0, 0
        source = f"read_parquet({listed(files)}, union_by_name = true, hive_partitioning = false)"
        columns = [row[0] for row in self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        packed = ", ".join(f"c{number} := {quoted(name)}" for number, name in enumerate(sorted(columns)))
        texts = f"SELECT CAST(struct_pack({packed}) AS varchar) AS r FROM {source}"
        sums = (f"sum(CAST(md5_number_{half}(r) AS hugeint))" for half in ("lower", "upper"))
        count, lower, upper = self.connection.execute(f"SELECT count(*), {', '.join(sums)} FROM ({texts})").fetchone()
        return int(count), int(lower or 0), int(upper or 0)

    def unfit(self, change: Change, logged: Mapping[str, DataFile], bounded: Sequence[str]) -> str:
        """Return why readers cannot rely on a file although its rows are right; empty: they can."""
        import pyarrow as pa  # noqa: PLC0415 - only where an outsider wrote
        import pyarrow.parquet as pq  # noqa: PLC0415 - same

        for name, add in change.added.items():
            footer = pq.ParquetFile(parquet_source(self.table / name))
            for column in footer.schema_arrow:
                if pa.types.is_timestamp(column.type) and (column.type.unit != "us" or column.type.tz is None):
                    return f"{name} stores {column.name} as {column.type}, not in microseconds of UTC"
            if footer.metadata.num_rows != _rows(add):
                return f"the log says that {name} has {_rows(add)} rows, its footer {footer.metadata.num_rows}"
            file = logged.get(f"{self.table}/{name}")
            if bounded and file is None:
                return f"readers do not find {name}"
            if file is not None:
                wrong = self._unbounded(name, file, bounded)
                if wrong:
                    return wrong
        return ""

    def _unbounded(self, name: str, file: DataFile, bounded: Sequence[str]) -> str:
        """Return the column for which the log's bounds are wrong, or missing although files are removed by them."""
        source = f"read_parquet({listed([self.place(self.table / name)])}, hive_partitioning = false)"
        types = {row[0]: str(row[1]) for row in self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        for column in bounded:
            bounds = file.of(column)
            if column == "_exp_slot" and (bounds.low is None or bounds.high is None):
                return f"the log has no bounds of {column} for {name}"
            value = f"epoch_us({quoted(column)})" if types[column].startswith("TIMESTAMP") else quoted(column)
            query = f"SELECT min({value}), max({value}), count(*) - count({value}) FROM {source}"
            low, high, nulls = self.connection.execute(query).fetchone()
            if (bounds.nulls is not None and bounds.nulls != nulls) or not _holds(bounds, low, high):
                return f"the log's bounds of {column} do not hold for {name}"
        return ""


def _holds(bounds: Bounds, low: Any, high: Any) -> bool:  # noqa: ANN401 - any comparable values
    """Whether the smallest and the largest value lie within bounds; a string's upper bound may be a prefix of the value."""
    try:
        above = low is None or bounds.low is None or bounds.low <= low
        below = high is None or bounds.high is None or bounds.high >= high or str(high).startswith(str(bounds.high))
    except TypeError:
        return False
    return bool(above and below)


def _partition(add: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in (add.get("partitionValues") or {}).items()))


def _rows(add: Mapping[str, Any]) -> object:
    try:
        statistics = json.loads(add.get("stats") or "{}")
    except ValueError:
        return None
    return statistics.get("numRecords") if isinstance(statistics, dict) else None
