"""Output windows (Wstream): the most recently generated results, whatever windows the inputs have.

The input windows are internal, so results come as arrivals that never expire. Only a final output is windowed; it makes no
sense for duplicate elimination and negation (update-patterns sheet, 4.2; TV-1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, plus, refuse_negatives
from tests.reference.engine.row_windows import row_window
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["wstream_range", "wstream_rows"]


def wstream_range(results: Sequence[Change], length: int) -> list[Change]:
    """``Wstream(..)[RANGE length]``: the results generated in ``(tau - length, tau]``.

    Raises
    ------
    ValueError
        When there are negative tuples.

    """
    refuse_negatives("an output window", results)
    return [plus(replace(change.row, exp=change.at + length)) for change in results]


def wstream_rows(results: Sequence[Change], size: int) -> list[Change]:
    """``Wstream(..)[ROWS size]``: the newest results by time, ties in the order of the list.

    Raises
    ------
    ValueError
        When there are negative tuples.

    """
    refuse_negatives("an output window", results)
    return row_window([plus(replace(change.row, exp=NEVER)) for change in results], size)
