"""A model of how Spark's parser splits a line of CSV into fields, character by character; a second quote escapes a quote."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OPEN", "fields"]

OPEN = "<open>"
"""Stands for a field whose quote is still open at the end."""
_ODD = None
"""Stands for a field with characters behind its closing quote, whose text is kept as it is."""


def fields(line: str, delimiter: str = ",") -> list[str | None]:
    """Return the fields of a line; the last is :data:`OPEN` if its quote stays open, and None stands for an odd field."""
    return list(_fields(line, delimiter))


def _fields(line: str, delimiter: str) -> Iterator[str | None]:
    at = 0
    while True:
        value, at = _quoted(line, at, delimiter) if line[at : at + 1] == '"' else _plain(line, at, delimiter)
        yield value
        if at >= len(line):
            return
        at += len(delimiter)


def _plain(line: str, position: int, delimiter: str) -> tuple[str | None, int]:
    end = line.find(delimiter, position)
    end = len(line) if end < 0 else end
    return line[position:end] or None, end


def _quoted(line: str, position: int, delimiter: str) -> tuple[str | None, int]:
    text, at = "", position + 1
    while at < len(line):
        if line[at] != '"':
            text, at = text + line[at], at + 1
        elif line[at + 1 : at + 2] == '"':
            text, at = text + '"', at + 2
        else:
            behind = at + 1
            while behind < len(line) and line[behind] <= " " and not line.startswith(delimiter, behind):
                behind += 1
            if behind == len(line) or line.startswith(delimiter, behind):
                return text, behind
            return _ODD, _plain(line, behind, delimiter)[1]
    return OPEN, len(line)
