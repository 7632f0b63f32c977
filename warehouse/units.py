"""Sizes and counts as people read them; programs get the exact values."""

from __future__ import annotations

__all__ = ["count_text", "counted", "size_text"]

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")
_COUNTS = ("", "k", "M", "G", "T")


def size_text(number: float) -> str:
    """Return bytes in binary units.

    >>> size_text(0), size_text(1536), size_text(5 * 2**30)
    ('0 bytes', '1.5 KiB', '5.0 GiB')
    """
    unit = 0
    while number >= 1024 and unit < len(_SIZES) - 1:  # noqa: PLR2004 - binary units
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {_SIZES[unit]}" if unit == 0 else f"{number:.1f} {_SIZES[unit]}"


def count_text(number: int) -> str:
    """Return a count of up to six digits as it is, a larger count with a unit.

    >>> count_text(123456), count_text(1_234_567)
    ('123,456', '1.2M')
    """
    value, unit = float(number), 0
    if abs(number) < 1_000_000:  # noqa: PLR2004 - six digits are read at a glance
        return f"{number:,}"
    while abs(value) >= 1000 and unit < len(_COUNTS) - 1:  # noqa: PLR2004 - decimal units
        value, unit = value / 1000, unit + 1
    return f"{value:.1f}{_COUNTS[unit]}"


def counted(number: int, word: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number:,} {word}" + ("" if number == 1 else "s")
