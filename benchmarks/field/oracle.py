"""What every contender must answer: DuckDB over the landing files themselves, with the definition of live and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import duckdb

from benchmarks.field.digest import digest_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.field.digest import Digest

__all__ = ["Oracle", "WrongAnswerError"]

_MICROS = ("k", 'epoch_us("at")', "epoch_us(until)", "a", "b", "v")


class WrongAnswerError(Exception):
    """A contender answered something else than the rows that are live; the text tells how many."""


class Oracle:
    """The rows that landed in files. All arrived by the window time asked for, so a row is live while ``until > now``."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self.files = [str(file) for file in files]

    def probe(self, keys: Sequence[str], now: int) -> dict[str, Digest]:
        """Return the digest of the live rows of each key."""
        digests = self._ask(f"SELECT k, {digest_sql(_MICROS)} {_LIVE} AND k IN (SELECT unnest(?)) GROUP BY k", now, list(keys))
        return {**dict.fromkeys(keys, (0, 0)), **{str(key): (int(rows), int(total)) for key, rows, total in digests}}

    def scan(self, now: int) -> Digest:
        """Return the digest of all live rows."""
        rows, total = self._ask(f"SELECT {digest_sql(_MICROS)} {_LIVE}", now)[0]
        return int(rows), int(total)

    def aggregate(self, now: int) -> tuple[int, float]:
        """Return sum(a) and max(b) of the live rows."""
        total, largest = self._ask(f"SELECT sum(a), max(b) {_LIVE}", now)[0]
        return int(total), float(largest)

    def close(self) -> None:
        """Let everything go."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _ask(self, query: str, now: int, *more: object) -> list[tuple[object, ...]]:
        return self._connection.execute(query, [self.files, now, *more]).fetchall()


_LIVE = "FROM read_parquet(?) WHERE epoch_us(until) > ?"
