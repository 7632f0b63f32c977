"""Reverts commits by a further one: files that they removed are added, and files that they added are removed.

    files(append(log, reversal(base, now))) = files(base), and the columns, properties and transactions of base

A log is only appended to, so readers that have seen a commit see its reversal, too. The entry's metadata has ``{"epoch": n,
"reverses": v}``: the commits between version v and this entry do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.errors import MissingPartError
from warehouse.storage.replay import replayed
from warehouse.storage.table_commit import TableCommit, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from warehouse.storage.deltalog import Commit
    from warehouse.storage.entries import LogEntry
    from warehouse.storage.replay import LogState

__all__ = ["counting", "reversal", "reverse"]


def reversal(
    base: LogState, now: LogState, milliseconds: int, said: Mapping[str, Any], *, data_change: bool = True
) -> TableCommit:
    """Return the commit that leads from the state ``now`` back to the state ``base``.

    Parameters
    ----------
    base
        The state to go back to.
    now
        The newest state.
    milliseconds
        The instant of the commit, since 1970.
    said
        The commit's metadata in addition to ``reverses``.
    data_change
        The actions' ``dataChange``: False if the reverted commits changed no row.

    Raises
    ------
    ValueError
        When the protocols differ, since no commit can revert this.

    """
    if _content_of(now.protocol) != _content_of(base.protocol):
        raise ValueError(f"the protocol was changed from {dict(base.protocol)} to {dict(now.protocol)}")
    definitions: list[dict[str, Any]] = []
    if _content_of(now.metadata) != _content_of(base.metadata):
        definitions.append({"metaData": dict(base.metadata)})
    for name, transaction in base.transactions.items():
        if now.transactions.get(name) != transaction:
            definitions.append({"txn": dict(transaction)})
    return TableCommit(
        "RESTORE",
        milliseconds,
        {**said, "reverses": base.version},
        parameters={"version": base.version},
        facts={"readVersion": now.version},
        definitions=definitions,
        added=[
            {**add, "dataChange": data_change}
            for path, add in base.files.items()
            if path not in now.files or _content_of(now.files[path]) != _content_of(add)
        ],
        removed=[add for path, add in now.files.items() if path not in base.files],
        data_change=data_change,
    )


def _content_of(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an action in the same form for commits and checkpoints; checkpoints leave out empty fields."""
    return {name: value for name, value in action.items() if name != "dataChange" and value not in (None, {}, [])}


def reverse(
    table: Path, to_version: int, newest: LogEntry, *, metadata: Mapping[str, Any], at: int, data_change: bool = True
) -> LogEntry:
    """Bring a table back to an earlier version by a commit that follows the entry ``newest``; return the new entry.

    Parameters
    ----------
    table
        The table's directory.
    to_version
        The version whose content comes back.
    newest
        The newest entry.
    metadata
        The commit's metadata in addition to ``reverses``: its ``epoch``.
    at
        The instant of the commit in microseconds.
    data_change
        As in :func:`reversal`.

    Raises
    ------
    ValueError
        When the protocol was changed since, since no commit can revert this.
    MissingPartError
        When the log does not reach one of the versions.
    ForeignChangeError, LockHeldError
        When ``newest`` is not the newest entry any more.

    """
    if to_version < 0:
        raise MissingPartError(
            f"{table}: before its first commit there is no content to go back to; "
            "restore the directory from a copy"
        )
    milliseconds = at // 1000
    # One way through the log: a checkpoint above the base may be that of commits which somebody has removed.
    base, now = replayed(table, (to_version, newest.version))
    return carry_out(table, newest, reversal(base, now, milliseconds, metadata, data_change=data_change))


def counting(commits: Iterable[Commit]) -> list[Commit]:
    """Return the commits that were not reverted, without reversals and commits that changed nothing.

    >>> from warehouse.storage.deltalog import Commit
    >>> def made(version, **said):
    ...     return Commit(version, said, (), (), frozenset(), engine="stream-wh")
    >>> log = [made(4, epoch=2, step=0), made(5, epoch=2, step=1), made(6, epoch=2, reverses=4), made(7, epoch=2, step=1)]
    >>> [commit.version for commit in counting(log)]
    [4, 7]
    """
    remaining: list[Commit] = []
    for commit in commits:
        if commit.reverses is not None:
            remaining = [earlier for earlier in remaining if earlier.version <= commit.reverses]
        elif not commit.void:
            remaining.append(commit)
    return remaining
