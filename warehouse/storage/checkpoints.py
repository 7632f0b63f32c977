"""Checkpoints of a table's log: summed up at versions that an epoch names, and never cut by it.

A checkpoint is made after the epoch's record, so whatever is given up before has none; the log is cut by
:func:`warehouse.storage.logcut.trim_log` alone, below what the oldest readable epoch names. Neither deltalake's cleanup after
a commit nor that of another writer may do it: they go by the age of the log's files, and after a rest of some weeks delete
the very version that the newest epoch names (so ``delta.enableExpiredLogCleanup`` is false in all tables).

A checkpoint also names files that have left the table, so that a VACUUM spares them for a while: deltalake names all that left
within ``delta.deletedFileRetentionDuration``, a week at least. Those that are not on the disk any more need no sparing: our
vacuum has deleted them, since no readable epoch names them. They are taken out once they are a tenth of a checkpoint, so that
checkpoints do not grow with the number of updates. (In an object store they stay for that week.)
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from warehouse.errors import NotDurableError
from warehouse.limits import limits
from warehouse.storage.deltalog import whole_parquet
from warehouse.storage.entries import entry_path
from warehouse.storage.replay import checkpoints
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

__all__ = ["checkpoint", "checkpoint_due", "drop_torn_checkpoints"]

_BESIDE = "_checkpoint"
"""The directory in a table's own where a checkpoint is made."""
_WORTH = 10
"""A checkpoint is written again without the files that are gone when they are one in so many of its rows."""


def checkpoint_due(before: int, version: int) -> bool:
    """Whether commits above version ``before`` up to ``version`` make a checkpoint due.

    >>> [checkpoint_due(before, version) for before, version in ((-1, 3), (8, 9), (9, 10), (7, 12), (10, 19))]
    [False, False, True, True, False]
    """
    interval = limits().checkpoint_interval
    return version // interval > max(before, 0) // interval


def checkpoint(table: Path, version: int) -> None:
    """Sum the log up at a version that an epoch names, durably.

    Readers open that version all the time, so they never meet half a checkpoint: deltalake writes it beside the log, from links
    to its entries, and it gets its name there once it is on the disk. (In an object store a put is whole or not there.)
    Without a checkpoint readers read more of the log, and no more than that: a failure is logged, and the next one is tried.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - one commit in ten

    try:
        if not store_of(table).local_paths:
            DeltaTable(str(table), version=version).create_checkpoint()
        else:
            _checkpoint_on_disk(table, version)
    except (DeltaError, OSError, NotDurableError) as error:
        logging.getLogger("warehouse").warning("%s: no checkpoint of version %d (%s)", table, version, error)


def _checkpoint_on_disk(table: Path, version: int) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - one commit in ten

    log, beside = table / "_delta_log", table / _BESIDE
    store_of(beside).remove_tree(beside, ignore_errors=True)
    made = beside / "_delta_log"
    made.mkdir(parents=True)
    try:
        held = checkpoints(log)
        start = max((each for each in held if each < version), default=-1)
        for name in held.get(start, ()):
            os.link(log / name, made / name)
        for number in range(max(start, 0), version + 1):
            entry = entry_path(table, number)
            if number != start or entry.exists():
                os.link(entry, made / entry.name)
        DeltaTable(str(beside), version=version).create_checkpoint()
        names = checkpoints(made).get(version, [])
        if len(names) == 1:
            _forget_gone(made / names[0], table)
        store_of(made).sync_tree(made, [PurePosixPath(name) for name in names])
        for name in names:
            with suppress(FileExistsError):  # another writer's is as good
                os.link(made / name, log / name)
        store_of(log).sync_directory(log)
        (log / "._last_checkpoint.crc").unlink(missing_ok=True)  # Hadoop's sum of the former one would deny it
        store_of(log / "_last_checkpoint").write_replacing(log / "_last_checkpoint", (made / "_last_checkpoint").read_bytes())
    finally:
        store_of(beside).remove_tree(beside, ignore_errors=True)


def _forget_gone(checkpoint: Path, table: Path) -> None:
    """Take out of a checkpoint of deltalake, which nobody reads yet, the removed files of a table that are not there."""
    import pyarrow as pa  # noqa: PLC0415 - one commit in ten
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    file = pq.ParquetFile(checkpoint)
    stays = _stays(file.read(columns=["remove.path"])["remove"], table)
    left, rows = stays.count(True), len(stays)
    if (rows - left) * _WORTH < rows or rows == left:
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
    told = {**json.loads(pointer.read_bytes()), "size": left, "sizeInBytes": checkpoint.stat().st_size}
    pointer.write_text(json.dumps(told, separators=(",", ":")))


def _stays(removed: pa.ChunkedArray, table: Path) -> list[bool]:
    """Whether each row of a checkpoint stays: all but those of removed files that are not on the disk."""
    paths = (None if each is None else each["path"] for each in removed.to_pylist())
    return [path is None or "://" in path or os.path.lexists(table / unquote(path)) for path in paths]


def drop_torn_checkpoints(table: Path, version: int) -> None:
    """Remove checkpoints at and above ``version`` that a power loss left cut short, where the log reaches without them.

    Nothing is lost with them then: the commits that they sum up are there. One that is whole stays. An object is whole always.
    """
    if not store_of(table).local_paths:
        return
    log = table / "_delta_log"
    held = checkpoints(log)
    torn = {number for number, names in held.items() if not all(whole_parquet(log / name) for name in names)}
    for number in sorted((each for each in torn if each >= version), reverse=True):
        start = max((each for each in held if each < number and each not in torn), default=-1)
        if all(entry_path(table, each).exists() for each in range(start + 1, number + 1)):
            (log / "_last_checkpoint").unlink(missing_ok=True)
            for name in held[number]:
                (log / name).unlink()
            store_of(log).sync_directory(log)
