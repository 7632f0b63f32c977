"""The facts that ``init --from`` finds in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warehouse.catalog.model import Format

__all__ = ["Found", "SniffedColumn"]


@dataclass(frozen=True)
class SniffedColumn:
    """A column: its Spark SQL type, or why it cannot be declared, and properties of its sampled values.

    ``low``, ``high`` and ``mean`` are of integers, or of timestamps in microseconds. ``distinct`` is about the number of
    different values. ``source`` is its name in the file, if it differs; ``unit`` is the format of times in numbers. ``lives`` has
    the percentiles of the values that are not null, of numbers or of the least elements of arrays; ``unset`` is the share of rows
    with null. A time that is ``made`` of ``parts``, by Spark SQL, is no column to declare. ``clock`` says that its texts are
    times of a day, or durations such as ``12ms``. ``never`` is the Spark SQL of the value for "no end", ``step`` the unit of a
    duration in Arrow's words.
    """

    name: str
    type: str | None
    refused: str | None = None
    low: int | None = None
    high: int | None = None
    distinct: int = 0
    mean: float | None = None
    source: str | None = None
    unit: str | None = None
    lives: tuple[float, ...] = ()
    unset: float = 0.0
    made: str | None = None
    parts: tuple[str, ...] = ()
    clock: bool = False
    never: str | None = None
    step: str | None = None


@dataclass(frozen=True)
class Found:
    """A file: its format, the reader options that it needs, its columns, and the differences between pairs of times.

    ``gaps`` gives for (earlier column, later column) of times the percentiles of the difference in microseconds, for pairs that
    are in this order in nearly every sampled row; a later date counts as the end of its day. ``rows`` is the number of sampled
    rows. ``guessed`` options may be wrong. ``sample`` has the sampled rows, by the names of the columns. ``made`` are times that
    are made of several columns. ``unfit`` records are not in the sample, since they have text where others have numbers: their
    number, one such column, and its text. If records have another number of fields, or lines do not match a pattern, the column
    is empty, and the text is one of these records.
    """

    format: Format
    endings: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[SniffedColumn, ...]
    gaps: dict[tuple[str, str], tuple[float, ...]]
    rows: int
    guessed: tuple[str, ...] = ()
    sample: Any = None
    made: tuple[SniffedColumn, ...] = ()
    unfit: tuple[int, str, str] = (0, "", "")
