"""The size of a join of two tables by their search keys, from key summaries: no data file is opened.

It is the number of pairs of live rows with equal keys, before any condition. Summaries count stored rows, so the upper bound
always holds; the lower bound is 0 where rows of a file may have expired.

Source: promising-tuples sheet, 11 (summary table).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.promise.summaries import join_bounds, total
from warehouse.serving.key_summaries import Summaries
from warehouse.serving.pruning import all_live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import TableState
    from warehouse.promise.summaries import KeySummary
    from warehouse.serving.reader import Reader

__all__ = ["JoinedKeys", "joined_keys"]

_MOST_KEYS = 1_000_000
"""Listed keys of a table above which adding their counts takes too long."""


@dataclass(frozen=True)
class JoinedKeys:
    """The rows by key of two joined tables, and whether every row of them is live and is joined."""

    left: KeySummary
    right: KeySummary
    every: bool

    @property
    def pairs(self) -> tuple[int, int]:
        """The least and the most pairs of live rows that are joined."""
        least, most = join_bounds(self.left, self.right)
        return (least if self.every else 0), most

    @property
    def exact(self) -> bool:
        """Whether the rows of each key are known."""
        return self.every and self.left.exact and self.right.exact


def joined_keys(
    reader: Reader, tables: tuple[str, str], columns: Sequence[tuple[str | None, str | None]]
) -> JoinedKeys | None:
    """Return the rows by key of two tables; None if they are unknown.

    Parameters
    ----------
    reader
        The epoch.
    tables
        The joined tables.
    columns
        The pairs of their columns that must be equal. They must be the whole search key of both tables, in the same order.

    """
    first, second = (reader.pin.state(table) for table in tables)
    equal = {left.lower(): right.lower() for left, right in columns if left and right}
    keys = [[column.lower() for column in state.declaration.search_key] for state in (first, second)]
    if len(equal) != len(columns) or [equal.get(column) for column in keys[0]] != keys[1] or len(equal) != len(keys[0]):
        return None
    if _types(first) != _types(second):
        return None
    left, right = _summed(reader, first), _summed(reader, second)
    if left is None or right is None:
        return None
    return JoinedKeys(left[0], right[0], left[1] and right[1])


def _types(state: TableState) -> list[str]:
    kinds = {column.name.lower(): column.type.lower() for column in state.declaration.columns}
    return [kinds[column.lower()] for column in state.declaration.search_key]


def _summed(reader: Reader, state: TableState) -> tuple[KeySummary, bool] | None:
    """Return the summary of a table's files, and whether all of their rows are live; None if a file has no summary."""
    pin = reader.pin
    if pin.copies is not None or pin.lazy(state) is not None:
        return None
    summaries, key_summaries = Summaries(), []
    files = pin.live_files(state, pin.epoch.window_time)
    for file in files:
        summary = summaries.of(file)
        if summary is None or summaries.keys > _MOST_KEYS:
            return None
        key_summaries.append(summary)
    return total(key_summaries), all(all_live(file, pin.epoch.slot) for file in files)
