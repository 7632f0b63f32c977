"""A stream's declaration as epochs and plans record it, and the conversion in both directions.

A record has no absolute path, so that a copied root works: ``landing`` is relative to the root (absolute if the root is in an
object store).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from warehouse.catalog.declared_paths import landing_at, path_from_record, recorded_path
from warehouse.catalog.model import MAX_EXPANSION, MAX_RECORD, Column, LayoutSpec, RelationChanges, Stream
from warehouse.catalog.spelling import as_written

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Format, NullExpiry, OverLifetime, UnknownColumns

__all__ = [
    "ColumnRecord",
    "Declaration",
    "declaration_of",
    "origin_of",
    "reading_digest",
    "stream_of",
    "table_declaration",
    "with_added",
]


@dataclass(frozen=True)
class ColumnRecord:
    """A column's name and Spark SQL type; of a loaded one also where its values come from, as :class:`Column` has it."""

    name: str
    type: str
    source: str | None = None
    expr: str | None = None
    formats: tuple[str, ...] = ()
    timezone: str | None = None

    @classmethod
    def of(cls, column: Column) -> ColumnRecord:
        """Return the record of a column."""
        return cls(column.name, column.type, column.source, column.expr, column.formats, column.timezone)

    def column(self) -> Column:
        """Return the column that was recorded."""
        return Column(self.name, self.type, self.source, self.expr, self.formats, self.timezone)


@dataclass(frozen=True)
class Declaration:
    """A stream's declaration at the time of the epoch's plan; ``landing`` is relative to the root.

    A relation is recorded as the stream of its changes, with ``op``. ``added`` names columns that files brought.
    """

    landing: str
    files: str
    format: str
    options: tuple[tuple[str, str], ...]
    timezone: str
    columns: tuple[ColumnRecord, ...]
    search_key: tuple[str, ...]
    arrival: str
    expires: str | None
    max_lifetime: int | None
    over_lifetime: str
    max_ahead: int | None
    null_expiry: str
    unknown_columns: str
    label: str
    op: str | None = None
    retroactive: bool = False
    max_record: int = MAX_RECORD
    max_expansion: int = MAX_EXPANSION
    added: tuple[str, ...] = ()
    sources: tuple[ColumnRecord, ...] = ()
    partitions: tuple[str, ...] = ()


def declaration_of(stream: Stream, root: Path) -> Declaration:
    """Return the record of a stream.

    Parameters
    ----------
    stream
        The declared stream.
    root
        Where the tables are, absolute.

    """
    return Declaration(
        landing=recorded_path(stream.landing_path, root),
        files=stream.files,
        format=stream.format,
        options=stream.options,
        timezone=stream.timezone,
        columns=tuple(ColumnRecord.of(column) for column in stream.columns),
        search_key=stream.search_key,
        arrival=stream.arrival,
        expires=stream.expires,
        max_lifetime=stream.max_lifetime,
        over_lifetime=stream.over_lifetime,
        max_ahead=stream.max_ahead,
        null_expiry=stream.null_expiry,
        unknown_columns=stream.unknown_columns,
        label=stream.label,
        op=stream.changes.op if stream.changes else None,
        retroactive=stream.changes.retroactive if stream.changes else False,
        max_record=stream.max_record,
        max_expansion=stream.max_expansion,
        added=stream.added,
        sources=tuple(ColumnRecord.of(column) for column in stream.sources),
        partitions=stream.partitions,
    )


def origin_of(column: ColumnRecord) -> str | None:
    """Return the part of a column's declaration that says where its values come from; None if it has only the type.

    >>> origin_of(ColumnRecord("seen", "timestamp", "ts", None, ("epoch_seconds",)))
    'from = "ts", format = "epoch_seconds"'
    """
    formats = column.formats[0] if len(column.formats) == 1 else column.formats
    pairs = (("from", column.source), ("expr", column.expr), ("format", formats), ("timezone", column.timezone))
    return ", ".join(f"{key} = {as_written(value)}" for key, value in pairs if value) or None


def reading_digest(declared: Stream | Declaration) -> str:
    """Return a digest of the keys that decide whether a file can be read: format, options, columns, bounds.

    It ignores columns that files added, so that it changes only if the user changes the declaration.
    """
    columns = tuple(column for column in declared.columns if column.name not in declared.added)
    content = (
        declared.format,
        declared.options,
        declared.timezone,
        [
            (column.name, column.type, column.source, column.expr, column.formats, column.timezone)
            for column in (*columns, *declared.sources)
        ],
        len(columns),
        declared.search_key,
        declared.unknown_columns,
        declared.max_record,
        declared.max_expansion,
        *([declared.partitions] if declared.partitions else []),  # so the digests of older versions stay valid
    )
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def with_added(stream: Stream, recorded: Declaration | None) -> Stream:
    """Return a stream with the columns that files added to its table, after its own columns; it replaces no declared column."""
    if recorded is None or not recorded.added:
        return stream
    declared = {column.name.lower() for column in stream.columns}
    added_columns = tuple(
        column.column()
        for column in recorded.columns
        if column.name in recorded.added and column.name.lower() not in declared
    )
    added = (*stream.added, *(column.name for column in added_columns))
    return replace(stream, columns=(*stream.columns, *added_columns), added=added)


def table_declaration(
    columns: tuple[ColumnRecord, ...], search_key: tuple[str, ...], *, label: str, max_lifetime: int | None
) -> Declaration:
    """Return the record of a table without landing files: a view, or the state of an operator."""
    return Declaration(
        landing="",
        files="",
        format="",
        options=(),
        timezone="UTC",
        columns=columns,
        search_key=search_key,
        arrival="",
        expires=None,
        max_lifetime=max_lifetime,
        over_lifetime="accept",
        max_ahead=None,
        null_expiry="never",
        unknown_columns="reject",
        label=label,
    )


def stream_of(recorded: Declaration, name: str, root: Path, layout: LayoutSpec | None = None) -> Stream:
    """Return the stream of a recorded declaration, so that a plan is resumed with its own declarations.

    A plan lists its landing files, so ``landing_settle`` is not recorded, and is zero in the result.
    """
    landing = landing_at(path_from_record(recorded.landing, root), root)
    return Stream(
        name=name,
        landing=landing.local,
        store=landing.store,
        files=recorded.files,
        format=cast("Format", recorded.format),
        options=recorded.options,
        timezone=recorded.timezone,
        columns=tuple(column.column() for column in recorded.columns),
        search_key=recorded.search_key,
        arrival=recorded.arrival,
        expires=recorded.expires,
        max_lifetime=recorded.max_lifetime,
        over_lifetime=cast("OverLifetime", recorded.over_lifetime),
        max_ahead=recorded.max_ahead,
        null_expiry=cast("NullExpiry", recorded.null_expiry),
        unknown_columns=cast("UnknownColumns", recorded.unknown_columns),
        landing_settle=0,
        layout=layout or LayoutSpec(),
        changes=None if recorded.op is None else RelationChanges(recorded.op, recorded.retroactive),
        max_record=recorded.max_record,
        max_expansion=recorded.max_expansion,
        added=recorded.added,
        sources=tuple(column.column() for column in recorded.sources),
        partitions=recorded.partitions,
    )
