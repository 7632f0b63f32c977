"""Known errors of readers, each with the version that was tested.

* delta-spark 4.4.0 skips files by dates from 1582-10-05 to 1582-10-14, days that the Gregorian calendar left out: an equality
  with one of them finds no row. (No upstream report was found.)
* Polars 2.1 opens no file below a directory with a space, ``%``, ``#``, ``?``, ``"`` or a letter beyond ASCII in its name
  (pola-rs/polars#20944): it reads copies here, and a test of its own asserts the failure.
* deltalake 1.6.6: its dataset skips a file whose log entry has a null count and not both bounds. No file of the warehouse is one,
  but for keys of dates or instants outside the years 1 to 9999, and keys of text that is no UTF-8.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .predicates import Term

__all__ = ["known"]

_FIRST, _LAST = date(1582, 10, 5), date(1582, 10, 14)


def known(reader: str, terms: Sequence[Term], given: tuple[int, ...] | str) -> str | None:
    """Return why a reader is known to differ on a predicate; None if it is not known to differ."""
    left_out = any(term.kind == "date" and any(_FIRST <= value <= _LAST for value in term.values) for term in terms)
    if reader == "Spark with Delta" and left_out and not isinstance(given, str):
        return "days that the Gregorian calendar left out"
    return None
