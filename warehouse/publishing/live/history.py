"""The versions of a live table that are over: readable for ``retain`` after the next one, then their files go.

A version is over when the next one is made. Which files it alone had, the next one's ``remove`` actions say: so nothing is
listed as versions pass. What crashes left behind is found by listing (:func:`leftovers`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from warehouse.publishing.live.log import commits
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.publishing.live.log import LiveState

__all__ = ["delete_passed", "leftovers", "named_by", "oldest_kept", "passed_files"]


def oldest_kept(table: Path, state: LiveState, retain: int, now: int) -> int:
    """Return the oldest version of a live table that may still be read: its next one was made less than ``retain`` ago.

    All but versions are microseconds.
    """
    oldest = state.oldest
    for commit in commits(table, oldest):
        if commit.at + retain > now:
            break
        oldest = commit.version
    return oldest


def delete_passed(table: Path, state: LiveState, oldest: int) -> None:
    """Delete the files that versions below ``oldest`` had and no later one has."""
    for name in passed_files(table, state, oldest):
        (table / name).unlink(missing_ok=True)


def passed_files(table: Path, state: LiveState, oldest: int) -> set[str]:
    """Return the files that versions below ``oldest`` had and no later one has: names are new, so what was removed stays so.

    Only somebody else brings a file back that was removed. The next version replaces theirs, for which nothing is kept.
    """
    over = islice(commits(table, state.oldest), oldest - state.oldest)
    return {name for commit in over for name in commit.removed} - set(state.files)


def named_by(table: Path, state: LiveState, oldest: int) -> set[str]:
    """Return the data files of a live table's versions from ``oldest`` on: the newest has them, or a later one removed them."""
    return set(state.files).union(*(commit.removed for commit in commits(table, oldest)))


def leftovers(table: Path, named: set[str], *, before: int) -> list[Path]:
    """Return the files in a live table's directory that are not named, and got their names before an instant (microseconds)."""
    store, log = store_of(table), table / "_delta_log"
    found = [table / name for name in store.entry_names(table) if name != "_delta_log" and name not in named]
    found += [log / name for name in store.entry_names(log) if name.endswith(".tmp")]
    return [path for path in found if path.is_file() and store.named_since(path) < before]


