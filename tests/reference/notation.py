"""The notation of the sheets' test vectors: ``a1`` is a row with value a and ts 1; ``[g,e)`` is when it was in the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, lifetimes
from tests.reference.engine.tuples import Row
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

FOREVER = NEVER


def stream(text: str, length: int | None = None) -> list[Row]:
    """Rows such as ``"a1 b3"``, in a time window of a length or without one; the text is the id."""
    rows = []
    for word in text.split():
        ts = int(word[1:])
        rows.append(Row(word, (word[0],), ts, NEVER if length is None else ts + length))
    return rows


def named(text: str, length: int) -> list[Row]:
    """Rows such as ``"x1:k@3"``, id, value and ts, in a time window."""
    rows = []
    for word in text.split():
        name, rest = word.split(":")
        value, ts = rest.split("@")
        rows.append(Row(name, (value,), int(ts), int(ts) + length))
    return rows


def label(row_id: Hashable) -> str:
    """``a1·a4`` for a result of those parts."""
    return "·".join(label(part) for part in row_id) if isinstance(row_id, tuple) else str(row_id)


def spans(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """Label, ts and exp of each row."""
    return [(label(row.id), row.ts, row.exp) for row in rows]


def intervals(changes: Iterable[Change]) -> list[tuple[str, int, int]]:
    """Label and real lifetime of each row that was in the answer."""
    return spans(lifetimes(changes))


def emissions(changes: Iterable[Change]) -> list[str]:
    """``+a@1`` or ``-a@4``: the first column of what entered and what was cancelled."""
    return [f"{'+' if change.sign > 0 else '-'}{change.row.value[0]}@{change.at}" for change in changes]


def labels(rows: Iterable[Row]) -> list[str]:
    """The labels of rows, sorted."""
    return sorted(label(row.id) for row in rows)


def negatives(changes: Iterable[Change]) -> int:
    """The number of negative tuples."""
    return sum(change.sign < 0 for change in changes)
