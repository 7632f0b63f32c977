"""What cannot be maintained: the place in the SQL, what stands there, what may stand there, and the nearest query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Fault", "Faults", "RefusedError", "place"]


@dataclass(frozen=True)
class Fault:
    """One fault of a query; ``found`` ends with its line and column."""

    found: str
    allowed: str
    nearest: str | None = None


class RefusedError(Exception):
    """A query that cannot be maintained, at a node of its tree or an offset in its text (none: as a whole)."""

    def __init__(self, at: exp.Expr | int | None, found: str, allowed: str, nearest: str | None = None) -> None:
        self.at, self.found, self.allowed, self.nearest = at, found, allowed, nearest
        super().__init__(f"{found}; allowed: {allowed}")


class Faults:
    """The faults of one query, collected so that they are reported together."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.found: list[Fault] = []

    def add(self, at: exp.Expr | int | None, found: str, allowed: str, nearest: str | None = None) -> None:
        """Add a fault once; the query is looked at further."""
        line, column = place(self.sql, at)
        fault = Fault(f"{found} (line {line}, column {column})", allowed, nearest)
        if fault not in self.found:
            self.found.append(fault)

    def add_refused(self, error: RefusedError) -> None:
        """Add what ended the looking."""
        self.add(error.at, error.found, error.allowed, error.nearest)


def place(sql: str, at: exp.Expr | int | None) -> tuple[int, int]:
    """Return line and column, from 1, of an offset, or of the first word of a node that has a place."""
    if at is None:
        offset = 0
    elif isinstance(at, int):
        offset = at
    else:
        starts = [node.meta["start"] for node in at.walk() if node.meta.get("start") is not None]
        offset = min(starts, default=0)
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
