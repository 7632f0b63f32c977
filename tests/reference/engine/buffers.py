"""Buffers for stored rows, one for each update pattern (update-patterns sheet, 5.1); the calendar queue is beside them.

============================  ================  =======================================
input pattern                 buffer            expiration
============================  ================  =======================================
monotonic                     ``AppendList``    never
weakest (equal lifetimes)     ``FifoQueue``     from the head
count-based window            ``FifoRing``      the oldest row is overwritten
weak                          ``CalendarQueue`` whole days
strict, many early ends       ``HashTable``     one look-up for each negative tuple
============================  ================  =======================================
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Protocol

from tests.reference.engine.tuples import Key, Row, first, live_rows

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["AppendList", "Buffer", "FifoQueue", "FifoRing", "HashTable"]


class Buffer(Protocol):
    """What every buffer does; ``insert`` and ``expire`` return the rows that they remove."""

    def insert(self, row: Row) -> list[Row]:
        """Store a row."""
        ...

    def expire(self, now: int) -> list[Row]:
        """Remove expired rows, as far as the structure finds them without looking at the others."""
        ...

    def rows(self) -> list[Row]:
        """All stored rows, also expired ones that are still there."""
        ...

    def live(self, now: int) -> list[Row]:
        """The stored rows that are live."""
        ...


class AppendList:
    """Rows that never expire."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def insert(self, row: Row) -> list[Row]:
        """Append a row."""
        self._rows.append(row)
        return []

    def expire(self, now: int) -> list[Row]:  # noqa: ARG002 - the protocol's
        """Remove nothing."""
        return []

    def rows(self) -> list[Row]:
        """All rows."""
        return list(self._rows)

    def live(self, now: int) -> list[Row]:
        """The rows that are live."""
        return live_rows(self._rows, now)


class FifoQueue:
    """Rows that expire in the order in which they come."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()

    def insert(self, row: Row) -> list[Row]:
        """Append a row.

        Raises
        ------
        ValueError
            When it expires before the last one.

        """
        if self._rows and row.exp < self._rows[-1].exp:
            raise ValueError(f"{row} expires before {self._rows[-1]}: weak input needs a calendar queue")
        self._rows.append(row)
        return []

    def expire(self, now: int) -> list[Row]:
        """Remove expired rows from the head."""
        removed = []
        while self._rows and self._rows[0].exp <= now:
            removed.append(self._rows.popleft())
        return removed

    def rows(self) -> list[Row]:
        """All rows."""
        return list(self._rows)

    def live(self, now: int) -> list[Row]:
        """The rows that are live."""
        return live_rows(self._rows, now)


class FifoRing:
    """The newest rows; a new one overwrites the oldest, which then needs a negative tuple.

    Parameters
    ----------
    size
        Number of places, at least 1.

    """

    def __init__(self, size: int) -> None:
        self._places: list[Row | None] = [None] * size
        self._next = 0

    def insert(self, row: Row) -> list[Row]:
        """Store a row and return the one it overwrites, if any."""
        overwritten = self._places[self._next]
        self._places[self._next] = row
        self._next = (self._next + 1) % len(self._places)
        return [] if overwritten is None else [overwritten]

    def expire(self, now: int) -> list[Row]:  # noqa: ARG002 - the protocol's
        """Remove nothing: rows leave only by being overwritten."""
        return []

    def rows(self) -> list[Row]:
        """All rows, oldest first."""
        ordered = [*self._places[self._next :], *self._places[: self._next]]
        return [row for row in ordered if row is not None]

    def live(self, now: int) -> list[Row]:
        """The rows that are live."""
        return live_rows(self.rows(), now)


class HashTable:
    """Rows by key, each removed by a negative tuple.

    Parameters
    ----------
    key
        What negative tuples find their rows by.

    """

    def __init__(self, key: Key = first) -> None:
        self._key = key
        self._buckets: defaultdict[Hashable, list[Row]] = defaultdict(list)

    def insert(self, row: Row) -> list[Row]:
        """Store a row."""
        self._buckets[self._key(row.value)].append(row)
        return []

    def cancel(self, row: Row) -> None:
        """Remove one row equal to this one.

        Raises
        ------
        ValueError
            When there is none.

        """
        self._buckets[self._key(row.value)].remove(row)

    def expire(self, now: int) -> list[Row]:  # noqa: ARG002 - the protocol's
        """Remove nothing: every expiration is announced by a negative tuple."""
        return []

    def rows(self) -> list[Row]:
        """All rows, key by key."""
        return [row for bucket in self._buckets.values() for row in bucket]

    def live(self, now: int) -> list[Row]:
        """The rows that are live."""
        return live_rows(self.rows(), now)
