"""Joins with slowly changing tables: relations (retroactive) and NRRs (an update acts on later arrivals only).

A table is a list of versions, rows with ``ts`` = valid from and ``exp`` = valid to. A stream row joins every version of a
relation that overlaps its life; of an NRR it joins exactly the version with ``valid_from < ts <= valid_to``, so an update
stamped like the row is not seen (update-patterns sheet, 4.3, A3 and A11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, arrivals, plus, refuse_negatives
from tests.reference.engine.expiration import announced
from tests.reference.engine.joins import join
from tests.reference.engine.tuples import Key, Row, Value, first

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

__all__ = ["TableUpdate", "as_of_join", "join_non_retroactive", "join_relation", "split_reused", "versions"]


@dataclass(frozen=True)
class TableUpdate:
    """The row of a key gets these other columns at an instant, or is deleted (``columns`` of ``None``)."""

    at: int
    key: Hashable
    columns: Value | None = ()


def versions(updates: Iterable[TableUpdate]) -> list[Row]:
    """Return the versions of a table, as rows ``(key, *columns)``, in the order in which they became valid.

    Updates of one instant count in their order; deleting an unknown key does nothing.

    >>> [(row.value, row.ts, row.exp) for row in versions([TableUpdate(0, "A", (1,)), TableUpdate(6, "A", (2,)), TableUpdate(9, "A", None)])]
    [(('A', 1), 0, 6), (('A', 2), 6, 9)]
    """  # noqa: E501 - one example
    result: list[Row] = []
    current: dict[Hashable, int] = {}
    for update in sorted(updates, key=lambda update: update.at):
        if update.key in current:
            position = current.pop(update.key)
            result[position] = replace(result[position], exp=update.at)
        if update.columns is not None:
            current[update.key] = len(result)
            result.append(Row((update.key, len(result)), (update.key, *update.columns), update.at))
    return result


def split_reused(updates: Iterable[TableUpdate]) -> tuple[list[TableUpdate], list[TableUpdate]]:
    """Separate an NRR's updates from the updates to reject: a deleted key must never be inserted again (4.3).

    >>> good, rejected = split_reused([TableUpdate(0, "A"), TableUpdate(6, "A", None), TableUpdate(9, "A")])
    >>> len(good), [update.at for update in rejected]
    (2, [9])
    """
    good: list[TableUpdate] = []
    rejected: list[TableUpdate] = []
    known_keys: set[Hashable] = set()
    tombstones: set[Hashable] = set()
    for update in sorted(updates, key=lambda update: update.at):
        if update.columns is None:
            if update.key in known_keys:
                tombstones.add(update.key)
            good.append(update)
        elif update.key in tombstones:
            rejected.append(update)
        else:
            known_keys.add(update.key)
            good.append(update)
    return good, rejected


def join_relation(stream: Sequence[Change], updates: Iterable[TableUpdate], key: Key = first) -> list[Change]:
    """Join a window with a relation: an insert scans the window for new results, a delete emits negatives for old ones.

    A result is expected to live as long as its stream row; a delete ends it early. Updates stamped like an arrival count in
    the state that it meets, whichever is handled first.

    Raises
    ------
    ValueError
        When the stream holds negative tuples (6.1).

    """
    refuse_negatives("the join with a relation", stream)
    return join(stream, announced(arrivals(versions(updates))), keys=(key, first))


def join_non_retroactive(stream: Sequence[Change], updates: Iterable[TableUpdate], key: Key = first) -> list[Change]:
    """Join a stream with an NRR event by event: arrivals probe the table first, then the updates of that instant count.

    Neither the stream is stored nor does an update emit anything.

    Raises
    ------
    ValueError
        When the stream holds negative tuples (6.1), or a deleted key is inserted again.

    """
    refuse_negatives("the join with a non-retroactive relation", stream)
    waiting, rejected = split_reused(updates)
    if rejected:
        raise ValueError(f"deleted keys are inserted again: {rejected}; leave these updates out")
    table: list[Row] = []
    result = []
    for change in sorted(stream, key=lambda change: change.at):
        while waiting and waiting[0].at < change.at:
            update = waiting.pop(0)
            table = [row for row in table if row.value[0] != update.key]
            if update.columns is not None:
                table.append(Row(update.key, (update.key, *update.columns), update.at))
        stream_key = key(change.row.value)
        result += [plus(_reflecting(change.row, row)) for row in table if stream_key is not None and row.value[0] == stream_key]
    return result


def as_of_join(rows: Iterable[Row], table: Sequence[Row], key: Key = first) -> list[Row]:
    """Join rows with the versions of an NRR that each of them sees: the same as a formula.

    Parameters
    ----------
    rows
        Stream rows; none joins on a null key.
    table
        Versions, see :func:`versions`.
    key
        The join attribute of the stream.

    """
    return [
        _reflecting(row, version)
        for row in rows
        for version in table
        if key(row.value) is not None and key(row.value) == version.value[0] and version.ts < row.ts <= version.exp
    ]


def _reflecting(row: Row, version: Row) -> Row:
    return replace(row, value=(*row.value, *version.value))
