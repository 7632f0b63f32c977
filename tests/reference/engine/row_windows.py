"""Windows of the newest rows: count-based, and partitioned into one such window for each group.

``{ row : fewer than size rows of its group came after it }``. When a row ends is unknown, since it depends on later arrivals:
a negative tuple for each row that is pushed out (update-patterns sheet, 1.2 and 2.2, A24).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, minus, refuse_negatives

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tests.reference.engine.tuples import Row, Value

__all__ = ["row_window"]


def row_window(changes: Sequence[Change], size: int, by: Callable[[Value], Hashable] | None = None) -> list[Change]:
    """Emit a count-based window over arrivals.

    A row with an ``exp`` of its own ends there at the latest, and keeps its place until it is pushed out.

    Parameters
    ----------
    changes
        Arrivals in the order of time.
    size
        Rows in the window, or in each group's window; at least 1.
    by
        The grouping of a partitioned window.

    Raises
    ------
    ValueError
        When there are negative tuples.

    """
    refuse_negatives("a window of the newest rows", changes)
    newest: defaultdict[Hashable, list[Row]] = defaultdict(list)
    result = []
    for change in changes:
        window = newest[by(change.row.value) if by else None]
        if len(window) == size:
            oldest = window.pop(0)
            if oldest.exp > change.at:
                result.append(minus(oldest, change.at))
        window.append(change.row)
        result.append(change)
    return result
