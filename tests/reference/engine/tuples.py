"""Rows that live for a while, the atoms of the reference engine.

A row is live at an instant tau iff ``ts <= tau < exp`` (update-patterns sheet, A1; window-joins sheet, section 2). All
instants are integers; a tick is 1. Results are rows too: ``ts`` of a result is the instant at which it came into being.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

__all__ = ["BEGINNING", "Boundary", "Key", "Row", "Value", "bag", "combine", "first", "live_rows", "time_window", "with_boundary"]

Value: TypeAlias = tuple[Any, ...]
"""The columns of a row, each of them hashable."""

Key: TypeAlias = "Callable[[Value], Hashable]"
"""What rows are compared by; a key of ``None`` equals nothing, not even another ``None``."""

Boundary: TypeAlias = Literal["exclusive", "inclusive"]
"""Whether a row is dead at its expiration time already, or only one tick later."""

BEGINNING = -NEVER
"""An instant before all others."""


@dataclass(frozen=True)
class Row:
    """A row that is live in ``[ts, exp)``; equal rows are interchangeable, so duplicates need different ids."""

    id: Hashable
    value: Value
    ts: int
    exp: int = NEVER

    def live(self, tau: int) -> bool:
        """Whether the row is live at an instant.

        >>> row = Row("a1", ("a",), 1, 11)
        >>> [row.live(tau) for tau in (0, 1, 10, 11)]
        [False, True, True, False]
        """
        return self.ts <= tau < self.exp


def first(value: Value) -> Hashable:
    """The first column: the key unless another is named."""
    key: Hashable = value[0]
    return key


def time_window(rows: Iterable[Row], length: int) -> list[Row]:
    """End each row ``length`` after it arrived, unless it ends before by itself.

    >>> [row.exp for row in time_window([Row(1, ("a",), 3), Row(2, ("a",), 3, 5)], 10)]
    [13, 5]
    """
    return [replace(row, exp=min(row.exp, row.ts + length)) for row in rows]


def with_boundary(rows: Iterable[Row], boundary: Boundary) -> list[Row]:
    """Turn the expiration times of a source into ends that are exclusive, the only ones known inside.

    An inclusive one is one tick later; never stays never (window-joins sheet, section 2).
    """
    if boundary == "exclusive":
        return list(rows)
    return [row if row.exp == NEVER else replace(row, exp=row.exp + 1) for row in rows]


def live_rows(rows: Iterable[Row], tau: int) -> list[Row]:
    """The rows that are live at an instant."""
    return [row for row in rows if row.live(tau)]


def bag(rows: Iterable[Row]) -> Counter[Value]:
    """How often each value occurs: what answers are compared by."""
    return Counter(row.value for row in rows)


def combine(parts: Sequence[Row]) -> Row:
    """The result of joined rows: born with the last part, dead with the first (window-joins sheet, section 1).

    >>> combine([Row("a1", ("a",), 1, 11), Row("a4", ("a",), 4, 14)])
    Row(id=('a1', 'a4'), value=('a', 'a'), ts=4, exp=11)
    """
    return Row(
        id=tuple(part.id for part in parts),
        value=tuple(column for part in parts for column in part.value),
        ts=max(part.ts for part in parts),
        exp=min(part.exp for part in parts),
    )
