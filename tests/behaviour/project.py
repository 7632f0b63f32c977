"""A warehouse project in a temporary directory, with streams that differ in their layout and land the same rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.operations.projects import Project, parquet, stream
from warehouse import Warehouse
from warehouse.epochs.journal import read_epoch
from warehouse.storage.snapshot import read_snapshot
from warehouse.time import NEVER, format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch
    from warehouse.operations.update import UpdateReport
    from warehouse.testing import Row, Rules

Bag = Counter[tuple[Any, Any, int, int]]
"""Rows as (key, value, ts, exp), times in microseconds."""

_INSTANT = pa.timestamp("us", tz="UTC")
LANDED = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", _INSTANT), ("x", _INSTANT)])


@dataclass
class Layouts:
    """A project whose streams differ in their layout alone and land the same rows of the model.

    ``layouts`` are the layout keys of each of its streams. Every answer is compared with the one of a warehouse that keeps the
    tables in memory.
    """

    directory: Path
    rules: Rules
    layouts: Mapping[str, Mapping[str, object]]
    spark: SparkSession
    warehouse_keys: Mapping[str, object] = field(default_factory=dict)
    landings: int = 0

    def __post_init__(self) -> None:
        rules = self.rules
        times = {"anchor": format_instant(rules.anchor), "update_interval": format_duration(rules.interval)}
        streams = {name: self._stream(name, layout) for name, layout in self.layouts.items()}
        self.project = Project(self.directory, self.spark, streams, {**times, **self.warehouse_keys})
        self.warehouse = Warehouse.open(self.directory)
        self.in_memory = Warehouse.open(self.directory, hot=tuple(self.layouts))

    def _stream(self, name: str, layout: Mapping[str, object]) -> dict[str, object]:
        rules = self.rules
        return stream(
            landing=f"landing/{name}",
            format="parquet",
            arrival="t",
            expires="x",
            over_lifetime=rules.over_lifetime,
            null_expiry=rules.null_expiry,
            max_lifetime=None if rules.max_lifetime is None else format_duration(rules.max_lifetime),
            max_ahead=None if rules.max_ahead is None else format_duration(rules.max_ahead),
            columns={"k": "string", "v": "bigint", "t": "timestamp", "x": "timestamp"},
            layout=dict(layout),
        )

    def land(self, rows: Sequence[Row], *, streams: Iterable[str] | None = None) -> None:
        """Put rows into one new file of each stream's landing directory."""
        self.landings += 1
        table = pa.Table.from_pylist([{"k": row.key, "v": row.value, "t": row.ts, "x": row.exp} for row in rows], schema=LANDED)
        content = parquet(table)
        for name in self.layouts if streams is None else streams:
            self.project.land(f"{self.landings:04}.parquet", content, landing=f"landing/{name}")

    def update(self, at: int, **options: Any) -> UpdateReport:  # noqa: ANN401 - the options of Warehouse.update
        """Move the windows."""
        return self.warehouse.update(at, spark=self.spark, **options)

    def epoch(self, number: int) -> Epoch:
        """Return an epoch."""
        return read_epoch(self.warehouse.root, number)

    def scan(self, stream: str, **options: Any) -> Bag:  # noqa: ANN401 - the options of Warehouse.scan
        """Return the live rows as a bag, after checking that files and memory give the same rows."""
        from_files, in_memory = (
            Counter(tuples(warehouse.scan(stream, columns=SHOWN, **options).arrow()))
            for warehouse in (self.warehouse, self.in_memory)
        )
        assert in_memory == from_files
        return from_files

    def probe(self, stream: str, keys: Sequence[object] | None = None, **options: Any) -> list[tuple[Any, Any, int, int]]:  # noqa: ANN401
        """Return the rows of a probe in their order, from files; rows from memory are the same, except for the order of ties."""
        from_files, in_memory = (
            tuples(house.probe(stream, keys, columns=SHOWN, **options).arrow()) for house in (self.warehouse, self.in_memory)
        )
        if "limit" not in options:
            assert Counter(in_memory) == Counter(from_files)
        return from_files


def live_versions(project: Layouts, stream: str, *, newest: bool = False) -> dict[int, Bag]:
    """Return the rows that delta-rs reads of each version of a live table (or of the newest), by the version's epoch."""
    versions = {}
    table = DeltaTable(str(project.warehouse.root / "live" / stream))
    for entry in table.history(1 if newest else None):
        if not newest:
            table.load_as_version(entry["version"])
        assert table.schema().to_arrow().names == ["k", "v", "t", "x", "_ts", "_exp"]
        protocol = table.protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        rows = table.to_pyarrow_table().select(SHOWN)
        number = json.loads(entry["userMetadata"])["epoch"]
        assert number not in versions  # one commit an epoch
        never = pc.equal(pc.year(rows["_exp"]), 9999)
        versions[number] = Counter(tuples(rows.set_column(3, "_exp", pc.if_else(never, None, rows["_exp"]))))
    return versions


SHOWN = ["k", "v", "_ts", "_exp"]


def tuples(table: pa.Table) -> list[tuple[Any, Any, int, int]]:
    """Return (key, value, ts, exp) of an answer with the columns :data:`SHOWN`."""
    keys, values = table["k"].to_pylist(), table["v"].to_pylist()
    ts, exp = (table[name].cast(pa.int64()).to_pylist() for name in ("_ts", "_exp"))
    return [
        (key, value, start, NEVER if end is None else end)
        for key, value, start, end in zip(keys, values, ts, exp, strict=True)
    ]


@dataclass(frozen=True)
class StoredFile:
    """A data file of an epoch as it lies on the disk: its place in the grid and its rows, in their order."""

    sub_index: int
    exp_block: int
    rows: tuple[dict[str, Any], ...]

    def live(self, window_time: int) -> list[dict[str, Any]]:
        """Return the rows that a reader sees."""
        return [row for row in self.rows if row["_exp"] > window_time]


def stored_files(root: Path, epoch: Epoch, stream: str) -> list[StoredFile]:
    """Return the files of a table at an epoch's version, read without any of the code that reads or writes them."""
    state = epoch.table(stream)
    assert state is not None
    files = []
    for file in read_snapshot(root, state.path, state.version, ()).files:
        with pq.ParquetFile(file.path) as parquet:
            table = parquet.read()
        for name in ("_ts", "_exp"):
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
        files.append(StoredFile(file.sub_index, file.exp_block, tuple(table.to_pylist())))
    return files
