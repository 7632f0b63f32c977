r"""Recognises text whose fields are separated by spaces, such as logs of web servers, leases, dumps of sensors; DuckDB does not.

Logs in the common and combined format of Apache and nginx are recognised by their beginning: ``10.0.0.1 - - [01/Jul/2024:08:00:00
+0000] "GET / HTTP/1.1" 200 12 "-" "curl"``. A quote inside quotes is written after a backslash.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SpaceDelimited", "space_delimited"]

_SAMPLE_LINES = 200
_FEWEST_FIELDS = 3
_WEB_LOG_LINE = re.compile(r'\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [+-]\d{4}\] "')
_W3C_HEADER = "#Fields: "
_WEB_LOG_FIELDS = ("client", "identity", "account", "moment", "offset", "request", "status", "bytes", "referer", "agent")


@dataclass(frozen=True)
class SpaceDelimited:
    """The arguments of DuckDB's reader, the field names if they are known, and whether a backslash escapes quotes."""

    arguments: str
    names: tuple[str, ...] = ()
    escaped: bool = False


def space_delimited(lines: Sequence[str], comment: str | None) -> SpaceDelimited | None:
    """Return how to read text whose fields are separated by single spaces; None for other text.

    Parameters
    ----------
    lines
        The first lines.
    comment
        The character at the beginning of lines that are no records.
    """
    filled = [line for line in lines if line.strip() and not (comment and line.startswith(comment))][:_SAMPLE_LINES]
    if len(filled) == _SAMPLE_LINES or len(filled) > 1:
        filled = filled[:-1]  # the last may be cut
    if not filled:
        return None
    is_web_log = all(map(_WEB_LOG_LINE.match, filled))
    counts = {len(_fields(line, is_web_log=is_web_log)) for line in filled}
    if len(counts) != 1 or min(counts) < _FEWEST_FIELDS:
        return None
    if not is_web_log and _has_other_delimiter(filled):
        return None
    (count,) = counts
    names = (
        (*_WEB_LOG_FIELDS, *(f"column{number}" for number in range(len(_WEB_LOG_FIELDS) + 1, count + 1)))[:count]
        if is_web_log
        else ()
    )
    names = names or _w3c_field_names(lines, count)
    escape = "\\" if is_web_log else '"'
    arguments = f", delim = ' ', quote = '\"', escape = {literal(escape)}"
    return SpaceDelimited(arguments, names, escaped=is_web_log)


def _w3c_field_names(lines: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the field names from the header of a log in the W3C's extended format (as of IIS); an empty tuple without one."""
    names = next((line for line in lines if line.startswith(_W3C_HEADER)), "").removeprefix(_W3C_HEADER).split()
    return tuple(names) if len(names) == count == len(set(names)) and not any("," in name for name in names) else ()


def _fields(line: str, *, is_web_log: bool) -> list[str]:
    try:
        reader = csv.reader(
            [line], delimiter=" ", escapechar="\\" if is_web_log else None, doublequote=not is_web_log, strict=True
        )
        return next(reader, [])
    except csv.Error:
        return []


def _has_other_delimiter(lines: Sequence[str]) -> bool:
    """Whether another delimiter occurs in each line, equally often; then it may separate the fields."""
    for delimiter in ",;\t|":
        counts = {line.count(delimiter) for line in lines}
        if len(counts) == 1 and counts != {0}:
            return True
    return False
