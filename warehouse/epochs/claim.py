"""The writer's claim of a warehouse in an object store, which has no file lock that ends with its process.

A claim is an object that names its holder. A conditional put makes it, and the holder writes it again every few seconds. Another
process may take over a claim that was not written for ``Limits.claim_seconds``, or whose holder was a process of the same host
that has ended, by a put on condition that the claim is still the same. Time is the store's: the age of a claim is the difference
between its modification and that of an object written just now.

The claim keeps writers from disturbing each other; the integrity of the warehouse does not depend on it. A process can be delayed
for longer than any lease and then continue. Its later writes are harmless, because every record and every commit has a unique
name that is written once, on condition that it is free (:meth:`warehouse.storage.store.Store.write_exclusive`,
:func:`warehouse.storage.entries.append_entry`), and because data files never share a name.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.errors import LockHeldError, PlatformError, WarehouseError
from warehouse.limits import limits
from warehouse.objects.path import object_path
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.objects.path import ObjectPath

__all__ = ["CLAIM", "RUN_CLAIM", "announce", "holder", "store_claim"]

CLAIM = ".update.claim.json"
RUN_CLAIM = ".run.claim.json"
"""The claim of the process that keeps a warehouse up to date."""
_CLOCK = ".update.clock"
_doing: dict[str, str] = {}
"""The current work of this process in each root; the next renewal of the claim records it."""


@contextmanager
def store_claim(root: Path, now: int, name: str = CLAIM) -> Iterator[None]:
    """Hold the claim; ``now`` (microseconds) is recorded for other processes that find it held.

    Raises
    ------
    LockHeldError
        When another process holds it.
    PlatformError
        When the store has no conditional puts, or there is no bucket.

    """
    path = object_path(root / name)
    facts = {"host": socket.gethostname(), "pid": os.getpid(), "since": format_instant(now), "token": uuid.uuid4().hex}
    tag = _claim(path, facts)
    stop = threading.Event()
    keeper = threading.Thread(target=_keep, args=(path, facts, tag, stop), name="claim", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join()
        _doing.pop(str(root), None)
        if _read(path).get("token") == facts["token"]:
            path.unlink()


def announce(root: Path, doing: str) -> None:
    """Note the current work of the holder; the claim records it within seconds."""
    _doing[str(root)] = doing


def holder(root: Path, now: int) -> Mapping[str, object] | None:
    """Return the claim's record if its holder still writes it, by this machine's clock (``now`` in microseconds)."""
    path = object_path(root / CLAIM)
    try:
        record, written = _read(path), path.stat().st_mtime
    except FileNotFoundError:
        return None
    alive = now / 1e6 - written < limits().claim_seconds and not _holder_has_ended(record)
    return record if alive and record.keys() >= {"pid", "host", "since"} else None


def _claim(path: ObjectPath, facts: Mapping[str, object]) -> str:
    content = json.dumps(facts).encode()
    try:
        tag = path.put(content, "create")
    except FileNotFoundError:
        raise PlatformError(f"{path.parent}: there is no such bucket; make it, or correct `root`") from None
    except FileExistsError:
        return _taken_over(path, content)
    try:
        path.put(b"{}", "create")
    except FileExistsError:
        return tag
    raise PlatformError(
        f"{path.parent}: the store does not heed If-None-Match, so two updates could write over each other; "
        f"use one with conditional puts"
    )


def _taken_over(path: ObjectPath, content: bytes) -> str:
    """Take over the claim of a holder that has ended."""
    try:
        claim_bytes, tag = path.read_with_tag()
        record = json.loads(claim_bytes)
        written = path.stat().st_mtime
    except FileNotFoundError:
        raise LockHeldError("another process, which has just ended") from None
    clock = path.with_name(_CLOCK)
    clock.put(b"now")
    age = clock.stat().st_mtime - written
    lease = limits().claim_seconds
    if age < lease and not _holder_has_ended(record):
        raise LockHeldError(
            f"process {record.get('pid')} on {record.get('host')} since {record.get('since')}; "
            f"it was alive {max(0, round(age))} s ago (one that is gone for {lease:.0f} s is taken over)"
        )
    try:
        return path.put(content, {"e_tag": tag})
    except (FileExistsError, FileNotFoundError):
        raise LockHeldError("another process, which took over just now") from None


def _holder_has_ended(record: Mapping[str, object]) -> bool:
    """Whether the holder in a claim's record ran on this host and has ended, as far as this process can see."""
    is_running = Path(f"/proc/{record.get('pid')}").exists()
    return record.get("host") == socket.gethostname() and not is_running and Path("/proc/self").exists()


def _keep(path: ObjectPath, facts: Mapping[str, object], tag: str, stop: threading.Event) -> None:
    """Keep writing the claim until another process has it."""
    number = 0
    while not stop.wait(limits().claim_renewal_seconds):
        number += 1
        try:
            doing = _doing.get(str(path.parent))
            record = {**facts, "signs": number, **({"doing": doing} if doing else {})}
            tag = path.put(json.dumps(record).encode(), {"e_tag": tag})
        except (FileExistsError, FileNotFoundError):
            text = "%s was taken over: this process gave no sign of life for too long; what it does from here on will be refused"
            logging.getLogger("warehouse").warning(text, path)
            return
        except WarehouseError:
            continue  # the store is busy; only the last successful writing counts


def _read(path: ObjectPath) -> Mapping[str, object]:
    try:
        record = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
