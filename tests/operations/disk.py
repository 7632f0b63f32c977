"""A disk that loses what was not synced: it follows the syncs of an update and knows what a power loss would leave.

A file has the bytes of its last sync on the disk; a name is in a directory if it was there at the directory's last sync::

    on(p)  <=>  p's bytes were synced as they are, and each directory from the top to p was synced when it had the next name

It is asked when files are named: a log entry's files when the entry gets its name, all files of an epoch when the epoch's
record gets its name.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from warehouse.epochs.journal import read_record
from warehouse.epochs.records import Epoch

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Disk", "FailingDisk"]


class Disk:
    """The state of the directory ``top`` on the disk; ``entries`` counts the checked log entries, by operation."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._lock = threading.Lock()
        self.faults: list[str] = []
        self.entries: dict[str, int] = {}
        self.epochs = 0
        self._take(top.parent)
        for path in [top, *top.rglob("*")]:
            self._take(path)

    def __call__(self, kind: Literal["sync", "name"], path: Path) -> None:
        """Follow one event."""
        if not path.is_relative_to(self._top):
            return
        with self._lock:
            if kind == "sync":
                self._take(path)
            elif path.parent.name == "_delta_log" and path.suffix == ".json" and path.stem.isdigit():
                self._judge_entry(path)
            elif path.name.endswith(".epoch.json"):
                self._judge_epoch(path)

    def _take(self, path: Path) -> None:
        number = path.stat().st_ino
        if path.is_dir():
            with os.scandir(path) as entries:
                self._names[number] = {entry.name: entry.inode() for entry in entries}
        else:
            self._bytes[number] = path.read_bytes()

    def on(self, path: Path) -> bool:
        """Return whether a power loss now would leave a file unchanged."""
        at = self._top
        for name in path.relative_to(self._top).parts:
            if self._names.get(at.stat().st_ino, {}).get(name) != (at / name).stat().st_ino:
                return False
            at /= name
        return self._bytes.get(path.stat().st_ino) == path.read_bytes()

    def _require(self, path: Path, name: Path) -> None:
        if not self.on(path):
            self.faults.append(f"{name.relative_to(self._top)} names {path.relative_to(self._top)}, which is not on the disk")

    def _judge_entry(self, entry: Path) -> None:
        table = entry.parent.parent
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "commitInfo" in action:
                operation = action["commitInfo"]["operation"]
                self.entries[operation] = self.entries.get(operation, 0) + 1
            if "add" in action:
                self._require(table / unquote(action["add"]["path"]), entry)

    def _judge_epoch(self, record: Path) -> None:
        self.epochs += 1
        epoch, root = read_record(record, Epoch), record.parent.parent
        for state in epoch.tables:
            self._require(root / state.schema_file, record)
            for path, version in [(state.path, state.version), *((side.path, side.version) for side in state.sides)]:
                for entry in (root / path / "_delta_log").glob("*.json"):
                    if entry.stem.isdigit() and int(entry.stem) <= version:
                        self._require(entry, record)


class FailingDisk:
    """A disk whose ``failing``-th sync fails; a file of that sync keeps nothing but zeros."""

    def __init__(self, failing: int = -1) -> None:
        self._failing = failing
        self._lock = threading.Lock()
        self.syncs: list[str] = []

    def __call__(self, kind: Literal["sync", "name"], path: Path) -> None:
        """Count a sync, and fail it when it is its turn."""
        if kind != "sync":
            return
        with self._lock:
            self.syncs.append(path.name)
            if len(self.syncs) != self._failing + 1:
                return
        if path.is_file() and path.stat().st_nlink == 1:
            path.chmod(0o644)
            path.write_bytes(bytes(path.stat().st_size))
        raise OSError(errno.EIO, os.strerror(errno.EIO))
