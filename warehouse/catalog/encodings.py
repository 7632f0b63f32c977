"""Encodings of CSV files: their names in Python, which reads headers, and in Java, which reads records.

All except UTF-16 extend ASCII, so that a line ends with the same byte in each of them.
"""

from __future__ import annotations

import codecs

from warehouse.catalog.spelling import FaultError, as_written, nearest

__all__ = ["encoding_fault", "is_wide", "java_name", "python_name"]

_JAVA = {
    "ascii": "US-ASCII",
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
    **{f"iso8859-{part}": f"ISO-8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15)},
    **{f"cp125{part}": f"windows-125{part}" for part in range(9)},
    **{f"cp{page}": f"IBM{page}" for page in (437, 850, 852, 855, 866)},
    "cp858": "IBM00858",
    "cp932": "windows-31j",
    "cp949": "x-windows-949",
    "koi8-r": "KOI8-R",
    "koi8-u": "KOI8-U",
    "shift_jis": "Shift_JIS",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
    "gb2312": "GB2312",
    "gbk": "GBK",
    "gb18030": "GB18030",
    "big5": "Big5",
    "tis-620": "TIS-620",
}
_ALLOWED = 'the name of an encoding, such as "UTF-8", "ISO-8859-1", "windows-1252" or "UTF-16"'


def encoding_fault(name: str) -> FaultError | None:
    """Return a fault if a text is no encoding that files may have, else None.

    >>> encoding_fault("latin-1"), encoding_fault("windows-1252")
    (None, None)
    >>> encoding_fault("windos-1252").suggestion
    'windows-1252'
    """
    if _python_codec(name) in _JAVA:
        return None
    return FaultError(
        as_written(name), _ALLOWED, nearest(name, (encoding for encoding in _JAVA.values() if _python_codec(encoding)))
    )


def java_name(name: str) -> str:
    """Return Java's name for a valid encoding.

    >>> java_name("latin1"), java_name("cp1252")
    ('ISO-8859-1', 'windows-1252')
    """
    return _JAVA.get(_python_codec(name), name)


def python_name(name: str) -> str:
    """Return Python's name for a valid encoding; a byte order mark at the beginning of UTF-8 is skipped.

    >>> python_name("UTF8"), python_name("ISO-8859-15")
    ('utf-8-sig', 'iso8859-15')
    """
    codec = _python_codec(name)
    return "utf-8-sig" if codec == "utf-8" else codec


def is_wide(name: str) -> bool:
    """Whether a character, also a line end, takes two bytes."""
    return _python_codec(name).startswith("utf-16")


def _python_codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
