"""JSON files that have no object a line: arrays of objects, which are read whole, and others, of which `jq` makes lines."""

from __future__ import annotations

import json
import re
import shlex
import zlib
from typing import TYPE_CHECKING, Any

from warehouse.catalog.codecs import decompressed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LINES_OF_IT", "begins_array", "is_array_file", "line_maker"]

LINES_OF_IT = "`jq -c '.[]'` makes lines of it"
"""What to do with an array that cannot be read as one."""
_BEGINNING = 1 << 16
_LOOKED_AT = 64 << 20
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*(\{|\]\s*$)")


def begins_array(beginning: bytes) -> bool:
    r"""Whether a file that begins so is one array of objects, or an empty one.

    >>> begins_array(b'[\n {"a": 1},'), begins_array(b'{"a": 1}\n'), begins_array(b"[[1]]")
    (True, False, False)
    """
    return _ARRAY.match(beginning) is not None


def is_array_file(path: Path) -> bool:
    """Whether a file is one array of objects.

    Raises
    ------
    OSError, EOFError, zlib.error
        When it cannot be read.

    """
    with path.open("rb") as raw:
        return begins_array(decompressed(raw, path.name).read(_BEGINNING))


def line_maker(source: Path) -> str | None:
    """Return the command that makes a line of each record; None if the file begins with no JSON object."""
    try:
        with source.open("rb") as raw:
            text = decompressed(raw, source.name).read(_LOOKED_AT).decode("utf-8-sig").lstrip()
        first, _ = json.JSONDecoder().raw_decode(text)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    inner = next((f".{json.dumps(name)}[]" for name, value in first.items() if _is_rows(value)), ".")
    return f"jq -c {shlex.quote(inner)} {shlex.quote(str(source))} > rows.jsonl"


def _is_rows(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
