"""JSON files without an object on each line: arrays of objects, and objects over several lines.

`jq` converts other files to lines.

Pretty-printed objects become an array by a comma where one object ends and the next begins on another line; inside an object
there is a comma already. The line end stays: JSON text cannot contain one.
"""

from __future__ import annotations

import json
import re
import shlex
import zlib
from typing import TYPE_CHECKING, Any

from warehouse.catalog.codecs import open_decompressed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ELEMENT_BOUNDARY",
    "OBJECT_BOUNDARY",
    "as_array",
    "begins_array",
    "has_multiline_objects",
    "is_array_file",
    "jq_command",
    "jq_hint",
    "repeated_name",
]

OBJECT_BOUNDARY = r"\}[ \t]*[\r\n][ \t\r\n]*\{"
"""Where an object ends and the next begins on another line, for Python and Java."""
ELEMENT_BOUNDARY = "},\n{"
"""The bytes between two elements of such an array."""
_BOUNDARY_BYTES = re.compile(OBJECT_BOUNDARY.encode())
_BEGINNING_BYTES = 1 << 16
_MOST_BYTES = 64 << 20
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*(\{|\]\s*$)")


def begins_array(beginning: bytes) -> bool:
    r"""Whether a file with this beginning is an array of objects, or an empty array.

    >>> begins_array(b'[\n {"a": 1},'), begins_array(b'{"a": 1}\n'), begins_array(b"[[1]]")
    (True, False, False)
    """
    return _ARRAY.match(beginning) is not None


def as_array(content: bytes) -> bytes:
    r"""Return the content of a file that is read as a whole, as one array.

    >>> as_array(b'{\n"a": 1\n}\n\n{"a": 2}'), as_array(b'[{"a": 1}]')
    (b'[{\n"a": 1\n},\n{"a": 2}]', b'[{"a": 1}]')
    """
    return content if begins_array(content) else b"[" + _BOUNDARY_BYTES.sub(ELEMENT_BOUNDARY.encode(), content) + b"]"


def jq_hint(content: bytes) -> str:
    """Return the remedy for a file with this beginning that is too large to be read as a whole."""
    jq_filter = "'.[]'" if begins_array(content) else "."
    return f"`jq -c {jq_filter}` makes lines of it"


def is_array_file(path: Path) -> bool:
    """Whether a file is one array of objects.

    Raises
    ------
    OSError, EOFError, zlib.error
        When it cannot be read.

    """
    with path.open("rb") as raw:
        return begins_array(open_decompressed(raw, path.name).read(_BEGINNING_BYTES))


def has_multiline_objects(source: Path) -> bool:
    """Whether a file has objects over several lines, each of them a record.

    A single object with a list of objects does not count.

    Raises
    ------
    OSError, EOFError, zlib.error
        When it cannot be read.

    """
    with source.open("rb") as raw:
        text = open_decompressed(raw, source.name).read(_MOST_BYTES).decode("utf-8-sig", "replace").lstrip()
    if not text.startswith("{"):
        return False
    try:
        json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        pass
    else:
        return False
    try:
        first, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return bool(text[end:].strip()) or not any(map(_is_rows, first.values()))


def jq_command(source: Path) -> str | None:
    """Return the command that writes each record of a file as a line; None if the file does not begin with a JSON object."""
    try:
        with source.open("rb") as raw:
            text = open_decompressed(raw, source.name).read(_MOST_BYTES).decode("utf-8-sig").lstrip()
        first, _ = json.JSONDecoder().raw_decode(text)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    jq_filter = next((f".{json.dumps(name)}[]" for name, value in first.items() if _is_rows(value)), ".")
    return f"jq -c {shlex.quote(jq_filter)} {shlex.quote(str(source))} > rows.jsonl"


def repeated_name(source: Path) -> str | None:
    """Return a name that two fields of one object have, in the lines at the beginning of a file; None if there is none."""
    repeated: list[str] = []

    def fields(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        repeated.extend(name for name in names if names.count(name) > 1)

    try:
        with source.open("rb") as raw:
            lines = open_decompressed(raw, source.name).read(_MOST_BYTES).decode("utf-8-sig").splitlines()
        for line in lines:
            json.loads(line, object_pairs_hook=fields)
            if repeated:
                return repeated[0]
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None
    return None


def _is_rows(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
