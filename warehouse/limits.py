"""Limits of work and waiting times of the warehouse, in one value that a test can change.

Users do not set them: each has one right value, and no answer depends on it. A test sets a small limit and checks the behaviour
beyond it:

>>> from warehouse.limits import limited, limits
>>> with limited(files_per_plan=1):
...     limits().files_per_plan
1
>>> limits().files_per_plan
20000
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Limits", "limited", "limits"]

_REWRITTEN = 50
"""Times the rows that the driver takes from Spark (*measured*, 370 000 rows of six numbers in four buckets, 10 000 keys changed:
0.27 s of one core, where the Spark jobs of such a step took 2.7 s of two)."""


@dataclass(frozen=True)
class Limits:
    """The limits of one process.

    Attributes
    ----------
    files_per_plan
        Upper bound of the landing files of a stream in one plan. More files are loaded in several epochs, so that plans stay
        small.
    checkpoint_interval
        Number of commits after which a checkpoint of a table's log is written.
    claim_seconds
        A writer of a root in an object store counts as gone after this time without a renewal of its claim, in seconds.
    claim_renewal_seconds
        Seconds between two renewals of a claim.
    orphan_seconds
        Seconds that an update waits for the JVM of another update that was killed.
    past_records
        Number of records of retired epochs at which they are removed together.
    driver_rows, driver_bytes
        Upper bounds of the rows, and of the bytes of their files, that the driver takes from Spark to write them itself.
    written_rows, written_bytes
        Upper bounds of the rows of a stream that Spark classifies and the driver writes, and of their bytes in memory as expected
        from their files; rows may turn out to be twice as wide.
    array_points, array_values, array_bytes
        Upper bounds of the arrived points, of the values of one column of stored rows, and of the uncompressed bytes of these
        rows. Up to them the driver computes a coalesced table as arrays; beyond them Spark computes it.
    apart_rows
        A coalesced table of at least this many rows stores its closed rows in cells. The cells stay until it has half as many
        rows.
    known_files
        Number of table files whose log entries a process caches in memory, about a kilobyte each.
    partial_bytes
        Bytes of partial results of queries that an open reader keeps in memory.
    summary_share
        Upper bound of the bytes of a data file's key summary, for each byte of the file.
    read_log_bytes
        Bytes after which the read log begins a new file. The previous file stays.

    """

    files_per_plan: int = 20_000
    checkpoint_interval: int = 10
    claim_seconds: float = 60.0
    claim_renewal_seconds: float = 10.0
    orphan_seconds: float = 60.0
    past_records: int = 64
    driver_rows: int = 20_000
    driver_bytes: int = 2 << 20
    written_rows: int = 500_000
    written_bytes: int = 96 << 20
    array_points: int = 500_000
    array_values: int = 32_000_000
    array_bytes: int = 512 << 20
    apart_rows: int = 100_000
    known_files: int = 32_768
    partial_bytes: int = 64 << 20
    summary_share: float = 0.03
    read_log_bytes: int = 1_000_000

    def in_driver(self, rows: int, size: int) -> bool:
        """Whether the driver takes this number of rows, in files of this number of bytes, from Spark."""
        return rows <= self.driver_rows and size <= self.driver_bytes

    def writes_in_driver(self, rows: int, size: int) -> bool:
        """Whether the driver writes this number of rows, of this number of bytes in memory, that Spark has classified."""
        return self.driver_rows > 0 and rows <= self.written_rows and size <= self.written_bytes

    def rewrites_in_driver(self, rows: int) -> bool:
        """Whether the driver may rewrite a keyed table of this number of rows, as arrays, when few of its keys change."""
        return self.driver_rows > 0 and rows <= _REWRITTEN * self.driver_rows


_in_force = [Limits()]


def limits() -> Limits:
    """Return the limits in force."""
    return _in_force[-1]


@contextmanager
def limited(**changes: Any) -> Iterator[Limits]:  # noqa: ANN401 - the fields of Limits
    """Put other limits in force, in all threads, until the block ends."""
    _in_force.append(replace(limits(), **changes))
    try:
        yield limits()
    finally:
        _in_force.pop()
