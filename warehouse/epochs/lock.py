"""The writer lock: one update per warehouse.

A file lock that dies with its process, and a second one that the update's JVM holds until it has ended: an
orphaned JVM may still be writing files where the next update stages its own. In an object store there is neither:
:mod:`warehouse.epochs.claim`.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from warehouse.epochs.claim import store_claim
from warehouse.errors import LockHeldError
from warehouse.objects.path import ObjectPath
from warehouse.storage.durable import make_directory
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["jvm_lock_path", "keep_jvm_lock", "writer_lock"]

_ORPHAN_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_ANNOUNCED_SECONDS = 0.5


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
    if isinstance(root, ObjectPath):
        with store_claim(root, now):
            yield
        return
    make_directory(root)
    holder = root / ".update.holder.json"
    lock = FileLock(root / ".update.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockHeldError(_described(holder)) from None
    try:
        before = _record(holder)
        _write(holder, {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now)})
        if root.resolve() not in _kept:
            try:
                _await_orphan(root, _named(before))
            except LockHeldError:
                _write(holder, before)  # whose Spark it still is
                raise
        _kept.discard(root.resolve())
        yield
        holder.unlink(missing_ok=True)
    finally:
        lock.release()


def _described(holder: Path) -> str:
    """Tell who holds the lock; whoever has just taken it says so in a moment, in place of one that died with it."""
    deadline = time.monotonic() + _ANNOUNCED_SECONDS
    while (record := _record(holder)) is None or _dead(record):
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_SECONDS / 5)
    return _named(record)


def _record(holder: Path) -> Mapping[str, object] | None:
    try:
        record = json.loads(holder.read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.keys() >= {"pid", "host", "since"} else None


def _write(holder: Path, record: Mapping[str, object] | None) -> None:
    """Record a holder, whole or not at all."""
    if record is None:
        holder.unlink(missing_ok=True)
        return
    temporary = holder.with_suffix(".tmp")
    temporary.write_text(json.dumps(record))
    temporary.replace(holder)


def _named(record: Mapping[str, object] | None) -> str:
    return f"process {record['pid']} on {record['host']} since {record['since']}" if record else "another process"


def _dead(record: Mapping[str, object]) -> bool:
    """Whether a holder was of this host and is gone, as far as this process can see."""
    return record["host"] == socket.gethostname() and not Path(f"/proc/{record['pid']}").exists() and Path("/proc/self").exists()


def _await_orphan(root: Path, holder: str) -> None:
    """Wait until no JVM of a dead update is left: it ends by itself once its parent is gone."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    with jvm_lock_path(root).open("a") as stream:
        while True:
            try:
                fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    raise LockHeldError(f"the Spark process left behind by {holder}") from None
                time.sleep(_PAUSE_SECONDS)
            else:
                fcntl.lockf(stream, fcntl.LOCK_UN)
                return
