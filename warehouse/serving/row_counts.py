"""How many rows of a file count in a query, as far as key summaries, the log and the slots say without reading the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.promise.summaries import stored_part
from warehouse.serving.keys import keys_of
from warehouse.serving.pruning import all_live
from warehouse.serving.timed_values import FLOATS
from warehouse.time import slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import TableState
    from warehouse.promise.summaries import KeySummary
    from warehouse.serving.key_summaries import Summaries
    from warehouse.serving.pin import Pin
    from warehouse.serving.timed_query import QueryParts
    from warehouse.storage.snapshot import DataFile

__all__ = ["Group", "RowCounts"]

Group = tuple[Any, ...]
"""The values of a group, in the form of key summaries."""
_UNKNOWN = 1 << 40
"""The rows of a file whose number the log does not have."""


class RowCounts:
    """Bounds of the numbers of rows that count: rows that are live after an instant and for which the condition holds.

    Parameters
    ----------
    pin, state
        The epoch and the table.
    sandbox
        Evaluates the constants of the condition.
    asked
        The query.
    tau
        The instant after which rows must expire.
    summaries
        The key summaries of files.

    """

    def __init__(
        self,
        pin: Pin,
        state: TableState,
        sandbox: duckdb.DuckDBPyConnection,
        asked: QueryParts,
        tau: int,
        summaries: Summaries,
    ) -> None:
        self._pin, self._table, self._sandbox, self._asked, self._summaries = pin, state, sandbox, asked, summaries
        self._own_slot = slot(tau, pin.epoch.anchor, pin.epoch.update_interval)
        self._key = tuple(name.lower() for name in state.declaration.search_key)
        self._equal_key = self._demanded_key()

    def exact(self, file: DataFile) -> Mapping[Group, int] | None:
        """Return the number of rows of each group of a file; None if it is not known exactly."""
        if not self._asked.groups:
            least, most = self.between(file)
            return {(): least} if least == most else None
        summary = self._summary_by_group(file)
        if summary is None or not summary.exact or not self._counts_all(file):
            return None
        return summary.counts

    def between(self, file: DataFile, group: Group | None = None) -> tuple[int, int]:
        """Return the least and the greatest number of rows of a file, or of one group in it, that the query counts."""
        stored = file.rows if file.rows is not None else _UNKNOWN
        if self._equal_key is not None and (summary := self._summaries.of(file)) is not None:
            low, high = summary.between(self._equal_key)
            return (low if self._is_of_key_alone() and all_live(file, self._own_slot) and not group else 0), high
        if not group:
            return (stored if self._counts_all(file) else 0), stored
        summary_by_group = self._summary_by_group(file)
        if summary_by_group is None:
            return 0, stored
        low, high = summary_by_group.between(group)
        return (low if self._counts_all(file) else 0), high

    def _counts_all(self, file: DataFile) -> bool:
        """Whether every stored row of a file counts."""
        return self._asked.where is None and file.rows is not None and all_live(file, self._own_slot)

    def _is_of_key_alone(self) -> bool:
        """Whether the condition demands a whole search key, and nothing of other columns."""
        return self._asked.nothing_more and self._asked.equal.keys() == set(self._key)

    def _summary_by_group(self, file: DataFile) -> KeySummary | None:
        """Return the summary of a file if its keys are the query's groups."""
        return self._summaries.of(file) if self._key == self._asked.group_columns else None

    def _demanded_key(self) -> Group | None:
        """Return the whole search key that the condition demands, in the form of key summaries; None if it demands no key."""
        key = self._pin.key_columns(self._sandbox, self._table)
        constants = [self._asked.equal.get(column.name.lower()) for column in key]
        parts = []
        for column, constant in zip(key, constants, strict=True):
            if constant is None:
                return None
            cast = f"TRY_CAST({constant} AS {column.type})"
            try:
                text = f"SELECT {cast}, {cast} = {constant}, typeof({constant})"
                part, is_equal, kind = self._sandbox.cursor().execute(text).fetchall()[0]
            except duckdb.Error:
                return None
            if part is None or not is_equal or not _compared_as_it_is(column.type, kind):
                return None
            parts.append(part)
        return tuple(stored_part(part) for part in keys_of([tuple(parts)], key).keys[0])


def _compared_as_it_is(column: str, constant: str) -> bool:
    """Whether a column's values are compared with a constant without a cast; texts are cast to numbers, numbers to doubles.

    Then one key alone equals the constant; several cast keys may equal it, such as the texts 1 and 01.
    """
    return constant == "VARCHAR" if column == "VARCHAR" else constant not in FLOATS
