"""How a text file of records is written, so that Spark's reader and the other readers agree.

``csv`` is written as its options say, ``zeek`` as Zeek writes logs (:mod:`warehouse.catalog.zeek`). Each line of ``text``,
``logfmt`` and ``syslog`` is a record.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from warehouse.catalog.allowed_settings import declared_field_names
from warehouse.catalog.encodings import is_wide, java_name, python_name
from warehouse.catalog.model import LINE_FORMATS, SELF_NAMING_FORMATS
from warehouse.catalog.zeek import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warehouse.catalog.model import Stream

__all__ = [
    "delimiter_of",
    "has_header_record",
    "has_one_header",
    "is_delimited",
    "is_multiline",
    "reader_options",
    "session_settings",
    "text_encoding",
    "wide_encoding",
]

_ZEEK = {"delimiter": "\t", "quote": "", "escape": "", "comment": "#", "nullValue": UNSET}
_ENCODING = ("encoding", "charset")
_OWN = ("decimal", "multiline", "names", "pattern", "year")
_ORDERS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def is_delimited(stream: Stream) -> bool:
    """Whether a stream's files are lines of fields, whose text becomes values."""
    return stream.format in ("csv", "zeek", *LINE_FORMATS)


def has_one_header(stream: Stream) -> bool:
    """Whether all records of a file have the same names, known before they are read."""
    return is_delimited(stream) and stream.format not in SELF_NAMING_FORMATS


def delimiter_of(options: Mapping[str, str]) -> str:
    r"""Return the delimiter of fields, by options of Spark's reader with their names in lower case.

    >>> delimiter_of({"sep": "\\t"}), delimiter_of({})
    ('\t', ',')
    """
    return options.get("delimiter", options.get("sep", ",")).replace("\\t", "\t")


def is_multiline(options: Iterable[tuple[str, str]]) -> bool:
    """Whether options of a reader say that a record may have several lines."""
    return any(key.lower() == "multiline" and value.lower() == "true" for key, value in options)


def has_header_record(stream: Stream) -> bool:
    """Whether the first record of a delimited file is its header, which is not loaded."""
    return stream.format == "csv" and not declared_field_names(stream.options)


def reader_options(stream: Stream) -> dict[str, str]:
    """Return the options of Spark's reader for a stream's delimited files, without the options that only the warehouse knows."""
    if stream.format == "zeek":
        return dict(_ZEEK)
    options = ((key, java_name(value) if key.lower() in _ENCODING else value) for key, value in stream.options)
    return {key: value for key, value in options if key.lower() not in _OWN}


def session_settings(stream: Stream) -> dict[str, str]:
    """Return the settings of the session that reads a stream's files: its time zone, and less strict reading."""
    settings = {"spark.sql.session.timeZone": stream.timezone}
    if any(key.lower() in _ENCODING for key, _ in stream.options):
        settings["spark.sql.legacy.javaCharsets"] = "true"
    if stream.format == "parquet":  # else it reads no file with times in nanoseconds, as pandas writes them
        settings["spark.sql.legacy.parquet.nanosAsLong"] = "true"
    return settings


def text_encoding(options: Mapping[str, str]) -> str:
    """Return Python's name of the encoding in options of a reader, by default UTF-8; option names ignore case."""
    return next((python_name(value) for key, value in options.items() if key.lower() in _ENCODING), "utf-8-sig")


def wide_encoding(options: Mapping[str, str], beginning: bytes) -> str | None:
    """Return the Python name of the UTF-16 encoding of a file with this beginning; None for an encoding that extends ASCII.

    Raises
    ------
    ValueError
        When both byte orders are possible: no order is declared, and the file has no byte order mark.

    """
    declared = text_encoding(options)
    if not is_wide(declared):
        return None
    if declared != "utf-16":
        return declared
    if beginning[:2] not in _ORDERS:
        raise ValueError('there is no byte order mark at its beginning; declare encoding = "UTF-16LE" or "UTF-16BE"')
    return _ORDERS[beginning[:2]]
