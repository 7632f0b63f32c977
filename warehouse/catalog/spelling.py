"""Faults of single values, and the nearest valid spelling of a word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FaultError", "as_written", "nearest"]

_MAX_SHOWN = 200


class FaultError(ValueError):
    """An invalid value: the value, the allowed values, and the nearest valid spelling.

    It never leaves this package: the caller that knows the file and the key turns it into a ``Problem``.
    """

    def __init__(self, matches: str, allowed: str, suggestion: str | None = None) -> None:
        self.found, self.allowed, self.suggestion = matches, allowed, suggestion
        super().__init__(f"{matches}; allowed: {allowed}")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that the user most likely meant, ignoring case; None if no known word is similar.

    >>> nearest("serch_key", ["search_key", "columns"])
    'search_key'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - a read that succeeds does without

    by_lower = {known_word.lower(): known_word for known_word in known}
    lower = word.lower()
    matches = [lower] if lower in by_lower else get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def as_written(value: object) -> str:
    """Return a value as the file would spell it, cut to a readable length.

    >>> as_written("1h"), as_written([1, True])
    ('"1h"', '[1, true]')
    """
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."
