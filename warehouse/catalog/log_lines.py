"""Logs whose lines are records: which format ``init --from`` proposes for one, and the sample of its lines as CSV."""

from __future__ import annotations

import csv
import io
import re
import zlib
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import decompressed
from warehouse.catalog.line_formats import line_reader
from warehouse.catalog.line_patterns import APPLICATION, line_pattern
from warehouse.catalog.logfmt import is_logfmt
from warehouse.catalog.syslog import is_syslog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.catalog.model import Format

__all__ = ["Log", "fields_as_csv", "log_of"]

Log = tuple["Format", tuple[tuple[str, str], ...]]
"""The format of a log, and the options that it needs."""
_LOOKED_AT = 1 << 16
_MOST_LINES = 0.5
"""The share of lines that must match: the lines of a trace behind an error do not, and some logs have several forms."""
_HEADING = re.compile(r"-- .* --")
"""Headings that journalctl writes above and between its lines, such as ``-- Boot 0c1a --``."""
_LINE_END = re.compile(r"\r\n?|\n")
_NO_PART_OF_CSV = re.compile(r"\r\n?|[\n\0]")
_MOST_SIGNS = 10_000
"""Upper bound of the characters of a value in the sample: DuckDB reads no line of more than two million bytes."""


def log_of(source: Path) -> Log | None:
    """Return the format of the first line and of most lines at the beginning of a file; None if there is none."""
    lines = [line for line in _beginning(source) if not _HEADING.fullmatch(line)]
    pattern = line_pattern(APPLICATION)
    ways: tuple[tuple[Callable[[str], bool], Log], ...] = (
        (is_syslog, ("syslog", ())),
        (lambda line: pattern.fields(line) is not None, ("text", (("pattern", APPLICATION),))),
        (is_logfmt, ("logfmt", ())),
    )
    for fits, log in ways:
        if lines and fits(lines[0]) and sum(map(fits, lines)) > _MOST_LINES * len(lines):
            return log
    return None


def fields_as_csv(source: Path, log: Log, most: int, target: Path) -> tuple[int, str, str]:
    """Write the fields of the first lines of a log as CSV; return the number of lines in another format, "" and one of them."""
    changed = datetime.fromtimestamp(source.stat().st_mtime, UTC).replace(tzinfo=None)
    read = line_reader(*log, changed=changed)
    if read is None:
        raise ValueError(f"{log[0]} is no format of lines")
    names: dict[str, None] = {}
    records, unfit, example = [], 0, ""
    with source.open("rb") as raw, io.TextIOWrapper(decompressed(raw, source.name), "utf-8", "replace") as lines:
        for line in islice((each.rstrip("\r\n") for each in lines if each.strip()), most):
            found = read(line.removeprefix("\ufeff"))
            if found is None:
                unfit, example = unfit + 1, example or line
            else:
                names.update(dict.fromkeys(found))
                records.append(found)
    with target.open("w", newline="", encoding="utf-8") as written:
        writer = csv.writer(written)
        if log[0] == "syslog":  # which has its names whatever is in a file
            names = {name: None for name in names if any(record[name] is not None for record in records if name in record)}
        writer.writerow(names)
        writer.writerows([[_of_sample(record.get(name)) for name in names] for record in records])
    return unfit, "", example


def _of_sample(value: str | None) -> str | None:
    """A value for the sample alone: its breaks, zeros and length matter to CSV, and to nothing that is looked at."""
    return None if value is None else _NO_PART_OF_CSV.sub(" ", value[:_MOST_SIGNS])


def _beginning(source: Path) -> list[str]:
    """Return the whole lines at the beginning of a file; no line if the file cannot be read."""
    try:
        with source.open("rb") as raw:
            content = decompressed(raw, source.name).read(_LOOKED_AT)
    except (OSError, EOFError, ValueError, zlib.error):
        return []  # the reader reports the fault
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    whole = text.endswith("\n") or len(content) < _LOOKED_AT
    lines = _LINE_END.split(text)
    return [line for line in (lines if whole else lines[:-1]) if line.strip()]
