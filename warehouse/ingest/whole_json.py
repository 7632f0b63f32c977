"""JSON landing files that a task reads as a whole: an array of objects, or objects over several lines; each object is a record.

So the bound ``max_record`` applies to the file, and the file is checked before Spark reads it: Spark reads no array that has a
fault. Spark converts the decimals of an array through double precision. If this would change one, the array is read as
a value of type `variant`, which has 38 digits, sorts the names of objects, and refuses duplicate names.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.json_arrays import as_array, begins_array, is_array_file, jq_hint
from warehouse.ingest.dialect import is_multiline
from warehouse.ingest.landing import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["BEYOND_VARIANT", "LONG_DECIMAL", "is_read_whole", "needs_exact_decimals", "object_texts", "whole_file_problem"]

# Numbers that double precision would change, as patterns that Python and Spark both read. They are searched in the text of a
# record, so a text that looks like such a number counts, too, which only costs time.
LONG_DECIMAL = r"[\[:,]\s*-?(?=[0-9.]{17})[0-9]+\.[0-9]"
"""Numbers with decimals and more digits than double precision has."""
BEYOND_VARIANT = r"[\[:,]\s*-?(?:(?=[0-9.]{40})[0-9]*\.[0-9]|[0-9]{39}|(?=[0-9.]{17})[0-9]+\.[0-9]+[eE])"
"""Numbers of more digits than a value of Spark's type `variant` has, or with more than double precision and an exponent."""

_CACHED_FILES = 50_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOO_LARGE = re.compile(rb"[0-9][eE][+]?[0-9]{3}|[0-9]{300}")
"""Numbers beyond double precision, or text that looks like one: Spark cannot read an array with them."""
_LONG_DECIMAL = re.compile(LONG_DECIMAL.encode())
_BEYOND_VARIANT = re.compile(BEYOND_VARIANT.encode())


def is_read_whole(stream: Stream, file: LandingFile) -> bool:
    """Whether a file of a stream is read as a whole; False for an array that cannot be read."""
    if stream.format != "json" or not file.size:
        return False
    return is_multiline(stream.options) or _is_array(stream.landing / file.path, file.size, file.mtime_ns)


@lru_cache(maxsize=_CACHED_FILES)
def _is_array(path: Path, size: int, mtime_ns: int) -> bool:  # noqa: ARG001 - the file's identity
    try:
        return is_array_file(path)
    except (OSError, EOFError, zlib.error):
        return False  # the reader of the file reports the fault


def needs_exact_decimals(stream: Stream, file: LandingFile) -> bool:
    """Whether a file that is read as a whole has decimals that double precision would change, in columns where this matters."""
    identity = (stream.landing / file.path, file.size, file.mtime_ns)
    if _has_type(stream, "decimal"):
        return _has_long_decimal(*identity)
    return _has_type(stream, "string") and _has_long_decimal(*identity) and not _is_beyond_variant(*identity)


def _has_type(stream: Stream, kind: str) -> bool:
    return any(kind in column.type for column in (*stream.columns, *stream.sources))


@lru_cache(maxsize=_CACHED_FILES)
def _has_long_decimal(path: Path, size: int, mtime_ns: int) -> bool:  # noqa: ARG001 - same
    try:
        return _LONG_DECIMAL.search(_content(path, -1)) is not None
    except (OSError, EOFError, zlib.error):
        return False


def whole_file_problem(stream: Stream, file: LandingFile) -> tuple[str, str] | None:
    """Return (reason, message) if a file that would be read as a whole is not read; else None."""
    problem = _problem(stream.landing / file.path, file.size, file.mtime_ns, stream.max_record)
    identity = (stream.landing / file.path, file.size, file.mtime_ns)
    if problem is None and _has_type(stream, "decimal") and _has_long_decimal(*identity) and _is_beyond_variant(*identity):
        content = _content(identity[0], -1)
        return "unreadable", f"it is {_description(content)} with decimals of more than 38 digits; {jq_hint(content)}"
    return problem


@lru_cache(maxsize=_CACHED_FILES)
def _is_beyond_variant(path: Path, size: int, mtime_ns: int) -> bool:  # noqa: ARG001 - same
    try:
        return _BEYOND_VARIANT.search(_content(path, -1)) is not None
    except (OSError, EOFError, zlib.error):
        return False


@lru_cache(maxsize=_CACHED_FILES)
def _problem(path: Path, size: int, mtime_ns: int, most: int) -> tuple[str, str] | None:  # noqa: ARG001 - same
    try:
        content = _content(path, most + 1)
    except (OSError, EOFError, zlib.error):
        return None
    if len(content) > most:
        larger = f"it is {_description(content)} of more than max_record ({most} bytes)"
        return "record_too_long", f"{larger}; {jq_hint(content)}, or raise max_record"
    try:
        parts = msgspec.json.decode(as_array(content), type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        return "unreadable", f"it begins as {_description(content)}, and is none: {error}"
    other = next((number for number, part in enumerate(parts, 1) if bytes(memoryview(part)[:1]) != b"{"), None)
    if other is not None:
        return "unreadable", f"it is {_description(content)} of which element {other} is no object"
    if _TOO_LARGE.search(content):
        return "unreadable", f"it is {_description(content)} with numbers that do not fit in double precision; {jq_hint(content)}"
    return None


def _description(content: bytes) -> str:
    return "one JSON array" if begins_array(content) else "JSON over several lines"


def object_texts(path: Path) -> list[bytes]:
    """Return the text of each object of a file that is read as a whole and is within its bound.

    Raises
    ------
    OSError, EOFError, zlib.error, msgspec.DecodeError
        When it cannot be read.

    """
    return [bytes(part) for part in msgspec.json.decode(as_array(_content(path, -1)), type=list[msgspec.Raw])]


def _content(path: Path, most: int) -> bytes:
    with open_regular(path) as raw:
        return open_decompressed(raw, path.name).read(most).removeprefix(_BYTE_ORDER_MARK)
