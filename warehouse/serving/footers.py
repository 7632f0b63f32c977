"""Statistics of numeric columns in the footers of data files: least and greatest value, nulls; a reader reads them once.

A file without statistics of a column, or with a NaN, has no bounds for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warehouse.storage.duckdb_sql import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from warehouse.serving.clock import Clock
    from warehouse.storage.snapshot import DataFile

__all__ = ["FooterBounds", "Footers"]

_AT_ONCE = 64
_MOST = 200_000


@dataclass(frozen=True, slots=True)
class FooterBounds:
    """The bounds of a column's values in a file (None: open), and its nulls (None: unknown)."""

    low: Any
    high: Any
    nulls: int | None


@dataclass
class Footers:
    """Cached bounds from footers, by path and column."""

    known: dict[tuple[str, str], FooterBounds] = field(default_factory=dict)

    def of(self, file: DataFile, column: str) -> FooterBounds | None:
        """Return the bounds of a column in a file; None: its footer was not read."""
        return self.known.get((file.path, column))

    def load(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[DataFile],
        types: Mapping[str, str],
        clock: Clock,
        until: float,
    ) -> None:
        """Read the footers of files, as long as more than ``until`` seconds are left; ``types`` are DuckDB's, by column."""
        if len(self.known) > _MOST:
            self.known.clear()
        missing = [file for file in files if any((file.path, name) not in self.known for name in types)]
        for first in range(0, len(missing), _AT_ONCE):
            if clock.left <= until:
                return
            chunk = missing[first : first + _AT_ONCE]
            for name, kind in types.items():
                self._load(connection, chunk, name, kind)

    def _load(self, connection: duckdb.DuckDBPyConnection, files: Sequence[DataFile], name: str, kind: str) -> None:
        low, high = (_as_read(bound, kind) for bound in ("stats_min_value", "stats_max_value"))
        text = f"""SELECT file_name, min({low}), max({high}), bool_and(stats_null_count IS NOT NULL), sum(stats_null_count),
            bool_or(({low} IS NULL OR {high} IS NULL) AND stats_null_count IS DISTINCT FROM num_values)
            FROM parquet_metadata(?) WHERE path_in_schema = {literal(name)} GROUP BY file_name"""
        statistics = {row[0]: row[1:] for row in connection.execute(text, [[file.path for file in files]]).fetchall()}
        for file in files:
            if file.path not in statistics:  # the file may be older than the column
                self.known[file.path, name] = FooterBounds(None, None, None)
                continue
            low, high, counted, nulls, is_open = statistics[file.path]
            number = int(nulls) if counted else None
            self.known[file.path, name] = FooterBounds(None, None, number) if is_open else FooterBounds(low, high, number)


def _as_read(bound: str, kind: str) -> str:
    """Return a bound as a value of the column: bounds of floats have fewer digits than the doubles that are read from them."""
    return f"CASE WHEN type = 'FLOAT' THEN CAST(TRY_CAST({bound} AS FLOAT) AS {kind}) ELSE TRY_CAST({bound} AS {kind}) END"
