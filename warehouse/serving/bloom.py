"""Bloom filters of data files, which a reader caches when it probes a table more than once.

DuckDB skips a row group by its filter, too, but must open each file for that: about 0.1 ms per file (*measured*). With cached
filters a file is pruned before it is opened. The format is Parquet's split-block filter (:mod:`warehouse.promise.presence`); the
hash of a value is its 64-bit xxHash with seed 0.

A filter never excludes a value of its row group; a row group without a filter may have any value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import xxhash

from warehouse.promise.presence import BLOCK, bits_of, holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import duckdb

    from warehouse.serving.keys import KeyColumn

__all__ = ["MAX_KEYS", "FileFilters", "Filters", "Probe", "first_filters", "probes_of"]

MAX_KEYS = 16
"""More keys than these are not looked up in filters: nearly every file holds one of them."""

_MAX_BYTES = 64 * 1024 * 1024
_MAX_FILES_AT_ONCE = 256

_HEADER_REST = bytes.fromhex("1c1c00001c1c00001c1c000000")
"""Thrift of: algorithm split-block, hash xxHash, uncompressed, end."""

_DECIMAL_DIGITS_OF_INT64 = 18
_EPOCH = date(1970, 1, 1)

_FOOTERS = """
    SELECT file_name, row_group_id, path_in_schema, type, bloom_filter_offset
    FROM parquet_metadata(?)
    WHERE path_in_schema IN (SELECT unnest(?::VARCHAR[]))
    ORDER BY file_name, row_group_id
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """A value's 64-bit hash and its bits in a block, by the physical type that a file may give its column."""

    hashes: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Filter:
    """One row group's filter of one column: its bytes, or None where there is no filter of a known form."""

    physical: str
    data: bytes | None

    def may_hold(self, probe: Probe) -> bool:
        key_hashes = probe.hashes.get(self.physical)
        if self.data is None or key_hashes is None:
            return True
        return holds(self.data, *key_hashes)


@dataclass(frozen=True, slots=True)
class FileFilters:
    """The filters of one file: per row group, per column."""

    groups: tuple[dict[str, _Filter], ...]

    def may_hold(self, key: Sequence[tuple[str, Probe]]) -> bool:
        """Whether a row group can hold a key, given as columns and probes of its parts."""
        return any(
            all(column not in group or group[column].may_hold(probe) for column, probe in key) for group in self.groups
        )


def first_filters(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Return at which byte of each file the filters of some columns begin; files without filters are left out."""
    rows = connection.execute(_FOOTERS, [list(paths), list(columns)]).fetchall()
    begins: dict[str, int] = {}
    for name, _, _, _, offset in rows:
        if offset:
            begins[name] = min(offset, begins.get(name, offset))
    return begins


@dataclass
class Filters:
    """The filters that a reader caches, by path of the file; files beyond the memory bound have no filter."""

    files: dict[str, FileFilters] = field(default_factory=dict)
    bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether the memory bound is reached, so no further filter is read."""
        return self.bytes >= _MAX_BYTES

    def load(self, connection: duckdb.DuckDBPyConnection, paths: Iterable[str], columns: Sequence[str]) -> None:
        """Read the filters of some columns from the files that are not loaded yet."""
        absent = [path for path in paths if path not in self.files][:_MAX_FILES_AT_ONCE]
        if not absent or self.full:
            return
        rows = connection.execute(_FOOTERS, [absent, list(columns)]).fetchall()
        groups: dict[str, dict[int, dict[str, _Filter]]] = {path: {} for path in absent}
        streams: dict[str, list[tuple[int, str, str, int | None]]] = {}
        for name, group, column, physical, offset in rows:
            streams.setdefault(name, []).append((group, column, physical, offset))
        for name, entries in streams.items():
            with open(name, "rb") as stream:  # noqa: PTH123 - a path object costs more than the read
                for group, column, physical, offset in entries:
                    data = _read(stream, offset) if offset else None
                    groups[name].setdefault(group, {})[column] = _Filter(physical, data)
                    self.bytes += len(data or b"")
        for path, by_group in groups.items():
            # a file without a row group has no row, but nothing is concluded from that here
            self.files[path] = FileFilters(tuple(by_group.values()) or ({},))

    def may_hold(self, path: str, keys: Iterable[Sequence[tuple[str, Probe]]]) -> bool:
        """Whether a file can hold one of the keys."""
        filters = self.files.get(path)
        return filters is None or any(filters.may_hold(key) for key in keys)


def _read(stream: Any, offset: int) -> bytes | None:  # noqa: ANN401 - a binary stream
    """Return the bits of the filter at an offset, or None if its header is not the usual one."""
    stream.seek(offset)
    head = stream.read(32)
    size, shift, position = 0, 0, 1
    while head[position] & 0x80:
        size |= (head[position] & 0x7F) << shift
        shift, position = shift + 7, position + 1
    size = (size | head[position] << shift) >> 1  # zigzag of a positive number
    body = position + 1 + len(_HEADER_REST)
    if head[0] != 0x15 or head[position + 1 : body] != _HEADER_REST or size % BLOCK or not size:  # noqa: PLR2004 - field 1, i32
        return None
    stream.seek(offset + body)
    data: bytes = stream.read(size)
    return data if len(data) == size else None


def probes_of(key: Sequence[Any], columns: Sequence[KeyColumn]) -> list[tuple[str, Probe]]:
    """Return the hashes to look up for a key; empty for nulls and for types whose filters are not used."""
    probes = [
        (column.name, _probe(part, column.type)) for part, column in zip(key, columns, strict=False) if part is not None
    ]
    return [(name, probe) for name, probe in probes if probe.hashes]


def _probe(part: Any, sql_type: str) -> Probe:  # noqa: ANN401 - any key value
    """Hash a value as Parquet stores it; timestamps have units of several kinds, booleans need no filter."""
    match part:
        case str():
            return Probe({"BYTE_ARRAY": _hashed(part.encode())})
        case date():
            return Probe(_integers((part - _EPOCH).days))
        case Decimal():
            digits, scale = (int(number) for number in sql_type.removeprefix("DECIMAL(").rstrip(")").split(","))
            return Probe(_integers(int(part.scaleb(scale))) if digits <= _DECIMAL_DIGITS_OF_INT64 else {})
        case int() if sql_type.endswith(("INT", "INTEGER")):
            return Probe(_integers(part))
        case _:
            return Probe({})


def _integers(value: int) -> dict[str, tuple[int, int]]:
    hashes = {"INT64": _hashed(value.to_bytes(8, "little", signed=True))}
    if -(2**31) <= value < 2**31:
        hashes["INT32"] = _hashed(value.to_bytes(4, "little", signed=True))
    return hashes


def _hashed(data: bytes) -> tuple[int, int]:
    hashed = xxhash.xxh64_intdigest(data)
    return hashed, bits_of(hashed)
