"""The writer lock: one update per warehouse; and the lock of the process that updates at every grid point.

One file lock ends with its process. The update's JVM holds a second one until it has ended, since an orphaned JVM may still write
files to the directory in which the next update stages its files. In an object store :mod:`warehouse.epochs.claim` replaces both.
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

from warehouse.epochs import claim
from warehouse.errors import LockHeldError, RunHeldError
from warehouse.health import Running
from warehouse.limits import limits
from warehouse.storage.store import store_of
from warehouse.time import format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LOCK_FILES", "announce", "jvm_lock_path", "keep_jvm_lock", "run_lock", "running", "writer_lock"]

LOCK_FILES = (
    ".update.lock", ".update.jvm.lock", ".update.holder.json", ".run.lock", ".run.holder.json", claim.CLAIM, claim.RUN_CLAIM,
)  # fmt: skip
"""The lock files in a root; no rows are in them."""

_PAUSE_SECONDS = 0.1
_ANNOUNCED_SECONDS = 0.5


_kept: set[Path] = set()


def keep_jvm_lock(root: Path) -> None:
    """Remember that this process's own JVM holds its lock: it is not an orphan, and Delta orders its commits."""
    _kept.add(root.resolve())


def jvm_lock_path(root: Path) -> Path:
    """Return the file that the JVM of an update locks."""
    return root / ".update.jvm.lock"


@contextmanager
def writer_lock(root: Path, now: int) -> Iterator[None]:
    """Hold the writer lock of a warehouse; ``now`` (microseconds) is recorded for other processes that find it held.

    Raises
    ------
    LockHeldError
        When another update holds it: with its host, process and since when.

    """
    if not store_of(root).local_paths:
        with claim.store_claim(root, now):
            yield
        return
    store_of(root).make_directory(root)
    holder = _holder(root)
    lock = FileLock(root / ".update.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockHeldError(_described(holder)) from None
    try:
        former_record = _record(holder)
        _write(holder, {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now)})
        if root.resolve() not in _kept:
            try:
                _await_orphan(root, _named(former_record))
            except LockHeldError:
                _write(holder, former_record)  # its Spark is still running
                raise
        _kept.discard(root.resolve())
        yield
        holder.unlink(missing_ok=True)
    finally:
        lock.release()


@contextmanager
def run_lock(root: Path, now: int) -> Iterator[None]:
    """Hold the lock of the process that keeps a warehouse up to date (``stream-wh run``); updates by hand do not need it.

    Raises
    ------
    RunHeldError
        When another process holds it: with its host, process and since when.

    """
    if not store_of(root).local_paths:
        try:
            with claim.store_claim(root, now, claim.RUN_CLAIM):
                yield
        except LockHeldError as error:
            raise RunHeldError(error.holder) from None
        return
    store_of(root).make_directory(root)
    lock, holder = FileLock(root / ".run.lock", timeout=0), root / ".run.holder.json"
    try:
        lock.acquire()
    except Timeout:
        raise RunHeldError(_described(holder)) from None
    try:
        _write(holder, {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now)})
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def announce(root: Path, doing: str) -> None:
    """Record the present step of this process's update, for callers of :func:`running`; other processes' records stay."""
    if not store_of(root).local_paths:
        claim.announce(root, doing)
        return
    record = _record(_holder(root))
    if record is not None and record["pid"] == os.getpid() and record["host"] == socket.gethostname():
        _write(_holder(root), {**record, "doing": doing})


def running(root: Path, now: int) -> Running | None:
    """Return the running update, or None. It takes no lock, so it does not disturb an update.

    Parameters
    ----------
    root
        The warehouse's directory.
    now
        The clock's instant in microseconds, by which the age of a claim in an object store is judged.

    """
    locks = store_of(root).local_paths
    record = _holder_at_work(root) if locks else claim.holder(root, now)
    if record is None:
        return None
    doing = record.get("doing")
    is_known = record["host"] == socket.gethostname() or not locks
    note = "" if is_known else " (whether it still runs is known on that host only)"
    return Running(f"process {record['pid']} on {record['host']}{note}", _since(record), str(doing) if doing else None)


def _since(record: Mapping[str, object]) -> int | None:
    try:
        return parse_instant(str(record["since"]))
    except ValueError:
        return None


def _holder_at_work(root: Path) -> Mapping[str, object] | None:
    """Return the record of the lock's holder; a holder that ended with an error leaves its record, but not its lock."""
    record = _record(_holder(root))
    if record is None or _dead(record):
        return None
    return None if record["host"] == socket.gethostname() and not _is_locked(root / ".update.lock") else record


def _is_locked(path: Path) -> bool:
    """Whether a process of this host has locked a file; True where the system does not list locks."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except FileNotFoundError:
        return path.exists()
    except OSError:
        return True
    return any(line.split()[5].endswith(f":{inode}") for line in locks.splitlines() if "FLOCK" in line and "->" not in line)


def _holder(root: Path) -> Path:
    return root / ".update.holder.json"


def _described(holder: Path) -> str:
    """Return who holds the lock. A process that has just taken it replaces the record of its dead predecessor in a moment."""
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
    """Record a holder; readers see a complete record or no record."""
    if record is None:
        holder.unlink(missing_ok=True)
        return
    temporary = holder.with_suffix(".tmp")
    temporary.write_text(json.dumps(record))
    temporary.replace(holder)


def _named(record: Mapping[str, object] | None) -> str:
    return f"process {record['pid']} on {record['host']} since {record['since']}" if record else "another process"


def _dead(record: Mapping[str, object]) -> bool:
    """Whether a holder was a process of this host that has ended, as far as this process can see."""
    return record["host"] == socket.gethostname() and not Path(f"/proc/{record['pid']}").exists() and Path("/proc/self").exists()


def _await_orphan(root: Path, holder: str) -> None:
    """Wait until no JVM of a dead update is left: a JVM ends after its parent has ended."""
    deadline = time.monotonic() + limits().orphan_seconds
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
