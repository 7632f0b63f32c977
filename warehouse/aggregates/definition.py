"""What an aggregate asks, as values: its groups, its values, its windows and when they are due.

An answer is one row for each (end, window length, group). Its end is the close of a slot; slot ``j`` holds the rows with
``A + (j-1)D < ts <= A + jD`` for anchor ``A`` and update interval ``D``, so a window of ``n`` slots that ends with slot ``e``
covers the slots ``e-n+1 .. e``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OWN_COLUMNS", "Definition", "Due", "Function", "Value", "Window"]

Function = Literal[
    "rows", "count", "sum", "min", "max", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "distinct", "percentile"
]
OWN_COLUMNS = ("window_length", "window_end", "epoch", "full", "late")
"""The columns that every answer has, whatever it asks."""


@dataclass(frozen=True)
class Value:
    """One value of an answer.

    ``type`` is its Spark SQL type, ``column`` what it is calculated from with ``column_type`` (None: rows are counted),
    ``share`` the share of rows at or below a percentile.
    """

    name: str
    function: Function
    type: str
    column: str | None = None
    column_type: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Window:
    """One window: its length as it was declared, the same in slots, and every how many slots it is due."""

    text: str
    slots: int
    every: int


@dataclass(frozen=True)
class Definition:
    """What an aggregate asks of the rows of a stream; ``group_by`` are columns with their types.

    ``where`` is Spark SQL over columns of the stream (None: every row), ``keep`` how long an answer stays, in microseconds.
    """

    source: str
    where: str | None
    group_by: tuple[tuple[str, str], ...]
    values: tuple[Value, ...]
    windows: tuple[Window, ...]
    keep: int
    search_key: tuple[str, ...]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of its answers with their types."""
        return (
            *self.group_by,
            ("window_length", "string"),
            ("window_end", "timestamp"),
            *((value.name, value.type) for value in self.values),
            ("epoch", "bigint"),
            ("full", "boolean"),
            ("late", "bigint"),
        )

    @property
    def longest(self) -> int:
        """Slots of its longest window."""
        return max(window.slots for window in self.windows)

    def due(self, after: int, through: int) -> Iterator[tuple[Window, int]]:
        """Yield each window with each of its due ends in the slots ``after + 1 .. through``, in order of the ends.

        >>> hourly = Definition("s", None, (), (), (Window("1h", 1, 1), Window("6h", 6, 3)), 0, ())
        >>> [(window.text, end) for window, end in hourly.due(1, 4)]
        [('1h', 2), ('1h', 3), ('6h', 3), ('1h', 4)]
        """
        for end in range(after + 1, through + 1):
            yield from ((window, end) for window in self.windows if end % window.every == 0)

    def newest_due(self, slot: int) -> int:
        """Return the last slot up to ``slot`` that is a due end of some window."""
        return max(slot // window.every * window.every for window in self.windows)


@dataclass(frozen=True)
class Due:
    """An answer to give: a window by its declared length and by its slots, and the slot that it ends with."""

    text: str
    slots: int
    end: int
