"""A log of how many files reads opened and how long they took, for ``stream-wh advise``: outside the root, without keys or rows.

It is in the reading user's state directory, one file of JSON lines for each root. Entries are collected in memory and appended by
one write when there are many, when some time has passed, or when the process ends. A user without write permission has no log,
and no read ever fails or waits because of it. ``read_log = "off"`` in ``[warehouse]`` and ``STREAM_WH_READ_LOG=off`` turn it off;
the variable may also name another directory.
"""

from __future__ import annotations

import hashlib
import os
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from warehouse.limits import limits

if TYPE_CHECKING:
    from warehouse.serving.answer import Explain

__all__ = ["VARIABLE", "Read", "ReadLog", "log_file", "reads_of"]

VARIABLE = "STREAM_WH_READ_LOG"
_MOST_ENTRIES = 64
_SECONDS = 30.0


class Read(msgspec.Struct, frozen=True, omit_defaults=True):
    """One read of a table.

    ``at`` is its end in microseconds; ``keys`` the number of its keys (0: a range or a scan); ``first``: the reader had not
    probed the table before; ``files`` counts the files with live rows, of which ``opened`` were read.
    """

    at: int
    table: str
    kind: str
    seconds: float
    keys: int = 0
    first: bool = False
    files: int = 0
    opened: int = 0
    rows: int = 0


def log_file(root: Path) -> Path | None:
    """Return the log of this user's reads of a root; None if it is turned off, or the user has no home directory."""
    setting = os.environ.get(VARIABLE, "")
    if setting == "off":
        return None
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:  # no home directory
        return None
    directory = Path(setting) if setting else state / "stream-wh" / "reads"
    return directory / f"{hashlib.sha256(os.fsencode(str(root.resolve()))).hexdigest()[:16]}.jsonl"


class ReadLog:
    """The entries of one reader and its answers; they are written at the latest when all of these, or the process, end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: list[bytes] = []
        self._since = time.monotonic()
        self._probed: set[str] = set()
        weakref.finalize(self, _append, file, self._lines)

    def add(self, kind: str, keys: int, explained: Explain) -> None:
        """Add a read that has ended."""
        plan = explained.plan
        entry = Read(
            at=time.time_ns() // 1000,
            table=plan.table,
            kind=kind,
            seconds=round(explained.milliseconds / 1000, 6),
            keys=keys,
            first=plan.table not in self._probed,
            files=plan.files_considered - plan.files_expired,
            opened=plan.files_read,
            rows=explained.rows,
        )
        self._probed.add(plan.table)
        self._lines.append(msgspec.json.encode(entry))
        if len(self._lines) >= _MOST_ENTRIES or time.monotonic() - self._since > _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Append the collected entries to the file."""
        self._since = time.monotonic()
        _append(self._file, self._lines)


def _append(path: Path, lines: list[bytes]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    lines.clear()
    if not text:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text)
            size = file.tell()
        if size > limits().read_log_bytes:
            path.replace(_older(path))
    except OSError:
        return  # who may not write here has no log


def reads_of(root: Path) -> tuple[Read, ...]:
    """Return the entries of this user's log of a root, oldest first; invalid lines are left out."""
    file = log_file(root)
    if file is None:
        return ()
    reads = []
    for path in (_older(file), file):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        for line in text.splitlines():
            try:
                read = msgspec.json.decode(line, type=Read)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if read.seconds > 0 and 0 <= read.opened <= read.files and read.rows >= 0:
                reads.append(read)
    return tuple(reads)


def _older(file: Path) -> Path:
    return file.with_suffix(".older.jsonl")
