"""Restoring a backup into a project: its ``warehouse.toml`` where there is none, and its root."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from warehouse.catalog.load import load_catalog
from warehouse.operations.backup import read_backup, restore_backup

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.operations.backup import Backup

__all__ = ["restore_project"]


def restore_project(directory: Path, backup: Path, *, now: int, replace: bool = False) -> Backup:
    """Restore a backup into a project directory; a ``warehouse.toml`` that is there stays, and says where the root is.

    Raises
    ------
    BackupError
        When the backup is not whole, or a root is there and was not to be replaced.

    """
    read_backup(backup)
    configuration = directory / "warehouse.toml"
    if not configuration.exists():
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy2(backup / "warehouse.toml", configuration)
    return restore_backup(backup, load_catalog(directory).root, now=now, replace=replace)
