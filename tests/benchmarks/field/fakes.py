"""A contender that keeps its rows in one Parquet file, and contenders that each fail in one way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.field.contender import Contender, NotHereError
from benchmarks.field.roster import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BAD_SLOT = 6
"""The update at which something goes wrong: p is 4, so this is the second after the build."""


def fake(kind: str, *, group: str = "") -> Entry:
    """Return an entry of a class below."""
    return Entry(kind.lower(), f"{__name__}:{kind}", kind, group)


class Plain(Contender):
    """All rows in one file, rewritten by each update."""

    def open(self) -> None:
        """Have a directory."""
        self.place.mkdir(parents=True, exist_ok=True)

    @property
    def file(self) -> Path:
        """The rows."""
        return self.place / "rows.parquet"

    def rows(self) -> pa.Table:
        """Read them."""
        return pq.read_table(self.file)

    def keep(self, rows: pa.Table) -> None:
        """Write them."""
        pq.write_table(rows, self.file)

    def build(self, files: Sequence[Path], now: int) -> None:
        """Keep what lives."""
        self.keep(pa.concat_tables(pq.read_table(file) for file in files))
        Plain.expire(self, now)

    def load(self, file: Path, now: int) -> None:
        """Add rows."""
        del now
        self.keep(pa.concat_tables([self.rows(), pq.read_table(file)]))

    def expire(self, now: int) -> None:
        """Keep what lives."""
        rows = self.rows()
        self.keep(rows.filter(pc.greater(rows["until"].cast(pa.int64()), now)))

    def probe(self, key: str, now: int) -> pa.Table:
        """Pick rows."""
        rows = self.scan(now)
        return rows.filter(pc.equal(rows["k"], key))

    def scan(self, now: int) -> pa.Table:
        """Give all."""
        del now
        return self.rows()

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask the rows."""
        rows = self.scan(now)
        return pc.sum(rows["a"]).as_py(), pc.max(rows["b"]).as_py()

    def stored(self) -> int:
        """Count them."""
        return self.rows().num_rows

    def close(self) -> None:
        """Nothing is open."""


class Forgetful(Plain):
    """It serves rows that have expired."""

    def expire(self, now: int) -> None:
        """Keep everything."""


class Lossy(Plain):
    """It loses one row."""

    def load(self, file: Path, now: int) -> None:
        """Add all rows except the row that would live longest."""
        del now
        self.keep(pa.concat_tables([self.rows(), pq.read_table(file)]).sort_by([("until", "descending")]).slice(1))


class Doubling(Plain):
    """A probe gives a row twice."""

    def probe(self, key: str, now: int) -> pa.Table:
        """Pick rows, and the first once more."""
        rows = super().probe(key, now)
        return pa.concat_tables([rows, rows.slice(0, 1)])


class Failing(Plain):
    """It raises at an update."""

    def load(self, file: Path, now: int) -> None:
        """Fail when the time has come."""
        if self.job.slot(now) == BAD_SLOT:
            raise ValueError("the disk is full of eels")
        super().load(file, now)


class Dying(Plain):
    """Its process ends at an update."""

    def load(self, file: Path, now: int) -> None:
        """End when the time has come."""
        if self.job.slot(now) == BAD_SLOT:
            os._exit(7)
        super().load(file, now)


class Stuck(Plain):
    """It does not answer."""

    def load(self, file: Path, now: int) -> None:
        """Wait for ever."""
        del file, now
        os.read(os.pipe()[0], 1)


class Absent(Plain):
    """It needs what is not there."""

    def open(self) -> None:
        """Say so."""
        raise NotHereError("no eels; install them: apt-get install eels")


class Stopped(Plain):
    """The run is stopped in the middle of its update, once: rows are there and not recorded."""

    def load(self, file: Path, now: int) -> None:
        """Load, then stop everything the first time."""
        super().load(file, now)
        mark = self.place.parent / "it was stopped"
        if self.job.slot(now) == BAD_SLOT and not mark.exists():
            mark.touch()
            raise KeyboardInterrupt


