"""The properties of views that aggregates need; :mod:`warehouse.views.readable_views` computes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.catalog.types import SqlType

__all__ = ["ViewFacts"]


@dataclass(frozen=True)
class ViewFacts:
    """The properties of a view that aggregates over it need.

    Parameters
    ----------
    types
        Its columns with their types; None for a type that only Spark knows.
    unreadable
        Why no aggregate can read it, and what to do; None if an aggregate can.
    unreported
        Whether there may be short-lived results, and the view does not keep them.
    stays
        Whether its rows never end.
    erase_within
        How long the bytes of its dead rows may exist, in microseconds.
    parts
        For a join of two inputs whose rows end: the name of each input, and the view's column with its arrival time (None: the
        view has no such column). None for other views.

    """

    types: Mapping[str, SqlType | None]
    unreadable: tuple[str, str] | None = None
    unreported: bool = False
    stays: bool = False
    erase_within: int | None = None
    parts: tuple[tuple[str, str | None], tuple[str, str | None]] | None = None
