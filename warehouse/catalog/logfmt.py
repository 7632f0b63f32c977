r"""Logfmt, lines of names and values such as ``level=info msg="two words" took=12ms``, for Python and, as patterns, for Spark.

A value in quotes has escapes as JSON has them; one that JSON does not know, such as Go's ``\x1b``, stays as it is written.
"""

from __future__ import annotations

import json
import re

__all__ = ["ESCAPES", "LINE", "PAIR", "is_logfmt", "logfmt_fields"]

PAIR = r'([^\s="]+)=("(?:[^"\\]|\\.)*+"|[^\s"]*+)'
"""A name and a value: without spaces, or in quotes."""
LINE = rf"\s*+(?:{PAIR}(?:\s++|(?!.)))++"
"""A whole line."""
ESCAPES = r'["\\/bfnrt]|u[0-9a-fA-F]{4}'
"""The characters after a backslash in JSON."""
_LINE = re.compile(LINE, re.ASCII | re.DOTALL)
_PAIR = re.compile(PAIR, re.ASCII | re.DOTALL)
_ESCAPE = re.compile(rf"\\({ESCAPES}|)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.@-]*")
_FEWEST_PAIRS = 2


def logfmt_fields(line: str) -> dict[str, str | None] | None:
    r"""Return the fields of a line; None if it is no line of logfmt, or has a name twice. A field without a value is None.

    >>> logfmt_fields('level=info msg="a \\"b\\"" took=12ms code=')
    {'level': 'info', 'msg': 'a "b"', 'took': '12ms', 'code': None}
    >>> logfmt_fields("level=info two words"), logfmt_fields("a=1 a=2")
    (None, None)
    """
    if not _LINE.fullmatch(line):
        return None
    pairs = _PAIR.findall(line)
    fields = {name: _value(value) for name, value in pairs}
    return fields if len(fields) == len(pairs) else None


def is_logfmt(line: str) -> bool:
    """Whether a line is certainly logfmt: it has two pairs or more, with plain names."""
    fields = logfmt_fields(line) or {}
    return len(fields) >= _FEWEST_PAIRS and all(map(_PLAIN_NAME.fullmatch, fields))


def _value(text: str) -> str | None:
    if not text.startswith('"'):
        return text or None
    if "\\" not in text:
        return text[1:-1]
    escaped = _ESCAPE.sub(lambda escape: escape[0] if escape[1] else r"\\", text)
    # Half of a pair of surrogates is no sign; Java writes it as a question mark, too.
    return str(json.loads(escaped, strict=False)).encode(errors="replace").decode()
