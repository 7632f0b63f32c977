"""The definition of an aggregate: its groups, values and windows, and when answers are due.

An answer is one row for each (end, window length, group). Its end is the close of a slot; slot ``j`` holds the rows with
``A + (j-1)D < ts <= A + jD`` for anchor ``A`` and update interval ``D``, so a window of ``n`` slots that ends with slot ``e``
covers the slots ``e-n+1 .. e``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BOUNDS",
    "ITEM_COLUMNS",
    "OWN_COLUMNS",
    "AggregateDefinition",
    "Due",
    "FrequentItems",
    "Function",
    "Over",
    "Value",
    "Window",
]

Function = Literal[
    "rows", "count", "sum", "min", "max", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "distinct", "percentile"
]
Over = Literal["arrivals", "live"]
OWN_COLUMNS = ("window_length", "window_end", "epoch", "full", "late")
"""The columns that the answers of every aggregate have."""
ITEM_COLUMNS = ("item", "at_least", "at_most", "certain", "complete")
"""The further columns of answers about frequent items."""

BOUNDS = ("_low", "_high")
"""The suffixes of the columns with an estimate's bounds."""


@dataclass(frozen=True)
class FrequentItems:
    """The frequent items of a column: items with more than a share of the rows, or the most frequent ones.

    ``column`` has the items, of Spark SQL type ``type``. Either ``above`` (a share of the rows) or ``top`` (a number of items) is
    given. The list of a slot has at least ``k`` items. With ``exact`` the candidates are counted in the stored rows.
    """

    column: str
    type: str
    above: float | None
    top: int | None
    k: int
    exact: bool = False


@dataclass(frozen=True)
class Value:
    """One value of an answer.

    ``type`` is its Spark SQL type. It is computed from ``column``, of type ``column_type`` (None: rows are counted). ``share`` is
    the share of rows at or below a percentile. ``size`` is the size of the sketch for an estimate (log2 of the registers of HLL,
    the k of KLL); None: the value is exact.
    """

    name: str
    function: Function
    type: str
    column: str | None = None
    column_type: str = ""
    share: float | None = None
    size: int | None = None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Its columns with their types: an estimate has two more, its bounds."""
        bounds = () if self.size is None else BOUNDS
        return tuple((self.name + suffix, self.type) for suffix in ("", *bounds))


@dataclass(frozen=True)
class Window:
    """One window: its length as declared, its length in slots, and the number of slots from one due end to the next.

    With ``parts`` it has a length for each of the two inputs of a join, in slots: both parts of a result arrived inside theirs.
    The result arrived with the later one, so inside the shorter of them.
    """

    text: str
    slots: int
    every: int
    parts: tuple[int, int] | None = None


@dataclass(frozen=True)
class AggregateDefinition:
    """The query of an aggregate over the rows of a stream; ``group_by`` are columns with their types.

    ``computed`` are groups that are no columns of the stream: pairs of name and expression (Spark SQL). ``where`` is Spark SQL
    over columns of the stream (None: every row). An answer stays for ``keep`` microseconds. ``over`` chooses the rows: all that
    arrived in the window, or only those that are live at its end. With ``frequent`` an answer has a row for each item, and no
    values. If a window has a length for each input of a join, ``parts`` are the columns with the arrival times of a result's
    parts. ``compared`` are the columns of a view, with their types, that ``where`` may compare.
    """

    source: str
    where: str | None
    group_by: tuple[tuple[str, str], ...]
    values: tuple[Value, ...]
    windows: tuple[Window, ...]
    keep: int
    search_key: tuple[str, ...]
    frequent: FrequentItems | None = None
    over: Over = "arrivals"
    computed: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, str] | None = None
    compared: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of its answers with their types."""
        return (
            *self.group_by,
            ("window_length", "string"),
            ("window_end", "timestamp"),
            *(column for value in self.values for column in value.columns),
            *self._items(),
            ("epoch", "bigint"),
            ("full", "boolean"),
            ("late", "bigint"),
        )

    def _items(self) -> tuple[tuple[str, str], ...]:
        if self.frequent is None:
            return ()
        types = (self.frequent.type, "bigint", "bigint", "boolean", "boolean")
        return tuple(zip(ITEM_COLUMNS, types, strict=True))

    @property
    def shows_values(self) -> bool:
        """Whether its answers, or the synopses that they come from, show values of single rows: groups, extremes, items."""
        sums = ("rows", "count", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")
        return bool(self.group_by) or self.frequent is not None or any(value.function not in sums for value in self.values)

    @property
    def longest(self) -> int:
        """Slots of its longest window."""
        return max(window.slots for window in self.windows)

    def due(self, after: int, through: int) -> Iterator[tuple[Window, int]]:
        """Yield each window with each of its due ends in the slots ``after + 1 .. through``, in order of the ends.

        >>> hourly = AggregateDefinition("s", None, (), (), (Window("1h", 1, 1), Window("6h", 6, 3)), 0, ())
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
    """An answer to give: a window by its declared length and by its slots, and the slot that it ends with.

    ``late`` is the number of updates that could have given the answer and did not.
    """

    text: str
    slots: int
    end: int
    late: int = 0
