"""Checkpoints of a table's log, made at versions that an epoch names. Making one removes nothing from the log.

A checkpoint is made after the epoch's record, so an abandoned commit has no checkpoint. Only
:func:`warehouse.storage.logcut.trim_log` cuts the log, below the version that the oldest readable epoch names. The cleanup of
deltalake and of other writers goes by the age of the log's files: after some weeks without an update it would delete the version
that the newest epoch names. So ``delta.enableExpiredLogCleanup`` is false in all tables.

A checkpoint also names removed files, so that a VACUUM spares them for a while: deltalake names all files that were removed
within ``delta.deletedFileRetentionDuration``, at least a week. Entries of files that our vacuum has deleted are useless. They are
dropped once they are a tenth of a checkpoint, so that checkpoints do not grow with the number of updates.

If many epochs are readable, such entries are most of a checkpoint, and checkpoints at every ten commits would be most of the
table's bytes. So the next checkpoint waits until the entries since the last one are a fair part of it, for a hundred commits at
most.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from warehouse.errors import NotDurableError, StorageFailedError, StoreBusyError
from warehouse.limits import limits
from warehouse.storage.deltalog import whole_parquet
from warehouse.storage.entries import entry_path
from warehouse.storage.replay import checkpoints
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

__all__ = ["checkpoint", "checkpoint_due", "drop_torn_checkpoints"]

_WORTH = 10
"""A checkpoint is written again without deleted files when these are at least one row in this many."""
_TIMES = 4
"""The next checkpoint waits while the last one has more than this multiple of the bytes of the entries since ..."""
_INTERVALS = 10
"""... and for fewer than this number of intervals."""


def checkpoint_due(table: Path, before: int, version: int) -> bool:
    """Whether commits above version ``before`` up to ``version`` make a checkpoint due."""
    return _interval_passed(before, version) and not _can_wait(table, version)


def _interval_passed(before: int, version: int) -> bool:
    """Whether a multiple of the interval is above version ``before`` and not above ``version``.

    >>> [_interval_passed(before, version) for before, version in ((-1, 3), (8, 9), (9, 10), (7, 12), (10, 19))]
    [False, False, True, True, False]
    """
    interval = limits().checkpoint_interval
    return version // interval > max(before, 0) // interval


def _can_wait(table: Path, version: int) -> bool:
    """Whether a further checkpoint would save readers of a version little.

    In an object store each entry that they read is a request, so no checkpoint waits.
    """
    if not store_of(table).local_paths:
        return False
    log = table / "_delta_log"
    try:
        names_of = checkpoints(log)
        last = max((number for number in names_of if number <= version), default=-1)
        if last < 0 or version - last >= _INTERVALS * limits().checkpoint_interval:
            return False
        since = (entry_path(table, number) for number in range(last + 1, version + 1))
        return sum((log / name).stat().st_size for name in names_of[last]) > _TIMES * sum(entry.stat().st_size for entry in since)
    except OSError:  # making a checkpoint copes with a disk that fails, and with files that somebody removes
        return False


def checkpoint(table: Path, version: int) -> None:
    """Write a checkpoint of a version that an epoch names, durably.

    Readers open this version at any time and must never find half a checkpoint. So deltalake writes it in a scratch directory,
    from the log's files up to the version, and it gets its name in the log when it is finished and durable. A failure is only
    logged, and the next checkpoint is tried: without one, readers read more of the log.
    """
    try:
        with store_of(table).scratch_directory(table) as scratch:
            _made(table, version, scratch)
    except (DeltaError, OSError, NotDurableError, StoreBusyError, StorageFailedError) as error:
        logging.getLogger("warehouse").warning("%s: no checkpoint of version %d (%s)", table, version, error)


def _made(table: Path, version: int, scratch: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - one commit in ten

    log, scratch_log, store = table / "_delta_log", scratch / "_delta_log", store_of(table)
    scratch_log.mkdir()
    names_of = checkpoints(log)
    start = max((number for number in names_of if number < version), default=-1)
    needed = [*names_of.get(start, ()), *(entry_path(table, number).name for number in range(start + 1, version + 1))]
    begin = entry_path(table, start)
    needed += [begin.name] if start >= 0 and begin.exists() else []  # a log that was cut may begin without it
    store.bring([log / name for name in needed], scratch_log)
    DeltaTable(str(scratch), version=version).create_checkpoint()
    names = checkpoints(scratch_log).get(version, [])
    if len(names) == 1:
        _forget_gone(scratch_log / names[0], table)
    store.publish(scratch_log, names, log)
    (log / "._last_checkpoint.crc").unlink(missing_ok=True)  # Hadoop's sum of the former one would deny it
    store.write_replacing(log / "_last_checkpoint", (scratch_log / "_last_checkpoint").read_bytes())


def _forget_gone(checkpoint: Path, table: Path) -> None:
    """Drop the removed files that no longer exist from a checkpoint that deltalake wrote and nobody reads yet."""
    import pyarrow as pa  # noqa: PLC0415 - one commit in ten
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    file = pq.ParquetFile(checkpoint)
    removed = _paths(file.read(columns=["remove.path"])["remove"])
    rows, least = len(removed), len(removed) / _WORTH
    if len(removed) - removed.count(None) < least:
        return  # and a store need not be asked for its files
    present = store_of(table).present(table, {path for path in removed if path is not None})
    stays = [path is None or path in present for path in removed]
    remaining = stays.count(True)
    if rows - remaining < least or rows == remaining:
        return
    written = checkpoint.with_suffix(".some")
    with pq.ParquetWriter(written, file.schema_arrow, compression="snappy", write_page_checksum=True) as writer:
        start = 0
        for batch in file.iter_batches():
            mask = pa.array(stays[start : start + batch.num_rows], pa.bool_())
            writer.write_batch(batch.filter(mask))
            start += batch.num_rows
    written.replace(checkpoint)
    pointer = checkpoint.with_name("_last_checkpoint")
    summary = {**json.loads(pointer.read_bytes()), "size": remaining, "sizeInBytes": checkpoint.stat().st_size}
    pointer.write_text(json.dumps(summary, separators=(",", ":")))


def _paths(removed: pa.ChunkedArray) -> list[str | None]:
    """Return the removed file of each row of a checkpoint; None: no removed file, or one outside the table's directory."""
    paths = (None if entry is None else entry["path"] for entry in removed.to_pylist())
    return [None if path is None or "://" in path else unquote(path) for path in paths]


def drop_torn_checkpoints(table: Path, version: int) -> None:
    """Remove the checkpoints at and above ``version`` that a power loss truncated, if the log is complete without them.

    Nothing is lost: the commits that they sum up exist. A complete checkpoint stays. In an object store all are complete.
    """
    if not store_of(table).local_paths:
        return
    log = table / "_delta_log"
    names_of = checkpoints(log)
    torn = {number for number, names in names_of.items() if not all(whole_parquet(log / name) for name in names)}
    for number in sorted((torn_version for torn_version in torn if torn_version >= version), reverse=True):
        start = max((other for other in names_of if other < number and other not in torn), default=-1)
        if all(entry_path(table, commit_version).exists() for commit_version in range(start + 1, number + 1)):
            (log / "_last_checkpoint").unlink(missing_ok=True)
            for name in names_of[number]:
                (log / name).unlink()
            store_of(log).sync_directory(log)
