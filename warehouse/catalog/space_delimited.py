r"""Text whose fields stand between spaces: logs of web servers, leases, dumps of sensors; DuckDB does not look for these.

Logs in the common and combined format of Apache and nginx are known by how they begin: ``10.0.0.1 - - [01/Jul/2024:08:00:00
+0000] "GET / HTTP/1.1" 200 12 "-" "curl"``. Their quotes are written after a backslash.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Spaced", "spaced"]

_LOOKED_AT = 200
_FEWEST = 3
_WEB = re.compile(r'\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [+-]\d{4}\] "')
_W3C = "#Fields: "
_OF_WEB_LOGS = ("client", "identity", "account", "moment", "offset", "request", "status", "bytes", "referer", "agent")


@dataclass(frozen=True)
class Spaced:
    """DuckDB's options for such a file, its names if they are known, and whether a backslash escapes quotes."""

    arguments: str
    names: tuple[str, ...] = ()
    escaped: bool = False


def spaced(lines: Sequence[str], comment: str | None) -> Spaced | None:
    """Return how to read text whose fields are separated by single spaces; None for other text.

    Parameters
    ----------
    lines
        The first lines.
    comment
        The character at the beginning of lines that are no records.
    """
    filled = [line for line in lines if line.strip() and not (comment and line.startswith(comment))][:_LOOKED_AT]
    if len(filled) == _LOOKED_AT or len(filled) > 1:
        filled = filled[:-1]  # the last may be cut
    if not filled:
        return None
    web = all(map(_WEB.match, filled))
    counts = {len(_fields(line, web=web)) for line in filled}
    if len(counts) != 1 or min(counts) < _FEWEST:
        return None
    if not web and _has_others(filled):
        return None
    (count,) = counts
    names = (*_OF_WEB_LOGS, *(f"column{number}" for number in range(len(_OF_WEB_LOGS) + 1, count + 1)))[:count] if web else ()
    names = names or _of_w3c(lines, count)
    escape = "\\" if web else '"'
    arguments = f", delim = ' ', quote = '\"', escape = {literal(escape)}"
    return Spaced(arguments, names, escaped=web)


def _of_w3c(lines: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the field names from the header of a log in the W3C's extended format (as of IIS); an empty tuple without one."""
    said = next((line for line in lines if line.startswith(_W3C)), "").removeprefix(_W3C).split()
    return tuple(said) if len(said) == count == len(set(said)) and not any("," in name for name in said) else ()


def _fields(line: str, *, web: bool) -> list[str]:
    try:
        read = csv.reader([line], delimiter=" ", escapechar="\\" if web else None, doublequote=not web, strict=True)
        return next(read, [])
    except csv.Error:
        return []


def _has_others(lines: Sequence[str]) -> bool:
    """Whether another sign stands equally often, and at all, in each line: then that one may stand between fields."""
    for sign in ",;\t|":
        counts = {line.count(sign) for line in lines}
        if len(counts) == 1 and counts != {0}:
            return True
    return False
