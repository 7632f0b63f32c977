"""Writes csv, json and jsonl, some rows at a time; nothing is written before the first rows are fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.cli.output.values import converter, csv_field, encode_json
from warehouse.cli.output.visible import json_visible, lines_visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.cli.output.records import Result
    from warehouse.cli.output.sink import Sink

__all__ = ["plain_rows", "unique_names", "write_csv", "write_json", "write_jsonl"]

PIECE = 5_000
"""How many rows are in memory at a time."""


def unique_names(result: Result) -> list[str]:
    """Return the column names; a repeated name gets a number, since a JSON object has each name once."""
    names: list[str] = []
    for name, _ in result.columns:
        unique, number = name, 0
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names


def plain_rows(result: Result, size: int = PIECE) -> Iterator[list[list[Any]]]:
    """Yield the rows in lists of at most ``size``, with plain values."""
    converters = [(index, conversion) for index, (_, kind) in enumerate(result.columns) if (conversion := converter(kind))]
    for piece in result.rows(size):
        rows = [list(row) for row in piece]
        for row in rows:
            for index, convert in converters:
                if row[index] is not None:
                    row[index] = convert(row[index])
        yield rows


def write_csv(result: Result, sink: Sink) -> int:
    """Write RFC 4180 with a header and return the number of rows."""
    count = 0
    pending = ",".join(csv_field(name) for name, _ in result.columns) + "\r\n"
    for rows in plain_rows(result):
        count += len(rows)
        _write(sink, pending + "".join([",".join(map(csv_field, row)) + "\r\n" for row in rows]))
        pending = ""
    if pending:
        _write(sink, pending)
    return count


def write_jsonl(result: Result, sink: Sink) -> int:
    """Write one JSON object a line and return the number of rows."""
    count = 0
    for piece in _objects(result):
        count += len(piece)
        _write_json(sink, b"".join([line + b"\n" for line in piece]))
    return count


def write_json(result: Result, sink: Sink) -> int:
    """Write one JSON array of objects and return the number of rows."""
    count = 0
    for piece in _objects(result):
        _write_json(sink, (b",\n" if count else b"[\n") + b",\n".join(piece))
        count += len(piece)
    sink.write(b"\n]\n" if count else b"[]\n")
    return count


def _objects(result: Result) -> Iterator[list[bytes]]:
    names = unique_names(result)
    for rows in plain_rows(result):
        if rows:
            yield [encode_json(dict(zip(names, row, strict=True))) for row in rows]


def _write(sink: Sink, text: str) -> None:
    if sink.terminal:
        text = lines_visible(text)
    # a lone surrogate cannot come from UTF-8 data; a file name may hold one
    sink.write(text.encode(errors="backslashreplace"))


def _write_json(sink: Sink, data: bytes) -> None:
    sink.write(json_visible(data.decode()).encode() if sink.terminal else data)
