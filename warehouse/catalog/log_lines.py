"""Logs whose lines are records, for ``init --from``: their format, and a sample of their lines as CSV."""

from __future__ import annotations

import csv
import io
import re
import zlib
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.line_formats import line_reader
from warehouse.catalog.line_patterns import APPLICATION, line_pattern
from warehouse.catalog.logfmt import is_logfmt
from warehouse.catalog.syslog import is_syslog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.catalog.model import Format

__all__ = ["LogFormat", "fields_as_csv", "log_format_of"]

LogFormat = tuple["Format", tuple[tuple[str, str], ...]]
"""The format of a log, and the options that it needs."""
_BEGINNING_BYTES = 1 << 16
_MATCHING_SHARE = 0.5
"""The share of lines that must match: lines of a stack trace do not match, and some logs mix several formats."""
_HEADING = re.compile(r"-- .* --")
"""Headings that journalctl writes above and between its lines, such as ``-- Boot 0c1a --``."""
_LINE_END = re.compile(r"\r\n?|\n")
_UNREADABLE_IN_CSV = re.compile(r"\r\n?|[\n\0]")
_MOST_CHARACTERS = 10_000
"""Upper bound of the characters of a value in the sample: DuckDB reads no line of more than two million bytes."""


def log_format_of(source: Path) -> LogFormat | None:
    """Return the format of the first line and of most lines at the beginning of a file; None if there is none."""
    lines = [line for line in _beginning(source) if not _HEADING.fullmatch(line)]
    pattern = line_pattern(APPLICATION)
    candidates: tuple[tuple[Callable[[str], bool], LogFormat], ...] = (
        (is_syslog, ("syslog", ())),
        (lambda line: pattern.fields(line) is not None, ("text", (("pattern", APPLICATION),))),
        (is_logfmt, ("logfmt", ())),
    )
    for matches, form in candidates:
        if lines and matches(lines[0]) and sum(map(matches, lines)) > _MATCHING_SHARE * len(lines):
            return form
    return None


def fields_as_csv(source: Path, form: LogFormat, most_lines: int, target: Path) -> tuple[int, str, str]:
    """Write the fields of a log's first lines as CSV; return the number of lines in another format, "", and one such line."""
    changed = datetime.fromtimestamp(source.stat().st_mtime, UTC).replace(tzinfo=None)
    reader = line_reader(*form, changed=changed)
    if reader is None:
        raise ValueError(f"{form[0]} is no format of lines")
    names: dict[str, None] = {}
    records, unfit, example = [], 0, ""
    with source.open("rb") as raw, io.TextIOWrapper(open_decompressed(raw, source.name), "utf-8", "replace") as lines:
        for line in islice((raw_line.rstrip("\r\n") for raw_line in lines if raw_line.strip()), most_lines):
            fields = reader(line.removeprefix("\ufeff"))
            if fields is None:
                unfit, example = unfit + 1, example or line
            else:
                names.update(dict.fromkeys(fields))
                records.append(fields)
    with target.open("w", newline="", encoding="utf-8") as written:
        writer = csv.writer(written)
        if form[0] == "syslog":  # its names do not depend on the file
            names = {name: None for name in names if any(record[name] is not None for record in records if name in record)}
        writer.writerow(names)
        writer.writerows([[_sample_text(record.get(name)) for name in names] for record in records])
    return unfit, "", example


def _sample_text(value: str | None) -> str | None:
    """Return a value as the sample has it: without line breaks and zeros, and cut, so that DuckDB can read it in CSV."""
    return None if value is None else _UNREADABLE_IN_CSV.sub(" ", value[:_MOST_CHARACTERS])


def _beginning(source: Path) -> list[str]:
    """Return the complete lines at the beginning of a file; no line if the file cannot be read."""
    try:
        with source.open("rb") as raw:
            content = open_decompressed(raw, source.name).read(_BEGINNING_BYTES)
    except (OSError, EOFError, ValueError, zlib.error):
        return []  # the reader reports the fault
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    is_complete = text.endswith("\n") or len(content) < _BEGINNING_BYTES
    lines = _LINE_END.split(text)
    return [line for line in (lines if is_complete else lines[:-1]) if line.strip()]
