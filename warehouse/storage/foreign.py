"""Judges the changes of commits by other writers (outsiders), by their actions and never by the operation's name.

Invariant: commits above a base are judged together, by the state that they lead to. That state has the base's files, columns,
properties and protocol: nothing changed (VACUUM START and END, empty commits, an OPTIMIZE that was taken back). It has other
files, and all actions of the difference have ``dataChange = false``: they claim that the same rows are in other files, which must
be proven (:mod:`.proof`). Bounds must also be proven if a remaining file has new statistics. Any other state changes rows, or the
definition of the table.
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
"""The change by commits: nothing, the files of rows (a claim), rows, the definition; or a commit cannot be read.

``replaced`` means that the warehouse did not write this log: it was replaced by another table, or by an older copy.
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
    """The change of a table by the commits ``first`` to ``last`` together.

    ``added`` and ``removed`` are the ``add`` actions of added and removed files, by path in the table.
    """

    kind: ChangeKind
    first: int
    last: int
    operations: tuple[str, ...]
    added: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The change in words: the commits, and their effect."""
        several = self.last > self.first
        which = f"commits {self.first} to {self.last}" if several else f"commit {self.first}"
        names = list(dict.fromkeys(self.operations))
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        words = _WORDS[self.kind] if several else _singular(_WORDS[self.kind])
        return f"{which} ({shown}) {words}"


def _singular(words: str) -> str:
    pairs = (("change ", "changes "), ("say that they change", "says that it changes"), ("are not those", "is not the one"))
    for plural, singular in pairs:
        if words.startswith(plural):
            return singular + words[len(plural) :]
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
    """Return the change of a table's state ``base`` by the commits that follow it, at least one."""
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
        """Whether rows may be the same although the bytes of ``paths`` changed; False if one of them is in ``among``."""
        return not any(path in among or self.changed.get(path, True) for path in paths)


def _other_bytes(added: Mapping[str, Mapping[str, Any]], removed: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the paths of files that were added, removed or changed, without files whose statistics alone changed."""
    return {
        path
        for path in added.keys() | removed.keys()
        if path not in added or path not in removed or not _same_bytes(added[path], removed[path])
    }


def _same_file(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    """Whether two ``add`` actions have the same bytes and place, and the same statements about them."""
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
    """Return the definition of a table: identity, columns, partition columns, properties."""
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
