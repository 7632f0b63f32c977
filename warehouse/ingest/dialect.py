"""How a text file of records is written: what Spark's reader, and those beside it, have to know to read it alike.

``csv`` is as its options say. ``zeek`` are the logs of Zeek, as it writes them: lines of fields between tabs, after lines that
begin with ``#``, of which ``#fields`` has the names; ``-`` is no value, ``(empty)`` an empty one, a comma stands between the
elements of a set or vector, and nothing is quoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.catalog.model import Stream

__all__ = ["ZEEK_EMPTY", "ZEEK_SEPARATOR", "ZEEK_UNSET", "has_header_record", "is_delimited", "reader_options", "zeek_names"]

ZEEK_UNSET = "-"
ZEEK_EMPTY = "(empty)"
ZEEK_SEPARATOR = ","
_ZEEK = {"delimiter": "\t", "quote": "", "escape": "", "comment": "#", "nullValue": ZEEK_UNSET}
_WRITTEN = {"#set_separator": ZEEK_SEPARATOR, "#empty_field": ZEEK_EMPTY, "#unset_field": ZEEK_UNSET}


def is_delimited(stream: Stream) -> bool:
    """Whether a stream's files are lines of fields, which a header names."""
    return stream.format in ("csv", "zeek")


def has_header_record(stream: Stream) -> bool:
    """Whether the first record of a delimited file is its header, and none to be loaded."""
    return stream.format != "zeek"


def reader_options(stream: Stream) -> dict[str, str]:
    """Return the options of Spark's reader by which a stream's delimited files are read."""
    return dict(_ZEEK) if stream.format == "zeek" else dict(stream.options)


def zeek_names(lines: list[str]) -> tuple[str, ...]:
    r"""Return the names of the fields that the first lines of a log say.

    Raises
    ------
    ValueError
        When there are none, or fields and elements are written otherwise than Zeek does unless it is told to.

    Examples
    --------
    >>> zeek_names(["#separator \\x09", "#fields\tts\tid.orig_h"])
    ('ts', 'id.orig_h')

    """
    for line in lines:
        if not line.startswith("#"):
            break
        key, _, rest = line.rstrip("\r").partition("\t")
        if key.startswith("#separator") and key.split(" ", 1)[-1].lower() != "\\x09":
            raise ValueError(f"{key} is another separator than a tab: let Zeek write tabs, or JSON")
        if key in _WRITTEN and rest != _WRITTEN[key]:
            raise ValueError(f'{key} is "{rest}", not "{_WRITTEN[key]}": let Zeek write its defaults, or JSON')
        if key == "#fields":
            return tuple(rest.split("\t"))
    raise ValueError("there is no line that begins with #fields before the first record")
