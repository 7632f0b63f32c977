"""Identifies entries of a Delta log by their content; this is the only module that appends an entry.

An entry is the file of one commit. It is identified by the SHA-256 of its bytes, so an entry of another writer with the same
number is another entry. A commit names the entry that it follows, and succeeds only on that one:

    append(log, base, actions) succeeds  <=>  sha256(entry base.version) = base.sha256  and  entry base.version + 1 is free

The file of the number after the base is created exclusively (by a hard link, or ``If-None-Match: *`` in an object store). So if
another writer commits after the base was read, the append is refused.

An entry is one JSON action a line, in UTF-8. Only characters at which some readers end a line are escaped, such as U+0085, U+2028
and U+2029: delta-rs reads an escaped U+10FFFF as another character (arrow-json adds the halves of a pair by "or"), and would
prune by a bound that is too low. Other writers escape no characters, so a line ends only at a line feed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.errors import ForeignChangeError, LockHeldError, MissingPartError
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "NO_ENTRY",
    "LogEntry",
    "RawCommit",
    "append_entry",
    "decoded",
    "digest",
    "entry_at",
    "entry_lines",
    "entry_path",
    "entry_text",
    "is_replaced",
    "iterate_raw_commits",
    "raw_commit",
    "raw_commits",
    "require_entry",
]


_ENDS_A_LINE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""In strings only: JSON escapes the control characters below U+0020 itself. Half of a pair has no form in UTF-8."""


@dataclass(frozen=True)
class LogEntry:
    """An entry of a table's log: its version and the SHA-256 of its bytes in hexadecimal.

    Without a sum only the version is known, as with epochs that older builds wrote: any entry of that number counts.
    """

    version: int
    sha256: str | None = None


NO_ENTRY = LogEntry(-1)
"""The base of a table's first commit."""


def entry_path(table: Path, version: int) -> Path:
    """Return the log file of a commit."""
    return table / "_delta_log" / f"{version:020d}.json"


def digest(content: bytes) -> str:
    """Return the sum by which an entry of that content is recognised."""
    return hashlib.sha256(content).hexdigest()


def entry_lines(text: str) -> list[str]:
    r"""Return the lines of an entry's text that are not blank; they end at line feeds, as JSON lines do.

    >>> entry_lines('{"add": "a\u2028b"}\n\n{}\n')
    ['{"add": "a\u2028b"}', '{}']
    """
    return [line for line in text.split("\n") if line.strip()]


def entry_text(actions: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of an entry: an action a line; characters that some readers take for the end of a line are escaped."""
    lines = (json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions)
    return _ENDS_A_LINE.sub(lambda match: f"\\u{ord(match[0]):04x}", "".join(lines))


@dataclass(frozen=True)
class RawCommit:
    """The actions of one entry as they were written; None if it cannot be read, with the ``problem``."""

    version: int
    actions: tuple[Mapping[str, Any], ...] | None
    sha256: str | None = None
    problem: str = ""

    @property
    def info(self) -> Mapping[str, Any]:
        """The commit's ``commitInfo``."""
        infos = (action["commitInfo"] for action in self.actions or () if isinstance(action.get("commitInfo"), dict))
        return next(infos, {})

    @property
    def operation(self) -> str:
        """The name of the operation, for people."""
        return "unreadable" if self.actions is None else str(self.info.get("operation") or "unknown")

    @property
    def said(self) -> Mapping[str, Any]:
        """Its ``userMetadata``; empty if it has no JSON object there."""
        try:
            value = json.loads(self.info.get("userMetadata") or "{}")
        except (TypeError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


def decoded(version: int, content: bytes) -> RawCommit:
    """Return the commit that an entry's bytes hold."""
    try:
        actions = tuple(json.loads(line) for line in entry_lines(content.decode()))
    except ValueError as error:
        return RawCommit(version, None, digest(content), str(error))
    problem = (
        "it is empty"
        if not actions
        else ""
        if all(isinstance(action, dict) for action in actions)
        else "it has other values"
    )
    return RawCommit(version, None if problem else actions, digest(content), problem)


def raw_commit(table: Path, version: int) -> RawCommit:
    """Return the commit of a version.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        When the log has no such version.

    """
    return decoded(version, entry_path(table, version).read_bytes())


def iterate_raw_commits(table: Path, version: int) -> Iterator[RawCommit]:
    """Yield the commits of a table above a version (-1: all), in order, up to the first gap."""
    number = version + 1
    while True:
        try:
            commit = raw_commit(table, number)
        except (FileNotFoundError, NotADirectoryError):
            return
        yield commit
        number += 1


def raw_commits(table: Path, version: int) -> list[RawCommit]:
    """Return the commits of a table above a version (-1: all), in order, up to the first gap."""
    return list(iterate_raw_commits(table, version))


def entry_at(table: Path, version: int) -> LogEntry:
    """Return the entry of a version as it is now; of version -1, :data:`NO_ENTRY`.

    Raises
    ------
    MissingPartError
        When it is not there.

    """
    if version < 0:
        return NO_ENTRY
    path = entry_path(table, version)
    try:
        return LogEntry(version, digest(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingPartError(f"{path}: the commit is missing; restore the table's _delta_log from a copy") from None


def require_entry(table: Path, entry: LogEntry) -> LogEntry:
    """Check that the log has an entry, and return it with its sum.

    Raises
    ------
    MissingPartError
        When the log has no entry of that version.
    ForeignChangeError
        When it has another one.

    """
    logged = entry_at(table, entry.version)
    if entry.sha256 is not None and logged.sha256 != entry.sha256:
        detail = "is not the one that was there when the warehouse wrote its record"
        raise ForeignChangeError(table.name, entry.version, detail, replaced=True)
    return logged


def is_replaced(table: Path, entry: LogEntry) -> bool:
    """Whether a log has another entry of that version, or no entry, so the warehouse did not write this log.

    Without an entry the log counts as the same if a checkpoint of that version is left, as after an outsider's clean-up.
    """
    if entry.version < 0:
        return False
    try:
        return require_entry(table, entry) is None
    except ForeignChangeError:
        return True
    except MissingPartError:
        return not any((table / "_delta_log").glob(f"{entry.version:020d}.checkpoint*.parquet"))


def append_entry(table: Path, base: LogEntry, actions: Iterable[Mapping[str, Any]]) -> LogEntry:
    """Write the entry that follows ``base``, durably and exclusively, and return it.

    Raises
    ------
    MissingPartError
        When the base is not there.
    ForeignChangeError
        When the base is another entry by now, or somebody else has committed on it.
    LockHeldError
        When that was another process of this warehouse, which is possible only in a store without file locks.

    """
    require_entry(table, base)
    content = entry_text(actions).encode()
    version = base.version + 1
    try:
        store_of(entry_path(table, version)).write_exclusive(entry_path(table, version), content)
    except FileExistsError as error:
        if store_of(table).overtaken(error) and isinstance(raw_commit(table, version).said.get("epoch"), int):
            raise LockHeldError(f"another process, which committed version {version} of {table.name} first") from None
        raise ForeignChangeError(table.name, version, "was made by somebody else just now") from error
    return LogEntry(version, digest(content))
