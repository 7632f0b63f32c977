"""Reads the headers of delimited landing files: the names of the fields, and the encoding."""

from __future__ import annotations

import csv
import io
import re
import zlib
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from warehouse.catalog.allowed_settings import declared_field_names
from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.encodings import is_wide
from warehouse.catalog.line_patterns import pattern_of
from warehouse.catalog.syslog import FIELDS
from warehouse.catalog.zeek import zeek_fields
from warehouse.ingest.dialect import delimiter_of, is_multiline, text_encoding, wide_encoding
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.ingest.landing import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Format

__all__ = ["csv_header", "file_encoding", "headers", "zeek_header"]

_MAX_HEADER = 1 << 20
_LINE_END = re.compile(r"\r\n?|\n")
"""Where Spark ends a line: U+0085 and the like are characters of it."""
_SEPARATOR = "\x1f"
"""Replaces a delimiter of several characters, which Python's CSV reader does not support."""


def headers(
    landing: Path, files: Sequence[LandingFile], options: Mapping[str, str], form: Format = "csv"
) -> tuple[dict[tuple[str, ...], list[LandingFile]], list[LeftOut]]:
    """Return files of lines of fields, grouped by header, and the files whose header cannot be read.

    Zero-byte files are grouped under the empty header: they have no records.
    """
    groups: dict[tuple[str, ...], list[LandingFile]] = {}
    problems: list[LeftOut] = []
    readers: dict[str, Callable[[Path], tuple[str, ...]]] = {"zeek": zeek_header, "syslog": lambda _: FIELDS}
    read_header = readers.get(form, partial(csv_header, options=options))
    for file in files:
        try:
            header = read_header(landing / file.path) if file.size else ()
        except (OSError, EOFError, zlib.error, csv.Error, ValueError, TypeError, LookupError) as error:
            problems.append(LeftOut(file, "unreadable", f"its header cannot be read: {error}"))
            continue
        groups.setdefault(header, []).append(file)
    return groups, problems


def csv_header(path: Path, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in a CSV file's first record, or the names in the stream's ``options``.

    Raises
    ------
    OSError, EOFError, zlib.error
        When the file cannot be read.
    csv.Error, ValueError
        When its beginning is not a header, or its encoding is ambiguous.

    """
    if names_of_options := declared_field_names(options.items()):
        return names_of_options
    if (pattern := pattern_of(options.items())) is not None:
        return pattern.names
    lower_options = {key.lower(): value for key, value in options.items()}
    utf_16 = file_encoding(path, options)
    lines = _first_lines(path, utf_16 or text_encoding(options))
    unmarked = lines[0].removeprefix("\ufeff")
    if (
        utf_16 and unmarked != lines[0] and (_is_comment(unmarked, lower_options) or not unmarked.strip())
    ):  # Spark would see no such line
        raise ValueError("its first line, behind the byte order mark, is not the header; save the file as UTF-8")
    lines[0] = unmarked
    multiline = is_multiline(options.items())
    comment_lines = next(
        (number for number, line in enumerate(lines) if line.strip() and not _is_comment(line, lower_options)), len(lines)
    )
    if multiline and any(line and not line.strip() for line in lines[:comment_lines]):  # Spark would take it for the header
        raise ValueError("a line of spaces stands before the header; remove it")
    first = "\n".join(lines[comment_lines:] if multiline else lines[comment_lines : comment_lines + 1])
    quote = lower_options.get("quote", '"') or None
    delimiter = delimiter_of(lower_options)
    separator = delimiter if len(delimiter) == 1 else _SEPARATOR
    line = first.replace(delimiter, separator)
    quoting: Any = {"delimiter": separator, "quotechar": quote, "quoting": csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE}
    if not multiline:
        _require_closed(line, quoting)
    names = next(csv.reader(io.StringIO(line, newline="") if multiline else [line], **quoting), [])
    return tuple(name.replace(separator, delimiter).strip().removeprefix("\ufeff") for name in names)


def _require_closed(header: str, quoting: Mapping[str, Any]) -> None:
    try:
        next(csv.reader([header], strict=True, **quoting), [])
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise ValueError("it leaves a quote open at the end of its line; declare options = { multiline = true }") from error


def file_encoding(path: Path, options: Mapping[str, str]) -> str | None:
    """Return the Python name of the UTF-16 encoding of a CSV file; None for an encoding that extends ASCII.

    Raises
    ------
    OSError, EOFError, zlib.error
        When the file cannot be read.
    ValueError
        When the byte order is unknown.

    """
    if not is_wide(text_encoding(options)):
        return None
    with _open(path) as content:
        return wide_encoding(options, content.read(2))


def zeek_header(path: Path) -> tuple[str, ...]:
    """Return the names of the fields in a log of Zeek."""
    return tuple(name for name, _ in zeek_fields(_first_lines(path, "utf-8-sig")))


def _is_comment(line: str, options: Mapping[str, str]) -> bool:
    return bool(options.get("comment")) and line.startswith(options["comment"])


def _first_lines(path: Path, encoding: str) -> list[str]:
    with _open(path) as content, io.TextIOWrapper(content, encoding=encoding, errors="replace", newline="") as stream:
        return _LINE_END.split(stream.read(_MAX_HEADER))


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    with open_regular(path) as raw:
        yield open_decompressed(raw, path.name)
