"""A small warehouse in a temporary directory: declared by keywords, landed by text, moved by a clock of its own.

Times are hours since the anchor (a slot is an hour), so ``at(2.5)`` is half past two.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.declared import write_declarations
from warehouse.catalog.load import load_catalog
from warehouse.epochs.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.epochs.points import Moment, Observer, Point, nobody
from warehouse.objects.path import is_uri
from warehouse.operations.complete import complete
from warehouse.operations.context import WriteContext
from warehouse.operations.drop import drop
from warehouse.operations.erase import erase
from warehouse.operations.migrate import migrate
from warehouse.operations.preview import landing, plan, sample
from warehouse.operations.rebuild import rebuild
from warehouse.operations.reload import reload
from warehouse.operations.repair import repair
from warehouse.operations.restate import restate
from warehouse.operations.rollback import rollback
from warehouse.operations.undo import undo_foreign
from warehouse.operations.update import UpdateOptions, UpdateReport, update
from warehouse.operations.vacuum import vacuum
from warehouse.publishing.database import replace_database_if_needed
from warehouse.time import HOUR, format_instant, parse_instant
from warehouse.views.readable_views import readable_views

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Counts, Epoch, SideTable

ANCHOR = parse_instant("2024-01-01T00:00:00Z")
LATER = parse_instant("2040-01-01T00:00:00Z")
"""What the clock of a project says until told otherwise."""


def at(hours: float) -> int:
    """Return the instant ``hours`` after the anchor."""
    return ANCHOR + round(hours * HOUR)


def text(hours: float) -> str:
    """Return the instant ``hours`` after the anchor as text with its offset."""
    return format_instant(at(hours))


def row(key: str, begins: float, ends: float | str) -> str:
    """Return a CSV line: key, arrival, expiry (hours, or text as it is)."""
    return f"{key},{text(begins)},{ends if isinstance(ends, str) else text(ends)}"


def csv(*lines: str, header: str = "k,b,e") -> str:
    """Return a CSV file."""
    return "".join(line + "\n" for line in (header, *lines))


def parquet(rows: pa.Table) -> bytes:
    """Return a Parquet file."""
    content = pa.BufferOutputStream()
    pq.write_table(rows, content)
    whole: bytes = content.getvalue().to_pybytes()
    return whole


def land_file(path: Path, content: str | bytes, mtime: int | None = None) -> Path:
    """Write a landing file, and create its directory if needed; ``mtime`` is in microseconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if mtime is not None:
        os.utime(path, ns=(mtime * 1000, mtime * 1000))
    return path


def counts_of(epoch: Epoch, stream: str) -> Counts:
    """Return the counts of a stream in an epoch."""
    return next(counts for counts in epoch.counts if counts.stream == stream)


class StoppedError(Exception):
    """An update was stopped by its observer."""


def stop_at(point: Point, step: int = -1, error: Callable[[], BaseException] = StoppedError) -> Observer:
    """Return an observer that raises at a point (of a step, if the point has steps)."""

    def observe(moment: Moment) -> None:
        if moment.point == point and (step < 0 or moment.step == step):
            raise error()

    return observe


def stream(**changes: object) -> dict[str, object]:
    """Return the keys of a stream of CSV files: key ``k``, arrival ``b``, expiry ``e``, four slots at the most."""
    keys: dict[str, object] = {
        "landing": "landing/a",
        "format": "csv",
        "search_key": "k",
        "arrival": "b",
        "expires": "e",
        "max_lifetime": "4h",
        "columns": {"k": "string", "b": "timestamp", "e": "timestamp"},
        **changes,
    }
    return {key: value for key, value in keys.items() if value is not None}


_VERBS: tuple[Callable[..., Any], ...] = (
    complete, drop, erase, landing, migrate, plan, rebuild, reload, repair, restate, rollback, sample, undo_foreign, update,
    vacuum,
)  # fmt: skip


@dataclass(frozen=True)
class Verbs:
    """The verbs that write to one warehouse: ``verbs.drop("a")`` is ``drop(verbs.context, "a")``."""

    context: WriteContext

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a verb that knows its warehouse."""
        verb = next((verb for verb in _VERBS if verb.__name__ == name), None)
        if verb is None:
            raise AttributeError(name)
        return partial(verb, self.context)

    @property
    def catalog(self) -> Catalog:
        """The declarations in force."""
        return self.context.catalog


@dataclass
class Project:
    """One warehouse: its directory, its Spark session, its clock in microseconds."""

    directory: Path
    spark: SparkSession | None
    streams: dict[str, dict[str, object]] = field(default_factory=lambda: {"a": stream()})
    warehouse: dict[str, object] = field(default_factory=dict)
    clock: int = LATER
    views: dict[str, dict[str, object]] = field(default_factory=dict)
    relations: dict[str, dict[str, object]] = field(default_factory=dict)
    aggregates: dict[str, dict[str, object]] = field(default_factory=dict)
    coalesced: dict[str, dict[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.declare()

    @property
    def root(self) -> Path:
        """Return where the tables are."""
        return self.directory / "data"

    def declare(self) -> None:
        """Write ``warehouse.toml`` as the fields say, and make the landing directories."""
        head: dict[str, object] = {"anchor": format_instant(ANCHOR), "update_interval": "1h", **self.warehouse}
        sections = {"streams": self.streams, "relations": self.relations, "views": self.views, "aggregates": self.aggregates}
        sections["coalesced"] = self.coalesced
        for declared in sections.values():
            for keys in declared.values():
                if "landing" in keys and not is_uri(str(keys["landing"])):
                    (self.directory / str(keys["landing"])).mkdir(parents=True, exist_ok=True)
        write_declarations(self.directory, {"warehouse": head, **{name: keys for name, keys in sections.items() if keys}})

    def change(self, name: str = "a", **changes: object) -> None:
        """Declare a stream with changed keys; a key that is ``None`` is removed."""
        declaration = {**self.streams.get(name, {}), **changes}
        self.streams[name] = {key: value for key, value in declaration.items() if value is not None}
        self.declare()

    def land(self, name: str, content: str | bytes, *, landing: str = "landing/a", mtime: int | None = None) -> Path:
        """Put a file into a landing directory; ``mtime`` is in microseconds."""
        return land_file(self.directory / landing / name, content, mtime)

    def copy(self, directory: Path) -> Project:
        """Return a copy of the project elsewhere, with epochs and landing files; the database is written for its new place."""
        shutil.copytree(self.directory, directory)
        replace_database_if_needed(directory / "data", newest_epoch(directory / "data"))
        return self.declared_in(directory)

    def declared_in(self, directory: Path) -> Project:
        """Return a project of another directory with the same declarations; only the declarations are written."""
        plain = json.loads(json.dumps([self.streams, self.views, self.relations, self.aggregates, self.coalesced]))
        streams, views, relations, aggregates, coalesced = plain
        return Project(directory, self.spark, streams, dict(self.warehouse), self.clock, views, relations, aggregates, coalesced)

    # --- moving the windows ---

    def updater(self, observer: Observer = nobody) -> Verbs:
        """Return the verbs that write to this project; a verb that needs Spark fails without a session."""

        def session(_: int) -> SparkSession:
            assert self.spark is not None, "this update was to do without Spark"
            return self.spark

        return Verbs(
            WriteContext(load_catalog(self.directory, facts_of_views=readable_views), session, lambda: self.clock, observer)
        )

    def update(self, hours: float, *, observer: Observer = nobody, **options: Any) -> UpdateReport:  # noqa: ANN401 - those of UpdateOptions
        """Move the windows to the slot at ``hours``."""
        if isinstance(options.get("start"), float | int):
            options["start"] = at(options["start"])
        return self.updater(observer).update(UpdateOptions(at=at(hours), **options))

    # --- what there is ---

    @property
    def epoch(self) -> Epoch:
        """The newest epoch."""
        newest = newest_epoch(self.root)
        assert newest is not None
        return newest

    @property
    def numbers(self) -> list[int]:
        """The numbers of the epochs that can be read."""
        return epoch_numbers(self.root)

    def counts(self, table: str = "a") -> Counts:
        """Return the counts of a stream in the newest epoch."""
        return counts_of(self.epoch, table)

    def stored(self, table: str = "a", number: int | None = None) -> list[dict[str, Any]]:
        """Return the rows in a table's files at an epoch, live or not, read file by file without Spark."""
        epoch = self.epoch if number is None else read_epoch(self.root, number)
        state = epoch.table(table)
        assert state is not None
        return _read(self.root / state.path, state.version)

    def live(self, table: str = "a", number: int | None = None) -> list[dict[str, Any]]:
        """Return the live rows of a table at an epoch, in order."""
        epoch = self.epoch if number is None else read_epoch(self.root, number)
        rows = [row for row in self.stored(table, number) if _micros(row["_exp"]) > epoch.window_time]
        return sorted(rows, key=repr)

    def keys(self, table: str = "a", number: int | None = None) -> str:
        """Return the keys of the live rows in order, as one text."""
        return " ".join(sorted(str(row["k"]) for row in self.live(table, number)))

    def deferred(self, table: str = "a", number: int | None = None) -> list[dict[str, Any]]:
        """Return the waiting rows in order."""
        return self._side("deferred", table, number)

    def rejected(self, table: str = "a", number: int | None = None) -> list[dict[str, Any]]:
        """Return the invalid rows in order."""
        return self._side("rejected", table, number)

    def _side(self, role: str, table: str, number: int | None) -> list[dict[str, Any]]:
        epoch = self.epoch if number is None else read_epoch(self.root, number)
        state = epoch.table(table)
        assert state is not None
        side: SideTable | None = getattr(state, role)
        rows = _read(self.root / side.path, side.version) if side else []
        assert len(rows) == (side.rows if side else 0), "the epoch counts the rows of its side tables"
        return sorted(rows, key=repr)

    def picture(self, table: str = "a", number: int | None = None) -> dict[str, Any]:
        """Return all that an epoch holds of a table, so that two runs can be compared: rows, counts, versions."""
        epoch = self.epoch if number is None else read_epoch(self.root, number)
        state = epoch.table(table)
        assert state is not None
        plain = dataclasses.asdict(epoch)
        for name in ("seconds", "committed_at", "removed", "tables", "catalog_digest", "files"):
            plain.pop(name)
        plain["entries"] = [(entry.path, entry.version) for entry in epoch.entries]  # sums are of a run
        plain["counts"] = [{**counts, "bytes_written": 0} for counts in plain["counts"]]
        return {
            "epoch": plain,
            "files": [(entry.stream, [file.path for file in entry.loaded]) for entry in epoch.files],
            "partitions": [dataclasses.replace(part, bytes=0) for part in state.partitions],
            "versions": [state.version, *(side and side.version for side in (state.deferred, state.rejected))],
            "live": self.live(table, number),
            "deferred": self.deferred(table, number),
            "rejected": self.rejected(table, number),
        }


def _micros(moment: Any) -> int:  # noqa: ANN401 - a datetime
    from warehouse.time import to_micros  # noqa: PLC0415 - one use

    return to_micros(moment)


def _read(table: Path, version: int) -> list[dict[str, Any]]:
    if version < 0:
        return []
    rows: list[dict[str, Any]] = DeltaTable(str(table), version=version).to_pyarrow_table().to_pylist()
    return rows
