"""Commits of outsiders among those of an unfinished plan: what changes no row is taken back, so that the plan goes on.

The commits of a plan's steps follow one another, so what comes between is never adopted. A commit that follows takes it back if
it changes nothing, or says that it only lays rows out otherwise and the files that it removed are all there. Anything else
stops the plan, until ``repair --undo-foreign`` has taken it back in the same way.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.records import ForeignCommits
from warehouse.errors import ForeignChangeError
from warehouse.storage.entries import entry_at, raw_commits
from warehouse.storage.foreign import absent_files, judged
from warehouse.storage.replay import replay
from warehouse.storage.reversal import reverse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from warehouse.storage.deltalog import Commit

__all__ = ["TakenBack", "take_back", "taken_back"]


@dataclass(frozen=True)
class TakenBack:
    """What an epoch records of outsiders' commits that were taken back, and what to tell of them."""

    record: ForeignCommits
    message: str


def take_back(table: Path, version: int, *, epoch: int, at: int) -> bool:
    """Take the commits from a version on back if they change no row, and return whether there is something new to read.

    Parameters
    ----------
    table
        The table's directory; no checkpoint of its log is above the version.
    version
        The first commit of an outsider.
    epoch, at
        What the commit that takes them back says of itself; ``at`` is in microseconds.

    """
    change = judged(replay(table, version - 1), raw_commits(table, version - 1))
    if change.kind not in ("none", "layout") or absent_files(table, change.removed):
        return False
    with suppress(ForeignChangeError):  # they go on: look again
        reverse(table, version - 1, entry_at(table, change.last), metadata={"epoch": epoch}, at=at, data_change=False)
    return True


def taken_back(table: Path, path: str, commits: Sequence[Commit], kept: Collection[int]) -> Iterator[TakenBack]:
    """Yield what became of outsiders' commits that do not count any more; ``kept`` are the versions that do."""
    open_: list[Commit] = []
    for commit in commits:
        if commit.reverses is None:
            if commit.version not in kept and not commit.ours:
                open_.append(commit)
            continue
        gone = [each for each in open_ if each.version > commit.reverses]
        open_ = [each for each in open_ if each.version <= commit.reverses]
        if gone:
            first = gone[0].version
            change = judged(replay(table, first - 1), raw_commits(table, first - 1)[: commit.version - first])
            became = "passed over" if change.kind == "none" else "taken back by a commit that follows"
            record = ForeignCommits(
                path, first, commit.version, change.operations, "passed" if change.kind == "none" else "reversed"
            )
            yield TakenBack(record, f'table "{path}": {change.message} from outside, while an update was at work: {became}')
