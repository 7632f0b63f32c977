"""How rows leave a table and how a table is stored, in words for people; records and JSON keep the labels.

Source of the labels: update-patterns sheet, sections 2 and 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.time import format_duration

if TYPE_CHECKING:
    from warehouse.layout.layout import Label

__all__ = ["leaving_text", "storage_text"]

_LEAVING = {
    "MON": "never expire",
    "WKS": "expire after one constant time",
    "WK": "expire at their own time",
    "STR": "can leave early",
}
_STORAGE = {
    "MON": "append-only",
    "WKS": "blocks by age",
    "WK": "grid by arrival and end",
    "STR": "buckets by key",
}


def leaving_text(label: Label, constant: int | None = None) -> str:
    """Return how rows of a label leave, after the word "rows"; ``constant`` is the lifetime of all of them in microseconds.

    >>> leaving_text("MON"), leaving_text("WKS", 1_800_000_000), leaving_text("STR")
    ('never expire', 'expire after 30m', 'can leave early')
    """
    return _LEAVING[label] if constant is None else f"expire after {format_duration(constant)}"


def storage_text(label: Label) -> str:
    """Return how a table of a label is stored.

    >>> storage_text("WK"), storage_text("STR")
    ('grid by arrival and end', 'buckets by key')
    """
    return _STORAGE[label]
