"""The writer lock: one update per warehouse.

A file lock that dies with its process, and a second one that the update's JVM holds until it has ended: an
orphaned JVM may still be writing files where the next update stages its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from warehouse.errors import LockHeldError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["jvm_lock_path", "keep_jvm_lock", "writer_lock"]

_ORPHAN_SECONDS = 60.0
_PAUSE_SECONDS = 0.1


_kept: set[Path] = set()


def keep_jvm_lock(root: Path) -> None:
    """Remember that this process's own JVM goes on holding its lock: it is no orphan, and Delta orders its commits."""
    _kept.add(root.resolve())


def jvm_lock_path(root: Path) -> Path:
    """Return the file that the JVM of an update locks."""
    return root / ".update.jvm.lock"


@contextmanager
def writer_lock(root: Path, now: int) -> Iterator[None]:
    """Hold the writer lock of a warehouse; ``now`` (microseconds) is recorded for whoever finds it held.

    Raises
    ------
    LockHeldError
        When another update holds it: with its host, process and since when.

    """
    root.mkdir(parents=True, exist_ok=True)
    holder = root / ".update.holder.json"
    lock = FileLock(root / ".update.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockHeldError(_described(holder)) from None
    try:
        if root.resolve() not in _kept:
            _await_orphan(root, holder)
        _kept.discard(root.resolve())
        record = {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now)}
        holder.write_text(json.dumps(record))
        yield
        holder.unlink(missing_ok=True)
    finally:
        lock.release()


def _described(holder: Path) -> str:
    try:
        record = json.loads(holder.read_text())
        return f"process {record['pid']} on {record['host']} since {record['since']}"
    except (OSError, ValueError, KeyError):
        return "another process"


def _await_orphan(root: Path, holder: Path) -> None:
    """Wait until no JVM of a dead update is left: it ends by itself once its parent is gone."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    with jvm_lock_path(root).open("a") as stream:
        while True:
            try:
                fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    raise LockHeldError(f"the Spark process left behind by {_described(holder)}") from None
                time.sleep(_PAUSE_SECONDS)
            else:
                fcntl.lockf(stream, fcntl.LOCK_UN)
                return
