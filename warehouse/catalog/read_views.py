"""What aggregates need to know of a view that they read; :mod:`warehouse.views.readable` finds it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.catalog.types import SqlType

__all__ = ["ReadView"]


@dataclass(frozen=True)
class ReadView:
    """A view as aggregates see it.

    Parameters
    ----------
    types
        Its columns with their types; None where only Spark can tell.
    unreadable
        Why no aggregate can read it, and what would do; None if one can.
    unreported
        Whether results that begin and end between two updates are not kept, though there may be some.
    stays
        Whether its rows never end.
    erase_within
        How long the bytes of its dead rows may exist, in microseconds.
    parts
        Of a join of two inputs whose rows end: what each is called, and the view's column that says when its rows arrive (None:
        it shows none); None of another view.

    """

    types: Mapping[str, SqlType | None]
    unreadable: tuple[str, str] | None = None
    unreported: bool = False
    stays: bool = False
    erase_within: int | None = None
    parts: tuple[tuple[str, str | None], tuple[str, str | None]] | None = None
