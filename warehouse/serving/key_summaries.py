"""Key summaries that a reader caches: they exclude data files without the keys of a probe, without opening the files.

Reading the Bloom filters of data files costs as much as a reader's first probe of a table. A summary begins with a filter of few
bytes, and a probe reads only the filter. Counts are read if numbers of rows are needed and the counts have at most :data:`_SMALL`
bytes; for larger ones it is faster to read the file's key column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.promise.presence import bits_of, hash_of, holds
from warehouse.promise.summaries import stored_part
from warehouse.storage.key_summaries import read_filter, read_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.promise.summaries import KeySummary
    from warehouse.serving.pruning import Key
    from warehouse.storage.snapshot import DataFile

__all__ = ["Summaries"]

_SMALL = 16 << 10
_MOST_KEYS = 1_000_000
_MOST_FILTER_BYTES = 64 << 20


@dataclass
class Summaries:
    """Counts and filters by path of the data file; None: the file has no usable counts or no usable filter."""

    files: dict[str, KeySummary | None] = field(default_factory=dict)
    keys: int = 0
    filters: dict[str, bytes | None] = field(default_factory=dict)
    filter_bytes: int = 0

    def of(self, file: DataFile, most_bytes: int = _SMALL) -> KeySummary | None:
        """Return the counts of a data file, read once; None: nothing is known."""
        if file.path not in self.files:
            if self.keys > _MOST_KEYS:
                self.files.clear()
                self.keys = 0
            summary = self.files[file.path] = read_summary(file.path, file.rows, most_bytes)
            self.keys += 1 if summary is None else len(summary.counts)
        return self.files[file.path]

    def filter_of(self, file: DataFile) -> bytes | None:
        """Return the filter of a data file's keys, read once; None: nothing is known."""
        if file.path not in self.filters:
            if self.filter_bytes > _MOST_FILTER_BYTES:
                self.filters.clear()
                self.filter_bytes = 0
            key_filter = self.filters[file.path] = read_filter(file.path, file.rows)
            self.filter_bytes += len(file.path) + len(key_filter or b"")
        return self.filters[file.path]

    def filtered(self, file: DataFile) -> bool:
        """Whether the keys of a data file have a filter, which was asked for before."""
        return self.filters.get(file.path) is not None

    def holders(self, files: Iterable[DataFile], keys: Sequence[Key]) -> tuple[DataFile, ...]:
        """Return the files that can hold one of the whole keys, according to the filters of the files."""
        hashes = [hash_of(tuple(stored_part(part) for part in key)) for key in keys]
        hash_bits = [(hashed, bits_of(hashed)) for hashed in hashes]
        return tuple(
            file
            for file in files
            if (key_filter := self.filter_of(file)) is None or any(holds(key_filter, hashed, bits) for hashed, bits in hash_bits)
        )
