"""Logs whose lines are no records of fields: ``init --from`` knows patterns of some, and of others the command to make records.

A line of syslog says no year. It is that of the file's last change, or the year before where that would lie more than a day
after it: the latest year in which no line is of the future.
"""

from __future__ import annotations

import re
import shlex
import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import decompressed, is_compressed
from warehouse.catalog.duck_sql import literal
from warehouse.catalog.line_patterns import APPLICATION, SYSLOG, SYSLOG_FILE, line_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["pattern_of_log", "way_of_log"]

_LOOKED_AT = 1 << 16
_FEWEST = 2
_NEARLY_ALL = 0.8
"""The share of lines that must match: those of a trace behind an error do not."""
_PAIR = re.compile(r'(?:^|(?<= ))[A-Za-z_][\w.@-]*=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)(?= |$)')
_SYSLOG = re.compile(r"(?:<\d{1,3}>)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d \S+ \S")
_PARTS = (
    r"^(?:<\d+>)?(\w{3} [ \d]\d [\d:]{8}) (\S+) (?:([^\s:\[]+)(?:\[[^\]]*\])?(?: [(<][^)>]*[)>])?:(?: |$))?(.*)$"
)
"""Moment, host, program, message; lines such as "last message repeated 3 times" name no program."""
_LOGFMT = r'([A-Za-z_][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)'
_TEXT = (
    r"""lambda text: json.loads(re.sub(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4}|)', """
    r"lambda escape: escape[0] if escape[1] else r'\\', text), strict=False)"
)
"""The value of a text in quotes; an escape that JSON does not know, such as Go's ``x1b``, stays as it is written."""


def way_of_log(source: Path) -> str | None:
    """Return what a file is and the command that makes records of it, where it is a log of such lines; else nothing."""
    text, lines = _beginning(source)
    syslog = all(map(_SYSLOG.match, lines))
    if len(lines) < _FEWEST or not (syslog or _is_logfmt(lines)):
        return None
    if is_compressed(source.name) and source.suffix != ".gz":
        return f"{source} is a log in {'syslog' if syslog else 'logfmt'}; decompress it, and name the plain file with --from"
    return _of_syslog(source, is_utf8="\ufffd" not in text[:-3]) if syslog else _of_logfmt(source)


def pattern_of_log(source: Path) -> str | None:
    """Return the pattern that nearly all lines at the beginning of a file match; None if it is none that is known."""
    _, lines = _beginning(source)
    for pattern in (SYSLOG, APPLICATION, SYSLOG_FILE):
        matching = sum(line_pattern(pattern).fields(line) is not None for line in lines)
        if matching >= max(_FEWEST, _NEARLY_ALL * len(lines)) and line_pattern(pattern).fields(lines[0]):
            return pattern
    return None


def _beginning(source: Path) -> tuple[str, list[str]]:
    """Return the beginning of a file, and its whole lines; nothing of a file that cannot be read."""
    try:
        with source.open("rb") as raw:
            content = decompressed(raw, source.name).read(_LOOKED_AT)
    except (OSError, EOFError, ValueError, zlib.error):
        return "", []  # the reader says what is wrong with it
    text = content.decode("utf-8", "replace")
    whole = text.endswith("\n") or len(content) < _LOOKED_AT
    return text, [line for line in (text.splitlines() if whole else text.splitlines()[:-1]) if line.strip()]


def _is_logfmt(lines: Sequence[str]) -> bool:
    """Whether each line is pairs such as ``level=info``, two or more, and nothing else."""
    found = [_PAIR.findall(line) for line in lines]
    return all(
        len(pairs) >= _FEWEST and not _PAIR.sub("", line).strip() for pairs, line in zip(found, lines, strict=True)
    )


def _of_logfmt(source: Path) -> str:
    program = (
        f"import json, re, sys; text = {_TEXT}; [print(json.dumps({{name: text(value) if value[:1] == chr(34) else value "
        f"for name, value in re.findall(r'{_LOGFMT}', line)}})) for line in sys.stdin]"
    )
    opener = "zcat" if is_compressed(source.name) else "cat"
    command = f"{opener} {shlex.quote(str(source))} | python -c {shlex.quote(program)} > rows.jsonl"
    return f"{source} has lines of names and values (logfmt); `{command}` makes an object of each line, for --from rows.jsonl"


def _of_syslog(source: Path, *, is_utf8: bool) -> str:
    changed = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    last = changed + timedelta(days=1)
    moments = ", ".join(f"try_strptime('{year} ' || p.moment, '%Y %b %d %H:%M:%S')" for year in (last.year, last.year - 1))
    written = "columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '', escape = '', header = false, auto_detect = false"
    written += "" if is_utf8 else ", encoding = 'latin-1'"
    lines = f"read_csv({literal(str(source))}, {written})"
    parts = f"SELECT regexp_extract(line, {literal(_PARTS)}, ['moment', 'host', 'program', 'message']) AS p FROM {lines}"
    moment = f"list_max(list_filter([{moments}], lambda each: each <= TIMESTAMP '{last:%Y-%m-%d %H:%M:%S}'))"
    target = f"{source.name.split('.')[0]}.parquet"
    shown = "p.host, nullif(p.program, '') AS program, p.message"
    query = f"COPY (SELECT {moment} AS logged_at, {shown} FROM ({parts})) TO {literal(target)}"
    command = f"python -c {shlex.quote(f'import duckdb; duckdb.sql({query!r})')}"
    return (
        f"{source} is a log of syslog, whose times say no year; `{command}` writes it as Parquet, for --from {target}: with the "
        f"latest year in which no line lies more than a day after the file's last change. Its times are local: declare `timezone`"
    )
