"""Formats with a record on each line, and their readers in Python: lines with a pattern, logfmt, syslog."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from warehouse.catalog.line_patterns import pattern_of
from warehouse.catalog.logfmt import logfmt_fields
from warehouse.catalog.syslog import declared_year, syslog_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime
    from typing import TypeAlias

    from warehouse.catalog.model import Format

    LineReader: TypeAlias = Callable[[str], dict[str, str | None] | None]

__all__ = ["line_reader"]


def line_reader(form: Format, options: Iterable[tuple[str, str]], changed: datetime | None = None) -> LineReader | None:
    """Return the reader of a line's fields; None for a format whose records are not lines.

    Parameters
    ----------
    form, options
        The format and options of the stream.
    changed
        When the file was last changed, in the stream's zone; None if the year of its lines does not matter.

    """
    pairs = tuple(options)
    if form == "logfmt":
        return logfmt_fields
    if form == "syslog":
        return partial(syslog_fields, changed=changed, year=declared_year(pairs))
    pattern = pattern_of(pairs) if form == "text" else None
    return None if pattern is None else pattern.fields
