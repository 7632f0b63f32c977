"""What ``init --from`` saw in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warehouse.catalog.model import Format

__all__ = ["Found", "SniffedColumn"]


@dataclass(frozen=True)
class SniffedColumn:
    """A column: its Spark SQL type, or why it cannot be declared, and what its sampled values are like.

    ``low`` and ``high`` are the bounds of integers, of timestamps in microseconds, and ``mean`` is theirs; ``distinct`` is
    about how many values there are. ``source`` is its name in the file, if another; ``unit`` the format of times in numbers.
    ``lives`` are, of numbers and of the least of arrays of numbers, the quantiles of what is not null, in hundredths, and
    ``unset`` the share of rows in which it is null. A time that is ``made`` of ``parts``, by Spark SQL, is no column to declare.
    ``clock`` says that its texts are times of a day, or durations such as ``12ms``; ``never`` is the Spark SQL of what an end is
    where there is none, and ``step`` the unit of a duration in words of Arrow.
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
    """A file: its format, the reader options it needs, its columns and, for pairs of times, how they lie.

    ``gaps`` gives for (earlier column, later column) of times the quantiles of the difference in microseconds, in hundredths,
    for pairs that are in this order in nearly every sampled row; a date as the later one lasts until its day ends. ``rows`` were
    sampled. Of ``guessed`` options nobody can be sure. ``sample`` are the sampled rows, by the names of the columns, for what is
    computed from them. ``made`` are times that are put together of columns. ``unfit`` records are not in the sample, since they
    have text where others have numbers: how many, one such column, and its text. Of lines that do not
    match a pattern the column is empty.
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
