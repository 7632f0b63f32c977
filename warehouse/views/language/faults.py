"""Faults of queries that cannot be maintained: the place in the SQL, the text, what is allowed, and the nearest query."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

__all__ = ["TOO_DEEP", "Fault", "Faults", "FaultyError", "RefusedError", "place"]


@dataclass(frozen=True)
class Fault:
    """One fault of a query; ``found`` ends with its line and column."""

    found: str
    allowed: str
    nearest: str | None = None


_KEYWORDS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Except, "except|minus"),
    (exp.Intersect, "intersect"),
    (exp.Union, "union"),
    (exp.Exists, "exists"),
    (exp.Limit, "limit"),
    (exp.Order, "order"),
    (exp.Group, "group"),
    (exp.Having, "having"),
    (exp.Qualify, "qualify"),
    (exp.Values, "values"),
    (exp.Query, "select"),
    (exp.With, "with"),
)
"""The words that begin a clause, which have no place of their own in the tree."""


TOO_DEEP = ("a query nested too deeply", "sub-queries and parentheses of some dozen levels")
"""The fault, and what is allowed, for a query that is nested deeper than Python's call stack."""


class RefusedError(Exception):
    """A query that cannot be maintained, at a node of its tree or an offset in its text (None: the whole query)."""

    def __init__(self, at: exp.Expr | int | None, found: str, allowed: str, nearest: str | None = None) -> None:
        self.at, self.found, self.allowed, self.nearest = at, found, allowed, nearest
        super().__init__(f"{found}; allowed: {allowed}")


class FaultyError(Exception):
    """Names or expressions have faults, which are collected; parts that depend on them are not checked."""


class Faults:
    """The faults of one query, collected so that they are reported together."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.found: list[Fault] = []

    def add(self, at: exp.Expr | int | None, found: str, allowed: str, nearest: str | None = None) -> None:
        """Add a fault once; the checks of the query go on."""
        line, column = place(self.sql, at)
        fault = Fault(f"{found} (line {line}, column {column})", allowed, nearest)
        if fault not in self.found:
            self.found.append(fault)

    def add_refused(self, error: RefusedError) -> None:
        """Add the fault that ended the checks."""
        self.add(error.at, error.found, error.allowed, error.nearest)


def place(sql: str, at: exp.Expr | int | None) -> tuple[int, int]:
    """Return line and column, from 1, of an offset, or of the first word of a node or of the node that contains it."""
    offset = at if isinstance(at, int) else _offset(sql, at)
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _offset(sql: str, node: exp.Expr | None) -> int:
    while node is not None:
        looked_at = node.expression if isinstance(node, exp.SetOperation) else node
        starts = [part.meta["start"] for part in looked_at.walk() if part.meta.get("start") is not None]
        if starts:
            return _keyword(sql, node, min(starts))
        node = node.parent
    return 0


def _keyword(sql: str, node: exp.Expr, start: int) -> int:
    word = next((words for kind, words in _KEYWORDS if isinstance(node, kind)), None)
    offsets = [match.start() for match in re.finditer(rf"(?i)\b(?:{word})\b", sql[:start])] if word else []
    return offsets[-1] if offsets else start
