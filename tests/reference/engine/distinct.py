"""Duplicate elimination in three forms: straightforward weak, delta* and counting.

At any instant each value of the live input is in the answer once. The weak forms show one row for a value and replace it when
it expires; so expirations are known when rows are emitted. The counting form keeps a multiplicity and announces the end of a
value by a negative tuple (update-patterns sheet, 2.2 and 5.2, TV-4 to TV-6).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tests.reference.engine.changes import Change, minus, plus, refuse_negatives, timeline
from tests.reference.engine.tuples import Row, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["DeltaStar", "counting_distinct", "delta_star", "weak_distinct"]


def weak_distinct(changes: Sequence[Change], prefer: Literal["oldest", "youngest"] = "youngest") -> list[Change]:
    """The straightforward weak form: the whole input is stored, and a shown row that ends is replaced from it.

    Parameters
    ----------
    changes
        Any event list; negative tuples of a shown row are passed on.
    prefer
        Which stored row of the value replaces it, by arrival.

    """
    stored: list[Row] = []
    shown: dict[Value, tuple[Row, Row]] = {}  # the stored row, and as it was emitted
    result: list[Change] = []

    def show(value: Value, now: int) -> None:
        candidates = [row for row in stored if row.value == value]
        if candidates:
            chosen = candidates[0 if prefer == "oldest" else -1]
            shown[value] = chosen, replace(chosen, ts=now)
            result.append(plus(shown[value][1]))

    for tick in timeline(changes):
        stored = [row for row in stored if row.exp > tick.now]
        for value in [value for value, (source, _) in shown.items() if source.exp <= tick.now]:
            del shown[value]
            show(value, tick.now)
        for _, change in tick.changes:
            value = change.row.value
            if change.sign > 0:
                stored.append(change.row)
            else:
                stored.remove(change.row)
                if shown[value][0] == change.row:
                    result.append(minus(shown.pop(value)[1], tick.now))
            if value not in shown:
                show(value, tick.now)
    return result


class DeltaStar:
    """The weak form in space of twice the answer: one shown row and at most one spare for each value.

    Rows that do not outlive the shown one are not kept. ``shown[v]`` is the row in the answer, ``spare[v]`` its replacement.

    Parameters
    ----------
    spare
        ``latest``: the row with the latest ``exp``, right for any input without negatives. ``youngest``: the latest arrival, as
        in the source; right only if all lifetimes are equal (A14).

    """

    def __init__(self, spare: Literal["latest", "youngest"] = "latest") -> None:
        self.choice = spare
        self.shown: dict[Value, Row] = {}
        self.spare: dict[Value, Row] = {}

    def tick(self, now: int, arrived: Iterable[Row]) -> list[Row]:
        """Replace what expired by now, then take what arrived; return the rows that come into the answer."""
        emitted = []
        for value in [value for value, row in self.shown.items() if row.exp <= now]:
            del self.shown[value]
            spare = self.spare.pop(value, None)
            if spare is not None and spare.exp > now:
                self.shown[value] = replace(spare, ts=now)
                emitted.append(self.shown[value])
        for row in arrived:
            if row.value not in self.shown:
                self.shown[row.value] = replace(row, ts=now)
                emitted.append(self.shown[row.value])
            elif row.exp > self.shown[row.value].exp and self._better(row):
                self.spare[row.value] = row
        return emitted

    def _better(self, row: Row) -> bool:
        spare = self.spare.get(row.value)
        return spare is None or self.choice == "youngest" or row.exp >= spare.exp


def delta_star(changes: Sequence[Change], spare: Literal["latest", "youngest"] = "latest") -> list[Change]:
    """Run :class:`DeltaStar` over an event list.

    Raises
    ------
    ValueError
        When there are negative tuples: the spare might be cancelled while a row that was not kept is still live.

    """
    refuse_negatives("delta*", changes)
    operator = DeltaStar(spare)
    return [
        plus(row) for tick in timeline(changes) for row in operator.tick(tick.now, [change.row for _, change in tick.changes])
    ]


def counting_distinct(changes: Sequence[Change]) -> list[Change]:
    """The strict form: a value enters when its count leaves 0 and is cancelled when it is 0 again; no end is known before.

    Input rows end by their ``exp`` or by negative tuples; a value that ends and begins at one tick does both (A25).
    """
    stored: list[Row] = []
    count: Counter[Value] = Counter()
    shown: dict[Value, Row] = {}
    result: list[Change] = []

    def leave(row: Row, now: int) -> None:
        stored.remove(row)
        count[row.value] -= 1
        if count[row.value] == 0:
            result.append(minus(shown.pop(row.value), now))

    for tick in timeline(changes):
        for row in [row for row in stored if row.exp <= tick.now]:
            leave(row, tick.now)
        for _, change in tick.changes:
            row = change.row
            if change.sign < 0:
                leave(row, tick.now)
                continue
            stored.append(row)
            count[row.value] += 1
            if count[row.value] == 1:
                shown[row.value] = Row(row.id, row.value, tick.now)
                result.append(plus(shown[row.value]))
    return result
