"""Explains an empty answer of a probe or a scan: the rows expired, the key never arrived, or the table is empty."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.errors import EpochVacuumedError, MissingPartError, RecordDamagedError, UnknownNameError
from warehouse.serving.reader import Reader
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.time import NEVER, format_instant, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.epochs.records import Epoch

__all__ = ["why_no_key", "why_no_row"]

_MOST_EPOCHS = 30
_SECONDS = 2.0
"""How long earlier epochs are searched."""
_MOST_BYTES = 2 * 10**9
"""Stored bytes of a table up to which its keys are searched for the nearest ones."""


def why_no_key(reader: Reader, table: str, selection: Mapping[str, Any]) -> str:
    """Return why keys, or a range of keys, have no live row.

    Parameters
    ----------
    reader
        The epoch that was read.
    table
        The table's name.
    selection
        The arguments of :meth:`Reader.probe` that chose rows: ``keys``, ``from_``, ``to`` or ``null``.

    """
    keys = selection.get("keys")
    if keys is not None and not keys:
        return "no key was given"
    deadline = time.monotonic() + _SECONDS
    looked = None
    for epoch in _earlier(reader):
        if looked is not None and time.monotonic() > deadline:
            older = format_instant(epoch.window_time)
            return f"not in epoch {looked} or a newer one; the same with --as-of {older} looks at older ones"
        last = _last_end(reader, epoch, table, selection)
        if last is not None:
            window = format_instant(epoch.window_time)
            removal = "removed: erased, retracted or replaced" if last == NEVER else f"expired {format_instant(last)}"
            return f"{removal}; last live in epoch {epoch.number}, window time {window}"
        looked = epoch.number
    if keys is None:
        return "no readable epoch has a row of these keys"
    if len(keys) > 1:
        return f"no readable epoch has a row of these {len(keys)} keys"
    nearest = _nearest(reader, table, keys[0])
    return f"no readable epoch has this key{f'; nearest keys: {nearest}' if nearest else ''}"


def why_no_row(reader: Reader, table: str) -> str | None:
    """Return why a table has no live row; None if it has some, which a condition then left out."""
    state = reader.epoch.table(table)
    if state is None:
        return None
    if state.newest is None and not state.partitions:
        return "no row of this table has come yet"
    if reader.scan(table, limit=1).all():
        return None
    newest = f"; the newest arrived at {format_instant(state.newest)}" if state.newest is not None else ""
    return f"all rows of this table have expired{newest}"


def _earlier(reader: Reader) -> Iterator[Epoch]:
    """Yield the epoch that was read, since its rows may end before a later ``now``, and the epochs before it, newest first."""
    numbers = [number for number in epoch_numbers(reader.root) if number <= reader.epoch.number]
    for number in numbers[: -_MOST_EPOCHS - 1 : -1]:
        try:
            yield read_epoch(reader.root, number)
        except (MissingPartError, RecordDamagedError):
            continue


def _last_end(reader: Reader, epoch: Epoch, table: str, selection: Mapping[str, Any]) -> int | None:
    """Return the latest expiration of a selection's rows in an epoch, NEVER if one never expires; None if it has no row."""
    if epoch.table(table) is None:
        return None
    try:
        with Reader(reader.root, epoch) as earlier:
            ends = [row[0] for row in earlier.probe(table, **selection, columns=["_exp"]).all()]
    except (EpochVacuumedError, UnknownNameError):
        return None
    return max((NEVER if end is None else to_micros(end) for end in ends), default=None)


def _nearest(reader: Reader, table: str, key: object) -> str:
    """Return the live keys before and after a key of one column, as text."""
    state, columns = reader.epoch.table(table), reader.key_columns(table)
    if state is None or len(columns) != 1 or sum(part.bytes for part in state.partitions) > _MOST_BYTES:
        return ""
    value = key[0] if isinstance(key, tuple) else key
    column = quoted(columns[0].name)
    key_value = f"CAST({literal(str(value))} AS {columns[0].type})"
    query = (
        f"SELECT CAST(max({column}) FILTER ({column} < {key_value}) AS VARCHAR), "
        f"CAST(min({column}) FILTER ({column} > {key_value}) AS VARCHAR) FROM {quoted(state.name)}"
    )
    rows = reader.sql(query).all()
    return ", ".join(text for text in rows[0] if text is not None) if rows else ""
