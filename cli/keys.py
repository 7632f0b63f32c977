"""Keys as they are typed: one text, ``column=value`` parts, a JSON array, or lines of a file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from warehouse.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["KeyColumns", "Parse"]

Parse = "Callable[[str, str], object]"


class KeyColumns:
    """The search key of a table: ``columns`` of (name, SQL type), and what parses a text as a type.

    A key is a tuple of parsed parts; one with fewer parts than columns is a prefix.
    """

    def __init__(self, table: str, columns: Sequence[tuple[str, str]], parse: Callable[[str, str], Any]) -> None:
        self._table = table
        self._columns = tuple(columns)
        self._parse = parse

    def positional(self, text: str) -> tuple[Any, ...]:
        """Return one key of an argument: the text of a single column, or a JSON array of a composite key's parts."""
        if len(self._columns) > 1 and (parts := _array(text)) is not None:
            return self._parts(parts)
        return self._parts([text])

    def named(self, assignments: Sequence[str]) -> tuple[Any, ...] | None:
        """Return the one key that ``--key column=value`` options spell, or none without any."""
        if not assignments:
            return None
        given: dict[str, str] = {}
        names = [name for name, _ in self._columns]
        for assignment in assignments:
            column, sign, value = assignment.partition("=")
            if not sign:
                raise UsageError(f'--key "{assignment}" is not column=value; the search key is {self._described()}')
            name = next((name for name in names if name.lower() == column.strip().lower()), None)
            if name is None:
                raise UnknownNameError(f'key column of "{self._table}"', column, names)
            if name in given:
                raise UsageError(f"--key {name} is given twice; give several keys as arguments or with --keys-from")
            given[name] = value
        prefix = names[: len(given)]
        if set(prefix) != set(given):
            missing = next(name for name in prefix if name not in given)
            raise UsageError(f"--key {missing} is missing: a key names the first columns of {self._described()}")
        return self._parts([given[name] for name in prefix])

    def lines(self, source: Path | None) -> Iterator[tuple[Any, ...]]:
        """Yield the keys of a file (none: standard input): a text or a JSON array a line; empty lines are skipped."""
        if source is None:
            yield from self._lines(sys.stdin.buffer, "standard input")
            return
        with source.open("rb") as file:
            yield from self._lines(file, str(source))

    def _lines(self, file: Any, name: str) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any binary stream
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if text:
                    parts = _array(text)
                    yield self._parts([text] if parts is None else parts)
            except UnicodeDecodeError as error:
                raise UsageError(f"{name}, line {number}: not UTF-8 text; convert the file") from error
            except UsageError as error:
                raise UsageError(f"{name}, line {number}: {error}") from error

    def _parts(self, texts: Sequence[str | None]) -> tuple[Any, ...]:
        if not 0 < len(texts) <= len(self._columns):
            raise UsageError(f"a key of {len(texts)} parts; the search key is {self._described()}")
        return tuple(
            None if text is None else self._parse(text, kind)
            for text, (_, kind) in zip(texts, self._columns, strict=False)
        )

    def _described(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self._columns)


def _array(text: str) -> list[str | None] | None:
    """Return the parts of a JSON array as texts, digits untouched, or none when the text is no array."""
    if not text.lstrip().startswith("["):
        return None
    try:
        parts = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        return None
    if not isinstance(parts, list) or any(isinstance(part, (list, dict)) for part in parts):
        return None
    return [{True: "true", False: "false"}[part] if isinstance(part, bool) else part for part in parts]
