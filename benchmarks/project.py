"""A warehouse with one stream, as a user would declare it, and what lands in it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks import data
from benchmarks.settings import PERIODS
from warehouse import Warehouse
from warehouse.time import HOUR, at_slot, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.settings import Settings
    from warehouse.epochs.points import Moment
    from warehouse.epochs.records import Epoch

__all__ = ["FIRST_SLOT", "LIFETIME", "TABLE", "Project", "instant", "moved", "shape_of"]

TABLE = "s"
FIRST_SLOT = 42
"""The slot of the first build; the update after it seals nothing."""

LIFETIME = PERIODS * HOUR
_ANCHOR = "2024-01-01T00:00:00Z"
_MIN_KEYS = 2_000
_PIECE = 1_000_000

_TOML = """\
[warehouse]
root = "data"
anchor = "{anchor}"
update_interval = "1h"

[spark]
"spark.driver.memory" = "{memory}"

[streams.{table}]
landing = "landing"
format = "{format}"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{periods}h"

[streams.{table}.columns]
{columns}
"""


def instant(slot: int) -> int:
    """Return the window time of a slot in microseconds."""
    return at_slot(slot, parse_instant(_ANCHOR), HOUR)


def moved(directory: Path, at: int, spark: SparkSession) -> Epoch:
    """Move the windows of a project to an instant in microseconds, and return the last epoch of that."""
    with Warehouse.open(directory) as warehouse:
        return warehouse.update(at=at, spark=spark, future=True).epochs[-1]


def shape_of(settings: Settings) -> data.Shape:
    """Return what the rows of a run look like."""
    return data.Shape(settings.row_bytes, max(_MIN_KEYS, settings.rows // 10), settings.seed)


@dataclass
class Project:
    """A project directory; ``slot`` is the slot of its last update."""

    directory: Path
    settings: Settings
    format: str = "parquet"
    slot: int = FIRST_SLOT - 1
    moments: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Declare the stream."""
        self.landing.mkdir(parents=True)
        text = _TOML.format(
            anchor=_ANCHOR,
            memory=self.settings.driver_memory,
            table=TABLE,
            format=self.format,
            periods=PERIODS,
            columns="\n".join(f'{name} = "{kind}"' for name, kind in data.COLUMNS.items()),
        )
        (self.directory / "warehouse.toml").write_text(text)

    @property
    def landing(self) -> Path:
        """Where files land."""
        return self.directory / "landing"

    @property
    def root(self) -> Path:
        """Where the tables are."""
        return self.directory / "data"

    @contextmanager
    def opened(self) -> Iterator[Warehouse]:
        """Open the warehouse."""
        with Warehouse.open(self.directory) as warehouse:
            yield warehouse

    def build(self, rows: int, spark: SparkSession, slot: int = FIRST_SLOT) -> Epoch:
        """Load live rows at a slot: the first build."""
        pieces = -(-rows // _PIECE)
        for number in range(pieces):
            count = (number + 1) * rows // pieces - number * rows // pieces
            piece = data.living(
                shape_of(self.settings), count, part=(0, number, pieces), at=instant(slot), lifetime=LIFETIME
            )
            data.write(piece, self.landing / "first", f"{number:03d}", files=self.settings.files)
        self.slot = slot - 1
        return self.update(spark)[0]

    def land(self, slot: int) -> Path:
        """Let the rows of a slot arrive and return their directory."""
        directory = self.landing / f"{slot:06d}"
        rows = data.arriving(
            shape_of(self.settings),
            self.settings.batch,
            part=(slot,),
            after=instant(slot - 1),
            until=instant(slot),
            lifetime=LIFETIME,
        )
        data.write(rows, directory, "part", files=self.settings.files)
        return directory

    def update(self, spark: SparkSession) -> tuple[Epoch, dict[str, float]]:
        """Move the window by one slot, with a warm session; return the epoch and the seconds up to each point."""
        passed: dict[str, float] = {}
        start = last = time.perf_counter()

        def observer(moment: Moment) -> None:
            nonlocal last
            now = time.perf_counter()
            passed[moment.point.value] = passed.get(moment.point.value, 0.0) + now - last
            last = now

        with self.opened() as warehouse:
            report = warehouse.update(at=instant(self.slot + 1), observer=observer, spark=spark)
        passed["whole"] = time.perf_counter() - start
        self.slot += 1
        return report.epochs[0], passed

    def files(self) -> list[str]:
        """Return the paths of the files that may hold live rows."""
        with self.opened() as warehouse:
            rows = warehouse.sql(f"SELECT path FROM _files WHERE table_name = '{TABLE}' ORDER BY path").all()
        return [str(self.root / path) for (path,) in rows]
