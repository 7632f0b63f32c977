"""Restores a table to the files of an earlier version, by one commit.

Files that were removed since are added as new links to the same bytes, under new names. So each name is added once and removed
once in the life of a table, and the list of removed files for vacuum stays right. Files are copied if there are no links, as in
object stores.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.storage.fingerprint import damage
from warehouse.storage.key_summaries import share_summary
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.replay import LogState, replay
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import TableCommit, carry_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path, PurePath

    from warehouse.storage.entries import LogEntry

__all__ = ["lost_files", "restore_table"]

_RESTORED = re.compile(r"^restored-\d+-")


def lost_files(table: Path, version: int) -> list[str]:
    """Return the data files of a table at a version that are missing or damaged, relative to the table.

    Raises
    ------
    MissingPartError
        When its log does not reach that version.

    """
    return [
        path
        for path, add in replay(table, version).files.items()
        if not (table / path).is_file() or (table / path).stat().st_size != add["size"] or _is_damaged(table / path)
    ]


def _is_damaged(file: Path) -> bool:
    return store_of(file).cheap_requests and damage(file) is not None


def restore_table(
    table: Path, base: LogEntry, to_version: int, *, epoch: int, metadata: Mapping[str, Any], at: int
) -> LogEntry:
    """Commit the files and columns of ``to_version`` on an entry, exclusively, and return the entry made; -1: no file.

    Parameters
    ----------
    table
        The table's directory.
    base
        The newest entry.
    to_version
        The version to go back to.
    epoch
        The epoch that the commit is of; it is part of the names of files that come back.
    metadata
        The commit's user metadata.
    at
        The instant of the commit in microseconds.

    """
    now = replay(table, base.version)
    then = replay(table, to_version) if to_version >= 0 else LogState(-1, now.protocol, now.metadata)
    milliseconds = at // 1000
    definitions = []
    if then.metadata.get("schemaString") != now.metadata.get("schemaString"):
        definitions.append({"metaData": {**then.metadata, "configuration": now.metadata.get("configuration") or {}}})
    added: list[dict[str, Any]] = []
    back: list[PurePath] = []
    with undone_on_failure(lambda: store_of(table).take_back(table, back)):
        for path, add in then.files.items():
            if path not in now.files:
                added.append(_add_under_new_name(table, add, epoch, milliseconds))
                back.append(PurePosixPath(unquote(added[-1]["path"])))
        store_of(table).sync_tree(table, back)
        commit = TableCommit(
            "RESTORE",
            milliseconds,
            metadata,
            parameters={"version": to_version},
            definitions=definitions,
            added=added,
            removed=[add for path, add in now.files.items() if path not in then.files],
        )
        return carry_out(table, base, commit)


def _add_under_new_name(table: Path, add: Mapping[str, Any], epoch: int, milliseconds: int) -> dict[str, Any]:
    """Give a file's bytes a further name and return the ``add`` action of that name."""
    directory, _, name = add["path"].rpartition("/")
    encoded = f"restored-{epoch}-{_RESTORED.sub('', name)}"
    encoded = f"{directory}/{encoded}" if directory else encoded
    source, target = table / unquote(add["path"]), table / unquote(encoded)
    store_of(table).take_back(table, [PurePosixPath(unquote(encoded))])  # made by an attempt before a crash
    store_of(table).link_or_copy(source, target)
    share_summary(source, target)
    return {**add, "path": encoded, "modificationTime": milliseconds, "dataChange": True}
