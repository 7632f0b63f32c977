"""One run: the states of synopses for the due windows, merged once for all aggregates that need them.

The first aggregate that needs windows of a synopsis merges the windows of the others, too, in one pass over its rows. So a window
of two aggregates is merged once, also if one of them needs it less often, and an aggregate whose condition is covered by others
uses their merged states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from warehouse.aggregates.intervals import cover
from warehouse.aggregates.synopses import VALUE
from warehouse.catalog.duck_sql import quoted
from warehouse.steps.interval_rows import pieces_table
from warehouse.steps.merging import FIRSTS, KEY, PLACE, subtracted, windowed
from warehouse.storage.lookup import driver_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    import duckdb

    from warehouse.aggregates.intervals import Piece
    from warehouse.aggregates.synopses import Synopsis
    from warehouse.planning.following import SynopsisRead

__all__ = ["WindowBounds", "WindowRun"]

_MOST_SHARED = 2_000_000
"""Up to this number of merged states are calculated for other aggregates, too; more are calculated when they are needed."""


class WindowBounds(NamedTuple):
    """Which rows of a synopsis a window has: the rows of its slots; over live rows, only rows that live after the slot ``after``.

    The others are the first slots of the inputs of a join.
    """

    first: int
    end: int
    after: int
    first_1: int
    first_2: int


@dataclass(eq=False)
class WindowRun:
    """Windows of synopses, merged once.

    Parameters
    ----------
    stored
        Returns the query for the rows of a synopsis, by its table's name.
    synopsis
        Returns the synopsis of a table.
    asked
        Returns the windows of a table that the unanswered aggregates need.
    pieces
        Returns the intervals of a window, for a table with intervals longer than a slot.

    """

    stored: Callable[[duckdb.DuckDBPyConnection, str], str]
    synopsis: Callable[[str], Synopsis]
    asked: Callable[[str], Collection[WindowBounds]] = lambda _: ()
    pieces: Callable[[str, WindowBounds], Iterable[Piece]] = lambda _, window: cover(window.first, window.end, 0)
    passes: int = 0
    _keys: dict[str, dict[WindowBounds, int]] = field(default_factory=dict)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to a database in memory."""
        return driver_connection()

    def prepare(self, reads: Sequence[SynopsisRead], bounds: Sequence[Sequence[WindowBounds]]) -> None:
        """Make the tables ``synopsis_i`` that an aggregate's answers are merged from.

        Parameters
        ----------
        reads
            Its synopses.
        bounds
            For each synopsis, the due windows by their positions.

        """
        windows_of: dict[str, dict[WindowBounds, None]] = {}
        for read, due_windows in zip(reads, bounds, strict=True):
            for table in read.tables:
                windows_of.setdefault(table, {}).update(dict.fromkeys(due_windows))
        for table, windows in windows_of.items():
            self._merge(table, list(windows))
        for number, (read, due_windows) in enumerate(zip(reads, bounds, strict=True)):
            placed = [
                self._placed(f"placed_{number}_{position}", table, due_windows) for position, table in enumerate(read.tables)
            ]
            query = f"SELECT * FROM {placed[0]}"
            if read.less:
                terms = [(table, 1 if position <= len(read.plus) else -1) for position, table in enumerate(placed)]
                query = subtracted(read.synopsis, read.states, PLACE, terms)
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW synopsis_{number} AS {query}")

    def _placed(self, view: str, table: str, bounds: Sequence[WindowBounds]) -> str:
        """Make the view of a synopsis's merged windows by the positions of the windows, and return its name."""
        keys = self._keys[table]
        key_columns = {PLACE: range(len(bounds)), KEY: [keys[window] for window in bounds]}
        self.connection.register(
            f"{view}_keys", pa.table({name: pa.array(values, pa.int64()) for name, values in key_columns.items()})
        )
        query = f"SELECT p.{PLACE}, w.* EXCLUDE ({KEY}) FROM {view}_keys AS p JOIN {quoted(table)} AS w USING ({KEY})"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {query}")
        return view

    def _merge(self, table: str, bounds: Sequence[WindowBounds]) -> None:
        """Merge windows of a synopsis, unless all of them are merged."""
        if self._keys.get(table, {}).keys() >= set(bounds):
            return
        connection, synopsis = self.connection, self.synopsis(table)
        connection.execute(f"CREATE OR REPLACE TEMP VIEW stored AS {self.stored(connection, table)}")
        all_windows = list(dict.fromkeys((*bounds, *self.asked(table))))
        if len(all_windows) > len(bounds) and self._exceeds_limit(synopsis, len(all_windows)):
            all_windows = list(bounds)
        numbered = [(key, *window) for key, window in enumerate(all_windows)]
        columns = dict(zip((KEY, "_first", "_end", "_after", *FIRSTS), zip(*numbered, strict=True), strict=True))
        connection.register("windows", pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()}))
        if synopsis.levels:
            connection.register("pieces", pieces_table([[*self.pieces(table, window)] for window in all_windows]))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(table)} AS {windowed(synopsis)}")
        self.passes += 1
        self._keys[table] = {window: key for key, window in enumerate(all_windows)}

    def _exceeds_limit(self, synopsis: Synopsis, windows: int) -> bool:
        """Whether the states of these windows may be too many to be kept for other aggregates."""
        if self._counted("SELECT count(*) FROM stored") * windows <= _MOST_SHARED:
            return False
        groups = [quoted(name) for name, _ in synopsis.group_by] + ([] if synopsis.counted is None else [VALUE])
        distinct = f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(groups)} FROM stored)"
        return bool(groups) and self._counted(distinct) * windows > _MOST_SHARED

    def _counted(self, query: str) -> int:
        return int(self.connection.sql(query).fetchall()[0][0])

    def forget(self, tables: Collection[str]) -> None:
        """Drop the merged states of all tables except these, which are still needed."""
        for table in [name for name in self._keys if name not in tables]:
            del self._keys[table]
            self.connection.execute(f"DROP TABLE {quoted(table)} CASCADE")

    def close(self) -> None:
        """Free the memory; later requests merge again."""
        self._keys.clear()
        opened = self.__dict__.pop("connection", None)
        if opened is not None:
            opened.close()
