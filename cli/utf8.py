"""Text from the command line that may hold bytes which are no UTF-8, as text that can be written."""

from __future__ import annotations

from typing import TypeVar, cast

__all__ = ["utf8"]

_Value = TypeVar("_Value")


def utf8(value: _Value) -> _Value:
    r"""Return a text, or a tuple of texts, with what is no UTF-8 shown by backslashes; other values as they are.

    >>> utf8("a\udcff"), utf8(("b", 1))
    ('a\\udcff', ('b', 1))
    """
    if isinstance(value, str):
        return cast("_Value", value.encode(errors="backslashreplace").decode())
    if isinstance(value, tuple) and type(value) is tuple:
        return cast("_Value", tuple(utf8(part) for part in value))
    return value
