"""What a writer calls durable was synced to the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from warehouse.storage.local_disk import LocalDisk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_new_file_is_synced_with_each_directory_that_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content, its directory, and the directories that name new directories; a replacement is synced as well."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    (tmp_path / "warehouse.toml").touch()  # an empty directory would count as new
    file = tmp_path / "table" / "log" / "0.json"
    LocalDisk().write_exclusive(file, b"content")
    assert sorted(synced) == sorted(path.stat().st_ino for path in (file, *file.parents[:3]))
    synced.clear()
    LocalDisk().write_replacing(file, b"other")
    assert sorted(synced) == sorted(path.stat().st_ino for path in (file, file.parent))
