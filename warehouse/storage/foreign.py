"""What commits of other writers (outsiders) change in a table, judged by their actions and never by the operation's name.

Invariant: commits above a base are judged together, by the state that they lead to. That state has the base's files, columns,
properties and protocol: nothing changed (VACUUM START and END, empty commits, an OPTIMIZE that was taken back). It has other
files, and each action that made the difference says ``dataChange = false``: this claims that rows only lie in other files, and
must be proven (:mod:`.proof`). The bounds must be proven too if a file that stays has other statistics. Everything else
changes rows, or what the table is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import unquote

from warehouse.storage.replay import UNREADABLE, LogState, advanced

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.entries import RawCommit

__all__ = ["Change", "ChangeKind", "absent_files", "judged", "same_statistics"]

ChangeKind: TypeAlias = Literal["none", "layout", "rows", "metadata", "unreadable", "replaced"]
"""What commits change: nothing, where rows lie (a claim), rows, what the table is; or one of them cannot be read.

``replaced`` means that the log is not the one that the warehouse wrote: another table, or an older copy, took its place.
"""

_WORDS: Mapping[ChangeKind, str] = {
    "none": "change nothing",
    "layout": "say that they change no row",
    "rows": "change rows",
    "metadata": "change the table's columns, properties or protocol",
    "unreadable": "cannot be read",
    "replaced": "are not those that the warehouse wrote, so the table is another one or an older copy",
}
_SHOWN = 3


@dataclass(frozen=True)
class Change:
    """What the commits ``first`` to ``last`` of a table change together.

    ``added`` and ``removed`` are the ``add`` actions of the files that came and of those that left, by path in the table.
    """

    kind: ChangeKind
    first: int
    last: int
    operations: tuple[str, ...]
    added: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The change in words: which commits, and what they do."""
        several = self.last > self.first
        which = f"commits {self.first} to {self.last}" if several else f"commit {self.first}"
        names = list(dict.fromkeys(self.operations))
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        words = _WORDS[self.kind] if several else _singular(_WORDS[self.kind])
        return f"{which} ({shown}) {words}"


def _singular(words: str) -> str:
    pairs = (("change ", "changes "), ("say that they change", "says that it changes"), ("are not those", "is not the one"))
    for plural, one in pairs:
        if words.startswith(plural):
            return one + words[len(plural) :]
    return words


def absent_files(table: Path, adds: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the files of ``add`` actions (by path, relative to the table) that are not there, or have another size."""
    return [name for name, add in adds.items() if not _is_there(table / name, add.get("size"))]


def _is_there(path: Path, size: object) -> bool:
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False


def judged(base: LogState, commits: Sequence[RawCommit]) -> Change:
    """Return what commits change of a table's state before them; ``commits`` are those that follow it, at least one."""
    first, last = commits[0].version, commits[-1].version
    operations = tuple(commit.operation for commit in commits)
    top, claimed = base, _Claims()
    for commit in commits:
        try:
            if commit.actions is None:
                return Change("unreadable", first, last, operations)
            top = advanced(top, commit.version, commit.actions)
            claimed.take(commit.actions)
        except UNREADABLE:
            return Change("unreadable", first, last, operations)
    added = {path: add for path, add in top.files.items() if not _same_file(add, base.files.get(path))}
    removed = {path: add for path, add in base.files.items() if not _same_file(add, top.files.get(path))}
    if _protocol(top) != _protocol(base) or _described(top) != _described(base):
        kind: ChangeKind = "metadata"
    elif not added and not removed:
        kind = "none"
    elif claimed.layout_only(_other_bytes(added, removed), among=added.keys() & removed.keys()):
        kind = "layout"
    else:
        kind = "rows"
    return Change(kind, first, last, operations, added, removed)


@dataclass
class _Claims:
    """Whether the last action on a file says that it changed rows."""

    changed: dict[str, bool] = field(default_factory=dict)

    def take(self, actions: Sequence[Mapping[str, Any]]) -> None:
        for action in actions:
            for name in ("add", "remove"):
                if name in action:
                    self.changed[unquote(action[name]["path"])] = action[name].get("dataChange") is not False

    def layout_only(self, paths: Collection[str], among: Collection[str]) -> bool:
        """Whether rows may be the same, where the bytes of ``paths`` are others; not if a path of ``among`` is one of them."""
        return not any(path in among or self.changed.get(path, True) for path in paths)


def _other_bytes(added: Mapping[str, Mapping[str, Any]], removed: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the paths of files that came or left, or have other bytes; not of those that have other statistics alone."""
    return {
        path
        for path in added.keys() | removed.keys()
        if path not in added or path not in removed or not _same_bytes(added[path], removed[path])
    }


def _same_file(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    """Whether two ``add`` actions are of the same bytes in the same place, and say the same of them."""
    return other is not None and _same_bytes(one, other) and same_statistics(one, other)


def _same_bytes(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    names = ("size", "deletionVector")
    return _places(one) == _places(other) and all(one.get(name) == other.get(name) for name in names)


def same_statistics(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two ``add`` actions have the same statistics, however these are written."""
    texts = one.get("stats") or "{}", other.get("stats") or "{}"
    if texts[0] == texts[1]:
        return True
    try:
        first, second = map(json.loads, texts)
    except ValueError:
        return False
    return bool(first == second)


def _places(add: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(add.get("partitionValues") or {})


def _protocol(state: LogState) -> tuple[object, ...]:
    names = ("minReaderVersion", "minWriterVersion")
    features = (sorted(state.protocol.get(name) or ()) for name in ("readerFeatures", "writerFeatures"))
    return (*(state.protocol.get(name) for name in names), *map(tuple, features))


def _described(state: LogState) -> tuple[object, ...]:
    """What a table is: identity, columns, partition columns, properties."""
    metadata = state.metadata
    try:
        schema = json.loads(metadata.get("schemaString") or "{}")
    except ValueError:
        schema = metadata.get("schemaString")
    return (
        metadata.get("id"),
        schema,
        list(metadata.get("partitionColumns") or ()),
        dict(metadata.get("configuration") or {}),
        (metadata.get("format") or {}).get("provider"),
    )
