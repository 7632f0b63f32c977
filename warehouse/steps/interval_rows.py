"""Makes the rows of a synopsis's longer intervals: of intervals that an update completes, and of late rows in complete intervals.

The row of an interval that is complete now is merged from the stored rows of its slots, in the longest existing intervals, and
from the rows that the update adds. An interval that was complete before gets another row with the late rows, as a slot does. So
stored rows are never rewritten, and the rows of an interval always merge to the same states as the rows of its slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.aggregates.intervals import Piece, changed, cover
from warehouse.aggregates.synopses import ARRIVED
from warehouse.steps.merging import KEY, lengthened_rows
from warehouse.steps.sketches import united
from warehouse.storage.lookup import driver_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import duckdb
    from pyspark.sql import SparkSession

    from warehouse.aggregates.synopses import Synopsis

__all__ = ["AT_ONCE", "interval_rows", "pieces_table"]

AT_ONCE = 4_000_000
"""About how many rows are merged at once, in bounded memory. An interval with more rows is merged alone."""


_Made = tuple[Piece, "Sequence[Piece]"]


def interval_rows(
    synopsis: Synopsis,
    gained: pa.Table,
    stored: Callable[[duckdb.DuckDBPyConnection], str],
    *,
    slots: int,
    before: int | None,
    through: int,
    session: Callable[[], SparkSession],
) -> pa.Table | None:
    """Return the rows of intervals of several slots, with the columns of the synopsis; None if there are none.

    Parameters
    ----------
    synopsis
        The synopsis.
    gained
        The rows of slots that the update adds.
    stored
        Returns the query for the rows before the update.
    slots
        The number of slots for which a slot is kept.
    before, through
        The last slots for which intervals were complete before, and are complete now; ``before`` is None if there was no row.
    session
        Returns a session, in which sketches are merged.

    """
    arrived = set(pc.unique(gained[ARRIVED]).to_pylist())
    new, late = changed(synopsis.levels, slots, before=before, through=through, arrived=arrived)
    known_pieces = [[] if before is None else [*_known(piece, synopsis.levels, slots, before)] for piece in new]
    intervals = [*zip(new, known_pieces, strict=True), *((piece, []) for piece in late)]
    if not intervals:
        return None
    with driver_connection() as connection:
        connection.register("gained", gained)
        source = "SELECT * FROM gained LIMIT 0" if before is None else stored(connection)
        connection.execute(f"CREATE TEMP VIEW stored AS {source}")
        parts = []
        for portion in _portions(intervals, gained):
            connection.register("intervals", _numbered([piece for piece, _ in portion]))
            connection.register("pieces", pieces_table([parts_known for _, parts_known in portion]))
            parts.append(connection.sql(lengthened_rows(synopsis)).to_arrow_table())
    rows = pa.concat_tables(parts)
    if not rows.num_rows:
        return None
    return united(session(), rows, synopsis.states) if any(state.size is not None for state in synopsis.states) else rows


def _known(piece: Piece, levels: int, slots: int, before: int) -> Iterator[Piece]:
    """The stored pieces of a new interval: intervals that were complete before, and later single slots."""
    yield from cover(piece.first, min(piece.last, before), levels, before - slots)
    yield from (Piece(0, slot) for slot in range(max(piece.first, before + 1), piece.last + 1))


def _portions(intervals: Sequence[_Made], gained: pa.Table) -> Iterator[Sequence[_Made]]:
    """Yield portions of intervals that are merged at once; a stored piece counts as many rows as a slot."""
    row_counts = gained.group_by(ARRIVED).aggregate([([], "count_all")])
    rows = dict(zip(row_counts[ARRIVED].to_pylist(), row_counts["count_all"].to_pylist(), strict=True))
    most, portion, size = max(rows.values(), default=0), list[_Made](), 0
    for piece, known_pieces in intervals:
        own_size = len(known_pieces) * most + sum(rows.get(slot, 0) for slot in range(piece.first, piece.last + 1))
        if portion and size + own_size > AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append((piece, known_pieces))
        size += own_size
    yield portion


def _numbered(pieces: Sequence[Piece]) -> pa.Table:
    columns = {
        KEY: range(len(pieces)),
        "_level": [piece.level for piece in pieces],
        "_first": [piece.first for piece in pieces],
        "_last": [piece.last for piece in pieces],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def pieces_table(pieces: Sequence[Sequence[Piece]]) -> pa.Table:
    """Return which intervals are read for each window, by its number in the sequence."""
    rows = [(key, *piece) for key, window_pieces in enumerate(pieces) for piece in window_pieces]
    names = (KEY, "_piece_level", "_piece_last")
    return pa.table({name: pa.array([row[number] for row in rows], pa.int64()) for number, name in enumerate(names)})
