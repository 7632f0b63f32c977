"""A stream's declaration as epochs and plans record it, and the way there and back.

What is recorded holds no absolute path, so that a copied root works: ``landing`` is relative to the root (absolute
when the root is in an object store).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from warehouse.catalog.model import MAX_EXPANSION, MAX_RECORD, Changes, Column, LayoutSpec, Stream
from warehouse.catalog.places import place_of, recorded_place

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Format, NullExpiry, OverLifetime, UnknownColumns

__all__ = ["ColumnRecord", "Declaration", "declaration", "stream_of", "table_declaration", "with_added"]


@dataclass(frozen=True)
class ColumnRecord:
    """A column's name and Spark SQL type."""

    name: str
    type: str


@dataclass(frozen=True)
class Declaration:
    """What a stream's declaration said when the epoch was planned; ``landing`` is relative to the root.

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


def declaration(stream: Stream, root: Path) -> Declaration:
    """Return what is recorded of a stream.

    Parameters
    ----------
    stream
        The declared stream.
    root
        Where the tables are, absolute.

    """
    return Declaration(
        landing=recorded_place(stream.landing, root),
        files=stream.files,
        format=stream.format,
        options=stream.options,
        timezone=stream.timezone,
        columns=tuple(ColumnRecord(column.name, column.type) for column in stream.columns),
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
    )


def with_added(stream: Stream, recorded: Declaration | None) -> Stream:
    """Return a stream with the columns that files brought to its table, after its own; those that it has already stay."""
    if recorded is None or not recorded.added:
        return stream
    declared = {column.name.lower() for column in stream.columns}
    kept = tuple(
        Column(column.name, column.type)
        for column in recorded.columns
        if column.name in recorded.added and column.name.lower() not in declared
    )
    added = (*stream.added, *(column.name for column in kept))
    return replace(stream, columns=(*stream.columns, *kept), added=added)


def table_declaration(
    columns: tuple[ColumnRecord, ...], search_key: tuple[str, ...], *, label: str, max_lifetime: int | None
) -> Declaration:
    """Return what is recorded of a table that no file is loaded into: a view's, or an operator's state."""
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
    """Return the stream that a recorded declaration was made from, so that a plan is resumed with what it holds.

    A plan lists its landing files, so ``landing_settle`` is not recorded and zero here.
    """
    return Stream(
        name=name,
        landing=place_of(recorded.landing, root),
        files=recorded.files,
        format=cast("Format", recorded.format),
        options=recorded.options,
        timezone=recorded.timezone,
        columns=tuple(Column(column.name, column.type) for column in recorded.columns),
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
        changes=None if recorded.op is None else Changes(recorded.op, recorded.retroactive),
        max_record=recorded.max_record,
        max_expansion=recorded.max_expansion,
        added=recorded.added,
    )
