"""JSON files that are one array of objects: known by how they begin, read whole, so of bounded size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import decompressed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LINES_OF_IT", "begins_array", "is_array_file"]

LINES_OF_IT = "`jq -c '.[]'` makes lines of it"
"""What to do with an array that cannot be read as one."""
_BEGINNING = 1 << 16
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
