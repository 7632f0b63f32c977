"""Keys as they are typed: one text, ``column=value`` parts, a JSON array, or lines of a file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from warehouse.errors import UsageError
from warehouse.serving.keys import KeyColumn, parse_composite, parse_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["keys_of_lines", "named_key", "positional_key"]

Key = tuple[Any, ...]


def positional_key(text: str, columns: Sequence[KeyColumn]) -> Key:
    """Return one key of an argument: the text of a single column, or a JSON array of a composite key's parts.

    >>> positional_key("007", [KeyColumn("k", "VARCHAR")])
    ('007',)
    """
    if text != text.strip("\r\n"):  # as the output of a command has it
        raise UsageError(
            f"the key {json.dumps(text)} with a line break at its end or beginning; remove it, or give such a key to --keys-from "
            "as a line of JSON, in brackets"
        )
    if len(columns) > 1 and _is_array(text):
        return parse_composite(text, columns)
    return (parse_key(text, columns[0].type),)


def named_key(items: Sequence[str], columns: Sequence[KeyColumn]) -> Key | None:
    """Return the key that ``--key column=value`` options give, or None if there are no such options."""
    return parse_composite(items, columns) if items else None


def keys_of_lines(source: Path | None, columns: Sequence[KeyColumn]) -> Iterator[Key]:
    """Yield the keys of a file, or of standard input if it is None: a text or a JSON array a line, without empty lines."""
    if source is None:
        yield from _of_lines(sys.stdin.buffer, "standard input", columns)
        return
    with source.open("rb") as file:
        yield from _of_lines(file, str(source), columns)


def _of_lines(file: Any, name: str, columns: Sequence[KeyColumn]) -> Iterator[Key]:  # noqa: ANN401 - a binary stream
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if text:
                yield parse_composite(text, columns) if _is_array(text) else (parse_key(text, columns[0].type),)
        except UnicodeDecodeError as error:
            raise UsageError(f"{name}, line {number}: not UTF-8 text; convert the file") from error
        except UsageError as error:
            raise UsageError(f"{name}, line {number}: {error}") from error


def _is_array(text: str) -> bool:
    if not text.lstrip().startswith("["):
        return False
    try:
        return isinstance(json.loads(text), list)
    except RecursionError:
        raise UsageError("a key nested too deeply; allowed: a JSON array of texts, numbers, true, false, null") from None
    except ValueError:
        return False
