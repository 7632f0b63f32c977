"""stream-wh itself: every technique of the source on the same storage layer."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from benchmarks.data import COLUMNS as TYPES
from benchmarks.field.contender import Contender
from benchmarks.field.job import ANCHOR
from warehouse import Warehouse
from warehouse.epochs.journal import newest_epoch
from warehouse.storage.snapshot import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Counts, Epoch, TableState

__all__ = ["DExp", "DIns", "Hot", "NoRebuild", "Ours", "RExp", "RIns", "Rebuild", "Unclustered", "layout_lines"]

_TABLE = "s"
_COUNTED = ("inserted", "expired", "rewritten", "planned", "changed", "files_added", "files_removed", "bytes_written")
_TOML = """\
[warehouse]
root = "data"
anchor = "{anchor}"
update_interval = "1h"
retain = "0s"

[streams.s]
landing = "landing"
format = "parquet"
search_key = "{search_key}"
arrival = "at"
expires = "until"
max_lifetime = "{periods}h"

[streams.s.columns]
{columns}

[streams.s.layout]
{layout}
"""


def layout_lines(technique: str, grid: tuple[int, int], assignment: str, **more: object) -> str:
    """Return a layout as TOML, both axes cut by the same assignment."""
    lines = [
        f'technique = "{technique}"',
        f"grid = [{grid[0]}, {grid[1]}]",
        f'insertion = "{assignment}"',
        f'expiration = "{assignment}"',
        *(f"{name} = {value}" for name, value in more.items()),
    ]
    return "\n".join(lines)


@dataclass
class Ours(Contender):
    """A project with one stream; its files land as a user's do, and ``update`` moves the window."""

    layout: ClassVar[str] = ""
    search_key: ClassVar[str] = "k"
    hot: ClassVar[tuple[str, ...]] = ()

    def open(self) -> None:
        """Declare the stream, if this is the first time, and open the project."""
        from benchmarks.field.contenders.spark import session  # noqa: PLC0415 - reading alone needs no Spark

        self._spark: SparkSession = session()
        landing = self.place / "landing"
        if not landing.exists():
            landing.mkdir(parents=True)
            columns = "\n".join(f'{name} = "{kind}"' for name, kind in TYPES.items())
            text = _TOML.format(
                anchor=ANCHOR, periods=self.job.periods, search_key=self.search_key, columns=columns, layout=self.layout
            )
            (self.place / "warehouse.toml").write_text(text)
        self._warehouse = Warehouse.open(self.place, hot=self.hot)

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the first epoch."""
        self._land(files)
        self._warehouse.update(at=now, spark=self._spark)

    def load(self, file: Path, now: int) -> None:
        """Update: one commit inserts, removes what expired and seals; the epoch is forced to disk."""
        self._land([file])
        self._warehouse.update(at=now, spark=self._spark)

    def _land(self, files: Sequence[Path]) -> None:
        for old in (self.place / "landing").iterdir():
            old.unlink()
        for file in files:
            os.link(file, self.place / "landing" / file.name)

    def probe(self, key: str, now: int) -> pa.Table:
        """Probe."""
        del now
        return self._warehouse.probe(_TABLE, [key]).arrow()

    def scan(self, now: int) -> pa.Table:
        """Scan."""
        del now
        return self._warehouse.scan(_TABLE).arrow()

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask in SQL."""
        del now
        total, largest = self._warehouse.sql(f"SELECT sum(a), max(b) FROM {_TABLE}").all()[0]
        return int(total), float(largest)

    @property
    def epoch(self) -> Epoch:
        """The newest epoch."""
        epoch = newest_epoch(self._warehouse.root)
        assert epoch is not None
        return epoch

    @property
    def table(self) -> TableState:
        """The stream's table in it."""
        state = self.epoch.table(_TABLE)
        assert state is not None
        return state

    @property
    def counts(self) -> Counts:
        """What its update counted."""
        return self.epoch.counts[0]

    def counted(self) -> dict[str, float]:
        """Return what the newest epoch counted, how long its snapshot takes to open, and how large logs and records are."""
        counts, root, table = self.counts, self._warehouse.root, self.table
        start = time.perf_counter()
        read_snapshot(root, table.path, table.version, ())
        opening = time.perf_counter() - start
        logs = [entry.stat().st_size for entry in (root / table.path / "_delta_log").iterdir()]
        records = [record.stat().st_size for record in (root / "epochs").iterdir()]
        sizes = {"log_files": len(logs), "log_bytes": sum(logs), "records": len(records), "record_bytes": sum(records)}
        return {**{name: getattr(counts, name) for name in _COUNTED}, "opening": opening, **sizes}

    def stored(self) -> int:
        """Add up the partitions of the newest epoch."""
        return sum(part.rows for part in self.table.partitions)

    def footprint(self) -> tuple[int, int]:
        """Return the files under the root, and their bytes: tables, logs, records."""
        sizes = [path.stat().st_size for path in self._warehouse.root.rglob("*") if path.is_file()]
        return len(sizes), sum(sizes)

    def close(self) -> None:
        """Close the project; the JVM is others' too."""
        self._warehouse.close()


class NoRebuild(Ours):
    """stream-wh with a layout of its own choice: ``norebuild``, runs appended, passed blocks dropped unread, rows sealed once.

    ``retain = "0s"``, so that superseded files go with the next update, as they do for the others.
    """


class Hot(NoRebuild):
    """stream-wh as above, read by a program that keeps the table in memory (``hot=["s"]``); what reading a new epoch's files
    into memory takes is part of its updates.
    """  # noqa: D205 - one sentence

    hot = (_TABLE,)

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the first epoch, and read it."""
        super().build(files, now)
        self._warehouse.warm()

    def load(self, file: Path, now: int) -> None:
        """Update, and read the new rows."""
        super().load(file, now)
        self._warehouse.warm()


class Rebuild(Ours):
    """stream-wh, ``technique = "rebuild"`` on its default 4x4 round-robin grid: touched sub-indices are rewritten."""

    layout = 'technique = "rebuild"'


class RIns(Ours):
    """Wave index REINDEX cut by insertion, n = 4: the 4x1 chronological grid, rebuilt."""

    layout = layout_lines("rebuild", (4, 1), "chronological")


class RExp(Ours):
    """Wave index REINDEX cut by expiration, n = 4: the 1x4 chronological grid, rebuilt."""

    layout = layout_lines("rebuild", (1, 4), "chronological")


class DIns(Ours):
    """Wave index DEL cut by insertion, n = 4: the 4x1 chronological grid, appended; past blocks of p/4 are removed."""

    layout = layout_lines("norebuild", (4, 1), "chronological")


class DExp(Ours):
    """Wave index DEL cut by expiration, n = 4: the 1x4 chronological grid, appended; past blocks of p/4 are removed."""

    layout = layout_lines("norebuild", (1, 4), "chronological")


class Unclustered(Ours):
    """The 4x4 grid rebuilt without clustering by the key: rows lie in the order of arrival, and a probe is a filtered scan."""

    layout = 'technique = "rebuild"'
    search_key = "at"

    def probe(self, key: str, now: int) -> pa.Table:
        """Scan for a key."""
        del now
        return self._warehouse.scan(_TABLE, where=f"k = '{key}'").arrow()
