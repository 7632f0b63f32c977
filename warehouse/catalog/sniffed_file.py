"""The facts that ``init --from`` finds in a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warehouse.catalog.model import Format

__all__ = ["SniffedColumn", "SniffedFile"]


@dataclass(frozen=True)
class SniffedColumn:
    """A column: its Spark SQL type, or why it cannot be declared, and properties of its sampled values.

    Attributes
    ----------
    name, type
        Its name in the table, and its Spark SQL type (None if it cannot be declared).
    refused
        Why it cannot be declared.
    low, high, mean
        Bounds and mean of integers, or of timestamps in microseconds.
    distinct
        About the number of different values.
    source
        Its name in the file, if it differs.
    format
        How its times or durations are written, as ``format`` declares it.
    percentiles
        The percentiles of the values that are not null: of numbers, or of the least elements of arrays.
    unset
        The share of rows with null.
    expression, parts
        For a time that is combined from other columns: its Spark SQL, and these columns. Such a time is not declared as a column.
    is_time_of_day
        Whether its texts are times of a day, or durations such as ``12ms``.
    no_end
        The Spark SQL of the value for "no end", which is null in the sample.
    duration_unit
        The unit of a duration, as Arrow names it.

    """

    name: str
    type: str | None
    refused: str | None = None
    low: int | None = None
    high: int | None = None
    distinct: int = 0
    mean: float | None = None
    source: str | None = None
    format: str | None = None
    percentiles: tuple[float, ...] = ()
    unset: float = 0.0
    expression: str | None = None
    parts: tuple[str, ...] = ()
    is_time_of_day: bool = False
    no_end: str | None = None
    duration_unit: str | None = None


@dataclass(frozen=True)
class SniffedFile:
    """A file: its format, the reader options that it needs, its columns, and the differences between pairs of times.

    ``gaps`` gives for (earlier column, later column) of times the percentiles of the difference in microseconds, for pairs that
    are in this order in nearly every sampled row; a later date counts as the end of its day. ``rows`` is the number of sampled
    rows. ``guessed`` options may be wrong. ``sample`` has the sampled rows, by the names of the columns. ``combined`` are times
    that are combined from several columns. ``unfit`` records are not in the sample, since they have text where others have
    numbers: their number, one such column, and its text. If records have another number of fields, or lines do not match a
    pattern, the column is empty, and the text is one of these records. ``partitions`` are the columns that folders give.
    """

    format: Format
    endings: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[SniffedColumn, ...]
    gaps: dict[tuple[str, str], tuple[float, ...]]
    rows: int
    guessed: tuple[str, ...] = ()
    sample: Any = None
    combined: tuple[SniffedColumn, ...] = ()
    unfit: tuple[int, str, str] = (0, "", "")
    partitions: tuple[str, ...] = ()

    def with_column_renamed(self, old: str, new: str) -> SniffedFile:
        """Return the file with a column renamed; no other column may have the new name. Without such a column nothing changes."""
        if self.sample is None or not any(column.name == old and column.type for column in self.columns):
            return self
        names = {old: new}
        columns = tuple(
            replace(column, name=new, source=column.source or old) if column.name == old else column for column in self.columns
        )
        combined = tuple(replace(column, parts=tuple(names.get(part, part) for part in column.parts)) for column in self.combined)
        gaps = {(names.get(first, first), names.get(second, second)): gap for (first, second), gap in self.gaps.items()}
        sample = self.sample.rename_columns([names.get(name, name) for name in self.sample.column_names])
        return replace(self, columns=columns, combined=combined, gaps=gaps, sample=sample)
