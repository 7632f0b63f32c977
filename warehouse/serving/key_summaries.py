"""Key summaries that a reader caches: they exclude data files that hold none of some keys, without opening a file.

A reader's first probe of a table opens all files that the bounds keep, since Bloom filters cost as much as the probe; a summary
has few bytes. A summary of more than :data:`_SMALL` bytes is not read: reading the file's key column is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.promise.summaries import stored_part
from warehouse.storage.key_summaries import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.promise.summaries import KeySummary
    from warehouse.serving.pruning import Key
    from warehouse.storage.snapshot import DataFile

__all__ = ["Summaries"]

_SMALL = 16 << 10
_MOST_KEYS = 1_000_000


@dataclass
class Summaries:
    """The summaries by path of the data file; None: there is none that can be used."""

    files: dict[str, KeySummary | None] = field(default_factory=dict)
    keys: int = 0

    def of(self, file: DataFile, most_bytes: int = _SMALL) -> KeySummary | None:
        """Return the summary of a data file, read once; None: nothing is known."""
        if file.path not in self.files:
            if self.keys > _MOST_KEYS:
                self.files.clear()
                self.keys = 0
            found = self.files[file.path] = read_summary(file.path, file.rows, most_bytes)
            self.keys += 1 if found is None else len(found.counts)
        return self.files[file.path]

    def exact(self, file: DataFile) -> bool:
        """Whether all keys of a data file are known, of which the summary was asked for before."""
        found = self.files.get(file.path)
        return found is not None and found.exact

    def holders(self, files: Iterable[DataFile], keys: Sequence[Key]) -> tuple[DataFile, ...]:
        """Return the files that can hold one of some whole keys. An exact summary has at least one of them then."""
        stored = [tuple(stored_part(part) for part in key) for key in keys]
        return tuple(file for file in files if (found := self.of(file)) is None or found.may_hold(stored))
