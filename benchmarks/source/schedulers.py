"""The schedulers of chapter 7 over a window in memory: which sub-window a query reads next, and when a movement ends it.

Serial, WS-only, Algorithm 7 (a fixed order of reading) and Algorithm 8 (time-to-update order), window-concurrency sheet, section
4. The content of a slot is the number of the movement that wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Kind", "Partitions", "Query", "Window"]

Kind = Literal["Serial", "WS", "LWS", "TTU"]


@dataclass(eq=False)
class Query:
    """A query at work: how many of the youngest sub-windows it needs, which movements' content it has read, in order.

    Attributes
    ----------
    frozen
        WS-only: the movements that it began with.
    aborted
        Whether a movement ended it.

    """

    needed: int
    read: list[int] = field(default_factory=list)
    frozen: frozenset[int] = frozenset()
    aborted: bool = False

    @property
    def done(self) -> bool:
        """Whether it has read all that it needs."""
        return len(self.read) == self.needed


@dataclass
class Window:
    """A window of ``slots`` sub-windows, movements 0 to ``newest`` done, and the queries at work."""

    kind: Kind
    slots: int
    newest: int
    active: list[Query] = field(default_factory=list)

    def begin(self, needed: int) -> Query:
        """Admit a query."""
        query = Query(needed, frozen=frozenset(range(self.newest - needed + 1, self.newest + 1)))
        self.active.append(query)
        return query

    def move(self) -> list[Query]:
        """Move the window by one sub-window; return the queries that this ends.

        The optimistic schedulers end queries that read what has expired for their length, WS-only ends queries that have not read
        what is overwritten. A serial scheduler lets no movement come while a query is at work.
        """
        if self.kind == "Serial" and self.active:
            raise ValueError("a movement waits until the query has ended")
        self.newest += 1
        ended = [query for query in self.active if self._conflicts(query)]
        for query in ended:
            query.aborted = True
            self.active.remove(query)
        return ended

    def _conflicts(self, query: Query) -> bool:
        if self.kind == "WS":
            overwritten = self.newest - self.slots
            return overwritten in query.frozen and overwritten not in query.read
        return self.newest - query.needed in query.read

    def step(self, query: Query) -> int:
        """Let a query read its next sub-window and return the slot; with the last one it commits."""
        movement = self._next(query)
        query.read.append(movement)
        if query.done:
            self.active.remove(query)
        return movement % self.slots

    def _next(self, query: Query) -> int:
        if self.kind == "WS":
            return min(query.frozen - set(query.read))  # the one that is overwritten first
        unread = set(range(self.newest - query.needed + 1, self.newest + 1)) - set(query.read)
        return max(unread) if self.kind == "TTU" else min(unread, key=lambda movement: movement % self.slots)


@dataclass
class Partitions:
    """Results of a join by the movement at which they expire (section 4.5): inserted rows may be of any partition.

    A query that has read a partition is handed the rows that come into it.
    """

    rows: dict[int, list[str]]
    handed: list[str] = field(default_factory=list)
    read: set[int] = field(default_factory=set)

    def step(self) -> None:
        """Read the unread partition that expires last."""
        number = max(self.rows.keys() - self.read)
        self.read.add(number)
        self.handed += self.rows[number]

    def move(self, inserted: dict[int, list[str]]) -> bool:
        """Drop the partition that expires now, then insert; return whether the query goes on: it had not read that partition."""
        expired = min(self.rows)
        del self.rows[expired]
        self.rows[max(self.rows) + 1] = []
        for number, rows in inserted.items():
            self.rows[number] += rows
            if number in self.read:
                self.handed += rows
        return expired not in self.read
