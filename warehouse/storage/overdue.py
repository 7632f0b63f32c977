"""Removing the rows of a table whose value of one column is too low: by one commit, as whole files where possible.

The log has the bounds of the column in each file, so a file that has only overdue rows is removed unread. A file that has other
rows too is written again without the overdue rows, a batch at a time.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.objects.path import parquet_source
from warehouse.storage.commit import commit, unstage
from warehouse.storage.fingerprint import damage, with_sums
from warehouse.storage.footers import bounded_leaves
from warehouse.storage.replay import replay
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from warehouse.storage.commit import CommitFacts
    from warehouse.storage.entries import LogEntry

__all__ = ["drop_overdue"]


def drop_overdue(
    table: Path, base: LogEntry, column: str, through: int, *, facts: CommitFacts, staged: Callable[[], None]
) -> LogEntry | None:
    """Remove the rows with a value up to ``through`` in a column, and return the new entry; None if there is no such row.

    A file that cannot be read stays. The commit records how many rows remain in unchanged files.

    Parameters
    ----------
    table
        The table's directory.
    base
        The newest entry.
    column
        A column of integers.
    through
        The largest value that leaves.
    facts
        The commit's metadata.
    staged
        Called when the rewritten files are complete and not yet committed.

    """
    adds = replay(table, base.version).files
    bounds = {path: low_high for path, add in adds.items() if (low_high := _bounds(table / path, add, column)) is not None}
    overdue = {path for path, (_, high) in bounds.items() if high <= through}
    mixed = {path for path, (low, high) in bounds.items() if low <= through < high and _is_whole(table / path)}
    if not overdue and not mixed:
        return None
    unstage(table)  # files of an attempt that did not finish are not of this commit
    remaining = sum(_rows(add) for path, add in adds.items() if path not in overdue | mixed)
    written = _staged_without(table, sorted(mixed), column, through) if mixed else None
    staged()
    return commit(
        table,
        base,
        statistics=(column,),
        leaving=None,
        facts=replace(facts, metadata={**facts.metadata, "remaining": remaining}),
        staged=written,
        gone=overdue | mixed,
    )


def _is_whole(file: Path) -> bool:
    try:
        return damage(file) is None
    except OSError:
        return False  # `check` reports it


def _rows(add: Mapping[str, Any]) -> int:
    return int(_statistics(add).get("numRecords", 0))


def _statistics(add: Mapping[str, Any]) -> dict[str, Any]:
    statistics = json.loads(add.get("stats") or "{}")
    return statistics if isinstance(statistics, dict) else {}


def _bounds(file: Path, add: Mapping[str, Any], column: str) -> tuple[int, int] | None:
    """The bounds of a column from the log, else from the file's footer: earlier builds wrote no bounds into the log."""
    statistics = _statistics(add)
    low, high = ((statistics.get(name) or {}).get(column) for name in ("minValues", "maxValues"))
    return (low, high) if isinstance(low, int) and isinstance(high, int) else _bounds_by_footer(file, column)


def _bounds_by_footer(file: Path, column: str) -> tuple[int, int] | None:
    import pyarrow as pa  # noqa: PLC0415 - files of earlier builds alone need it
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    try:
        footer = pq.read_metadata(parquet_source(file))
    except (OSError, pa.ArrowException):
        return None  # `check` reports it; a damaged file stops no update
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(footer.num_columns)]
    statistics = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    if not groups or len(statistics) < len(groups) or not all(bounds is not None and bounds.has_min_max for bounds in statistics):
        return None
    return min(bounds.min for bounds in statistics), max(bounds.max for bounds in statistics)


def _staged_without(table: Path, files: Iterable[str], column: str, through: int) -> Path:
    """Write files again, without the rows that leave, into the staging directory, and return that directory."""
    store = store_of(table)
    staged = store.staging_directory(table)
    with store.writing_into(staged) as directory:
        written = [_without(table / file, directory, column, through) for file in files]
    if store.local_paths:
        with_sums(staged, [file.relative_to(staged) for file in written], whole=True)
    return staged


def _without(file: Path, directory: Path, column: str, through: int) -> Path:
    import pyarrow.compute as pc  # noqa: PLC0415 - same
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    target = directory / f"part-{uuid.uuid4().hex}.parquet"
    source = pq.ParquetFile(parquet_source(file), page_checksum_verification=True)
    codec = source.metadata.row_group(0).column(0).compression.lower()
    if codec == "uncompressed":  # as footers call it
        codec = "none"
    schema = source.schema_arrow
    with (
        source,
        pq.ParquetWriter(
            target, schema, compression=codec, write_page_checksum=True, write_statistics=bounded_leaves(schema)
        ) as writer,
    ):
        for batch in source.iter_batches():
            remaining = batch.filter(pc.greater(batch.column(column), through))
            if remaining.num_rows:
                writer.write_batch(remaining)
    return target
