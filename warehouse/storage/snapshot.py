"""The files of one Delta table at a pinned version, with the statistics that pruning needs; no JVM, no pyarrow.

A snapshot holds `{ add : add in the log up to version, not removed since }`. Its statistics are bounds, not values: every value v
of a column in a file satisfies `low <= v` and `v <= high`, where a string's `high` may also be a prefix of it. Values are in a
comparable form: timestamps are microseconds; dates, decimals, numbers and strings are unchanged.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from arro3.core import DataType
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from warehouse.errors import RESTORE_TABLE, EpochVacuumedError, MissingPartError, PlatformError
from warehouse.limits import limits
from warehouse.storage.entries import entry_path
from warehouse.storage.local_disk import file_identity
from warehouse.storage.logged_actions import logged_actions
from warehouse.storage.replay import replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "BOUND_LENGTH",
    "NO_BOUNDS",
    "Bounds",
    "Comparable",
    "DataFile",
    "Snapshot",
    "StoredFile",
    "missing_files",
    "read_snapshot",
    "stored_files",
]

Comparable: TypeAlias = "str | int | bool | date | Decimal"

BOUND_LENGTH = 32
"""A bound surely has this many characters of a string; further characters of a high bound make it larger than the value."""

_DECIMAL_SLACK = Decimal(2) ** -50
"""deltalake reads decimal statistics as doubles (*measured*: 123456789012345.67 comes back as ...69)."""

_MILLISECOND = 1000
_LAST = "_exp_slot"
"""The last column with statistics, which each file of rows has."""
_PARTITION = "partition."
_known: dict[tuple[str | int, ...], tuple[str, Any]] = {}
_counted = [0]
"""The files of the versions in ``_known``, and one for each version."""
_opened: dict[str, tuple[tuple[int, ...], DeltaTable]] = {}
"""By location the table as it was opened last, with its version and what identifies the entry of this version."""
_reading = Lock()
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_LAST_ORDINAL = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a column's values in one file; all None if they are unknown.

    ``nulls`` is the number of null values.
    """

    low: Any = None
    high: Any = None
    nulls: int | None = None


NO_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file: its absolute path, size in bytes, rows, place in the grid, bounds of some columns."""

    path: str
    size: int
    rows: int | None
    sub_index: int
    exp_block: int
    bounds: Mapping[str, Bounds]

    def of(self, column: str) -> Bounds:
        """Return the bounds of a column."""
        return self.bounds.get(column, NO_BOUNDS)

    @property
    def min_exp_slot(self) -> int | None:
        """The smallest expiration slot, exact, or None if unknown."""
        low = self.of("_exp_slot").low
        return None if low is None else int(low)

    @property
    def max_exp_slot(self) -> int | None:
        """The largest expiration slot, exact, or None if unknown."""
        high = self.of("_exp_slot").high
        return None if high is None else int(high)


@dataclass(frozen=True)
class Snapshot:
    """The files of a table at a version, ordered by sub-index, expiry block and path."""

    table_id: str
    version: int
    files: tuple[DataFile, ...]


def read_snapshot(root: Path, path: str, version: int, columns: Sequence[str]) -> Snapshot:
    """Return a table's files at a version.

    Parameters
    ----------
    root
        The absolute root of the warehouse.
    path
        The table's directory, relative to the root.
    version
        The Delta version.
    columns
        The columns whose bounds are wanted.

    Raises
    ------
    MissingPartError
        When there is no table, or its log is damaged.
    EpochVacuumedError
        When there is one, but its log does not reach that version any more.

    """
    table = root / path
    location = str(table)
    if unquote(location) != location or "\\" in location:
        raise PlatformError(
            f'the path "{location}" contains a percent escape or a backslash, which deltalake misreads; '
            f"move the warehouse to a directory without it"
        )
    table_id, actions = _read(table, version)
    return Snapshot(table_id, version, tuple(_files(location, actions, columns)))


def _read(table: Path, version: int) -> tuple[str, Any]:
    """The id and actions of a table.

    Raises
    ------
    MissingPartError, EpochVacuumedError
        As :func:`read_snapshot`.

    """
    location = str(table)
    try:
        return _known_or_read(location, version)
    except TableNotFoundError as error:
        raise MissingPartError(f"{location}: the table or its _delta_log is missing. {RESTORE_TABLE}") from error
    except DeltaError as error:
        first = error
    try:
        replay(table, version)
        return _read_again(location, version)  # its files may have been replaced meanwhile
    except MissingPartError as damage:
        if entry_path(table, version).exists():
            raise MissingPartError(f"{location}: version {version} cannot be read: {damage}") from damage
    except DeltaError as error:
        cause = str(error).partition("\n")[0]
        raise MissingPartError(
            f"{location}: deltalake cannot read version {version} ({cause}). `stream-wh check --repair` repairs it where it can; "
            f"else: {RESTORE_TABLE}"
        ) from error
    cause = str(first).partition("\n")[0]
    raise EpochVacuumedError(
        f"{location}: version {version} cannot be opened any more ({cause}); run again to read the newest epoch"
    ) from first


def _known_or_read(location: str, version: int) -> tuple[str, Any]:
    """Return the id of a table and its flattened ``add`` actions, perhaps from the cache of this process.

    A cached version is valid as long as its log entry is the same file and no entry was added or removed: entries are written
    once.
    """
    log = Path(location) / "_delta_log"
    entry, directory = file_identity(log / f"{version:020d}.json"), file_identity(log)
    if entry is None or directory is None:  # cut off, or not on a disk of this machine
        return _read_again(location, version)
    identity = (version, *entry)
    key = (location, *identity, *directory)
    with _reading:
        contents, opened = _taken(key), None
    if contents is None:
        opened = _table_at_version(location, log, version)
        contents = _contents(opened, location, version)
    with _reading:
        _taken(key)  # another thread may have read it meanwhile
        _known[key] = contents
        _counted[0] += contents[1].num_rows + 1
        if opened is not None:
            _opened[location] = identity, opened
        while _counted[0] > limits().known_files:
            oldest = next(iter(_known))
            _taken(oldest)
            _opened.pop(str(oldest[0]), None)
    return contents


def _table_at_version(location: str, log: Path, version: int) -> DeltaTable:
    """Return a table at a version. A table that was opened at an earlier version reads the later entries only."""
    with _reading:
        former = _opened.pop(location, None)
    if former is not None and former[0][0] < version:
        with suppress(OSError, DeltaError):  # the whole log is read below, which says what is wrong
            if former[0][1:] == file_identity(log / f"{former[0][0]:020d}.json"):
                former[1].load_as_version(version)
                return former[1]
    return DeltaTable(location, version=version)


def _taken(key: tuple[str | int, ...]) -> tuple[str, Any] | None:
    """Remove a version from the cache, and return it."""
    contents = _known.pop(key, None)
    _counted[0] -= 0 if contents is None else contents[1].num_rows + 1
    return contents


def _read_again(location: str, version: int) -> tuple[str, Any]:
    return _contents(DeltaTable(location, version=version), location, version)


def _contents(table: DeltaTable, location: str, version: int) -> tuple[str, Any]:
    """Return the id of an opened table and its flattened ``add`` actions."""
    actions, described = table.get_add_actions(flatten=True), table.metadata()
    left_out = f"max.{_LAST}" not in actions.schema.names
    if actions.num_rows and left_out and any(field.name == _LAST for field in table.schema().fields):
        import pyarrow as pa  # noqa: PLC0415 - slow to import, and only some tables need it

        actions = logged_actions(replay(Path(location), version), pa.schema(table.schema()), described.partition_columns)
    return str(described.id), actions


@dataclass(frozen=True)
class StoredFile:
    """A data file of a table: its path as the log has it, bytes, partition values."""

    path: str
    size: int
    partition: Mapping[str, str]

    @property
    def add(self) -> dict[str, Any]:
        """The part of its ``add`` action that is needed to remove it."""
        return {"path": self.path, "size": self.size, "partitionValues": self.partition}


def stored_files(table: Path, version: int) -> list[StoredFile]:
    """Return the data files of a table at a version; it fails as :func:`read_snapshot`."""
    _, actions = _read(table, version)
    paths, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    names = [name for name in actions.schema.names if name.startswith(_PARTITION)]
    partitions = zip(*(map(str, actions.column(name).to_pylist()) for name in names), strict=True)
    keys = [name.removeprefix(_PARTITION) for name in names]
    placed = (dict(zip(keys, values, strict=True)) for values in partitions) if names else repeat({})
    return [StoredFile(str(path), size, values) for path, size, values in zip(paths, sizes, placed, strict=False)]


def missing_files(table: Path, version: int) -> list[str]:
    """Return the data files of a table at a version that are not there, relative to it."""
    names = [unquote(file.path) for file in stored_files(table, version)]
    return [name for name in names if not (table / name).exists()]


def _files(location: str, actions: Any, columns: Sequence[str]) -> list[DataFile]:  # noqa: ANN401 - arro3 has no types
    """Return the files of the flattened add actions: one column per statistic, e.g. ``min._exp_slot``."""
    names = set(actions.schema.names)
    count = actions.num_rows

    def values(name: str) -> list[Any]:
        if name not in names:
            return [None] * count
        column = actions.column(name)
        if DataType.is_timestamp(column.type):
            column = column.cast(DataType.int64())
        elif DataType.is_date32(column.type):
            return [_day(days) for days in column.cast(DataType.int32()).to_pylist()]
        return list(column.to_pylist())

    def widened(name: str) -> tuple[list[Any], list[Any]]:
        lows, highs = values(f"min.{name}"), values(f"max.{name}")
        if f"max.{name}" in names and DataType.is_timestamp(actions.column(f"max.{name}").type):
            # cut to milliseconds, and not by every writer towards the past
            return [_plus(low, -_MILLISECOND) for low in lows], [_plus(high, _MILLISECOND) for high in highs]
        return [_slack(low, -1) for low in lows], [_slack(high, 1) for high in highs]

    bounds: list[dict[str, Bounds]] = [{} for _ in range(count)]
    for name in columns:
        for file_bounds, low, high, nulls in zip(bounds, *widened(name), values(f"null_count.{name}"), strict=True):
            file_bounds[name] = Bounds(low, high, nulls)
    files = [
        DataFile(f"{location}/{_decoded(path)}", size, rows, sub_index or 0, exp_block or 0, file_bounds)
        for path, size, rows, sub_index, exp_block, file_bounds in zip(
            values("path"),
            values("size_bytes"),
            values("num_records"),
            values("partition.sub_index"),
            values("partition.exp_block"),
            bounds,
            strict=True,
        )
    ]
    return sorted(files, key=lambda file: (file.sub_index, file.exp_block, file.path))


def _day(days: int | None) -> date | None:
    """Return the date a number of days after 1970; None, which bounds nothing, outside Python's years."""
    if days is None:
        return None
    ordinal = _ORDINAL_OF_1970 + days
    return date.fromordinal(ordinal) if 0 < ordinal <= _LAST_ORDINAL else None


def _plus(bound: int | None, difference: int) -> int | None:
    return None if bound is None else bound + difference


def _slack(bound: Any, direction: int) -> Any:  # noqa: ANN401 - any comparable value
    return bound + direction * abs(bound) * _DECIMAL_SLACK if isinstance(bound, Decimal) else bound


def _decoded(path: str) -> str:
    """Return the file's relative name: the log holds it percent-encoded once (Delta protocol, add file)."""
    return unquote(path) if "%" in path else path
