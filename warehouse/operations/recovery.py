"""Restores a backup into a project: its root, and its ``warehouse.toml`` if the project has no such file.

It verifies everything, copies it next to the root and syncs it to the disk. Then ``warehouse.toml`` appears, and directly after
it the root, by a rename. A failure before leaves the project unchanged.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.load import FILE_NAME, load_catalog
from warehouse.epochs.journal import read_epoch
from warehouse.epochs.lock import writer_lock
from warehouse.errors import BackupError, StorageFailedError
from warehouse.operations.backup import verify
from warehouse.publishing.database import replace_database_if_needed
from warehouse.publishing.live.publish import live_rules, publish_live_tables
from warehouse.storage.store import store_of
from warehouse.views.readable_views import readable_views

if TYPE_CHECKING:
    from warehouse.operations.backup import Backup

__all__ = ["restore_project"]


def restore_project(directory: Path, backup: Path, *, now: int, replace: bool = False) -> Backup:
    """Restore a backup into a project directory; an existing ``warehouse.toml`` stays, and names the root.

    Parameters
    ----------
    directory
        The project.
    backup
        The backup.
    now
        The clock, in microseconds.
    replace
        Whether an existing root is renamed; nothing of it is deleted.

    Raises
    ------
    BackupError
        When the backup is incomplete, or a root exists and may not or cannot be replaced.
    StorageFailedError
        When a file cannot be written.

    """
    record = verify(backup)
    configuration = directory / FILE_NAME
    saved_configuration = None if configuration.exists() else backup / FILE_NAME
    catalog = load_catalog(directory, saved_configuration, facts_of_views=readable_views)
    root = catalog.root
    if not store_of(root).local_paths:
        raise BackupError(f"{root} is in an object store; restore to a local root: name one in warehouse.toml")
    root = root.resolve()  # a link stays, and its target is replaced
    if root.is_mount():
        raise BackupError(f"{root} is where a file system is mounted, which cannot be renamed; name a directory in it as root")
    exists = root.exists() and any(root.iterdir())
    if exists and not replace:
        raise BackupError(f"{root} is not empty; restore into another project, or give --replace to set it aside")
    staging = root.with_name(f".{root.name}.restoring")
    try:
        _copy(record, backup, staging)
        with ExitStack() as undo:
            if saved_configuration is not None:
                store_of(configuration).write_exclusive(configuration, saved_configuration.read_bytes())
                undo.callback(configuration.unlink)
            _rename_into_place(staging, root, now, there=exists)
            undo.pop_all()
        store_of(root.parent).sync_directory(root.parent)
    except OSError as error:
        raise StorageFailedError(f"{error.filename or root}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    epoch = read_epoch(root, record.epoch)
    replace_database_if_needed(root, epoch)
    publish_live_tables(root, epoch, live_rules(catalog), now=now)
    return record


def _copy(record: Backup, backup: Path, target: Path) -> None:
    """Copy the files of a root, and force them to the disk."""
    shutil.rmtree(target, ignore_errors=True)
    for file in record.files:
        relative = Path(file.path)
        if relative.parts[0] == "root":
            target_path = target.joinpath(*relative.parts[1:])
            target_path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(backup / file.path, target_path)
            store_of(target_path).sync_file(target_path)
    for path in (target, *(path for path in target.rglob("*") if path.is_dir())):
        store_of(path).sync_directory(path)


def _rename_into_place(restored: Path, root: Path, now: int, *, there: bool) -> None:
    """Rename the restored root into place; an existing root gets another name."""
    if there:
        with writer_lock(root, now):  # no update is at work in it
            aside = root.rename(root.with_name(f"{root.name}.before-{now}"))
            with ExitStack() as undo:
                undo.callback(aside.rename, root)
                restored.rename(root)
                undo.pop_all()
    else:
        if root.exists():
            root.rmdir()
        restored.rename(root)
