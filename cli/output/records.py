"""Rows in memory (metadata, checks), with the interface of a query's answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NewType, Protocol

from warehouse.time import to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Figure", "Records", "Result"]

Figure = NewType("Figure", str)
"""A number in words, such as ``1.2M``: a table for people aligns it as numbers."""


_TYPES = {
    "str": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "Instant": "TIMESTAMP WITH TIME ZONE",
    "Figure": "DECIMAL",
    "tuple[str, ...]": "VARCHAR[]",
}


def _value(value: Any, sql_type: str) -> Any:  # noqa: ANN401 - any value of a row
    if value is None:
        return None
    if sql_type.startswith("TIMESTAMP"):
        return to_datetime(value)
    return list(value) if isinstance(value, tuple) else value


class Result(Protocol):
    """A result to render: columns of (name, DuckDB type), and rows that are read once, in pieces."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The columns: name and DuckDB type."""

    def rows(self, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows in lists of at most ``size``."""

    def batches(self) -> Iterable[Any]:
        """Yield the rows as Arrow record batches."""


@dataclass(frozen=True)
class Records:
    """A result in memory."""

    columns: tuple[tuple[str, str], ...]
    values: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, kind: type[Any], rows: Iterable[Any]) -> Records:
        """Return dataclass instances as rows; a field annotated ``Instant`` is a timestamp in microseconds."""
        columns = tuple((field.name, _TYPES[str(field.type).removesuffix(" | None")]) for field in fields(kind))
        values = tuple(tuple(_value(getattr(row, name), sql_type) for name, sql_type in columns) for row in rows)
        return cls(columns, values)

    def rows(self, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows in lists of at most ``size``."""
        for start in range(0, len(self.values), size):
            yield list(self.values[start : start + size])

    def batches(self) -> Iterable[Any]:
        """Yield the rows as Arrow record batches."""
        import pyarrow as pa  # noqa: PLC0415 - only binary formats need it

        types = {
            "VARCHAR": pa.string(),
            "VARCHAR[]": pa.list_(pa.string()),
            "BIGINT": pa.int64(),
            "DOUBLE": pa.float64(),
            "BOOLEAN": pa.bool_(),
            "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
        }
        arrays = [
            pa.array([row[index] for row in self.values], type=types[sql_type])
            for index, (_, sql_type) in enumerate(self.columns)
        ]
        yield pa.record_batch(arrays, names=[name for name, _ in self.columns])
