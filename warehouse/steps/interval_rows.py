"""Makes the rows of a synopsis's longer intervals: of intervals that an update completes, and of late rows in complete ones.

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
    known = [[] if before is None else [*_known(piece, synopsis.levels, slots, before)] for piece in new]
    every = [*zip(new, known, strict=True), *((piece, []) for piece in late)]
    if not every:
        return None
    with driver_connection() as connection:
        connection.register("gained", gained)
        source = "SELECT * FROM gained LIMIT 0" if before is None else stored(connection)
        connection.execute(f"CREATE TEMP VIEW stored AS {source}")
        parts = []
        for portion in _portions(every, gained):
            connection.register("intervals", _numbered([piece for piece, _ in portion]))
            connection.register("pieces", pieces_table([parts_known for _, parts_known in portion]))
            parts.append(connection.sql(lengthened_rows(synopsis)).to_arrow_table())
    found = pa.concat_tables(parts)
    if not found.num_rows:
        return None
    return united(session(), found, synopsis.states) if any(state.size is not None for state in synopsis.states) else found


def _known(piece: Piece, levels: int, slots: int, before: int) -> Iterator[Piece]:
    """The stored pieces of a new interval: intervals that were complete before, and later single slots."""
    yield from cover(piece.first, min(piece.last, before), levels, before - slots)
    yield from (Piece(0, slot) for slot in range(max(piece.first, before + 1), piece.last + 1))


def _portions(every: Sequence[_Made], gained: pa.Table) -> Iterator[Sequence[_Made]]:
    """Yield portions of intervals that are merged at once; a stored piece counts as many rows as a slot."""
    found = gained.group_by(ARRIVED).aggregate([([], "count_all")])
    rows = dict(zip(found[ARRIVED].to_pylist(), found["count_all"].to_pylist(), strict=True))
    most, portion, held = max(rows.values(), default=0), list[_Made](), 0
    for piece, known in every:
        own = len(known) * most + sum(rows.get(slot, 0) for slot in range(piece.first, piece.last + 1))
        if portion and held + own > AT_ONCE:
            yield portion
            portion, held = [], 0
        portion.append((piece, known))
        held += own
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
    """Return which intervals are read for each window, by its place in the sequence."""
    rows = [(key, *piece) for key, each in enumerate(pieces) for piece in each]
    names = (KEY, "_piece_level", "_piece_last")
    return pa.table({name: pa.array([row[at] for row in rows], pa.int64()) for at, name in enumerate(names)})
