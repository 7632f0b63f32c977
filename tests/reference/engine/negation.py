"""Negation in two forms that are not interchangeable: bag difference (EXCEPT ALL) and anti-join (NOT EXISTS).

With v1 and v2 the live multiplicities of a value on the left and on the right, the bag difference holds max(v1 - v2, 0) rows
of the value; the anti-join holds all v1 if v2 = 0, and else none. Both are strict: a later arrival on the right ends
results early (update-patterns sheet, 2.4; TV-7, TV-8).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from tests.reference.engine.changes import Change, minus, plus, timeline
from tests.reference.engine.tuples import Key, Row, Value, first

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Policy", "anti_join", "bag_difference"]

Policy: TypeAlias = Literal["oldest", "youngest"]
"""Which left rows of a value are the answer; the value counts are the same."""


# --- bag difference ---


@dataclass
class _Value:
    """The state of one value: live left rows by arrival, those in the answer as they were emitted, live right rows."""

    left: list[Row] = field(default_factory=list)
    shown: dict[Row, Row] = field(default_factory=dict)
    right: list[Row] = field(default_factory=list)


class _BagDifference:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.values: dict[Value, _Value] = {}
        self.emitted: list[Change] = []

    def left_arrival(self, state: _Value, row: Row, now: int) -> None:
        state.left.append(row)
        if len(state.left) > len(state.right):
            self._show_one(state, now)

    def right_arrival(self, state: _Value, row: Row, now: int) -> None:
        state.right.append(row)
        if len(state.right) <= len(state.left):
            self._hide_one(state, now)

    def right_end(self, state: _Value, row: Row, now: int) -> None:
        state.right.remove(row)
        if len(state.left) > len(state.right):
            self._show_one(state, now)

    def left_end(self, state: _Value, row: Row, now: int) -> None:
        """A shown row leaves, by itself if this is its ``exp``; else one that is shown may be one too many."""
        state.left.remove(row)
        if row in state.shown:
            emitted = state.shown.pop(row)
            if row.exp > now:
                self.emitted.append(minus(emitted, now))
        elif len(state.left) >= len(state.right):
            self._hide_one(state, now)

    def _show_one(self, state: _Value, now: int) -> None:
        hidden = [row for row in state.left if row not in state.shown]
        chosen = hidden[0 if self.policy == "oldest" else -1]
        state.shown[chosen] = replace(chosen, ts=now)
        self.emitted.append(plus(state.shown[chosen]))

    def _hide_one(self, state: _Value, now: int) -> None:
        shown = [row for row in state.left if row in state.shown]
        chosen = shown[-1 if self.policy == "oldest" else 0]
        self.emitted.append(minus(state.shown.pop(chosen), now))


def bag_difference(left: Sequence[Change], right: Sequence[Change], policy: Policy = "oldest") -> list[Change]:
    """Emit the bag difference event by event, with the corrected rules.

    * left arrival: if v1 > v2, one row enters;
    * right arrival: if v2 <= v1, one result is cancelled;
    * right end: if v1 > v2, one row enters (the source's v1 >= v2 is wrong at equality);
    * left end of a row that is not in the answer: if v1 >= v2, one other result is cancelled (the source omits this).

    Parameters
    ----------
    left, right
        Event lists, with negatives or not; left rows need distinct ids.
    policy
        ``oldest``: results are the oldest left rows, so that ends on the left need no negatives if all lifetimes are equal.
        ``youngest``: the source's suggestion.

    """
    difference = _BagDifference(policy)
    for tick in timeline(left, right):
        for state in difference.values.values():
            for row in [row for row in state.left if row.exp <= tick.now]:
                difference.left_end(state, row, tick.now)
            for row in [row for row in state.right if row.exp <= tick.now]:
                difference.right_end(state, row, tick.now)
        for side, change in tick.changes:
            state = difference.values.setdefault(change.row.value, _Value())
            match side, change.sign:
                case 0, 1:
                    difference.left_arrival(state, change.row, tick.now)
                case 0, _:
                    difference.left_end(state, change.row, tick.now)
                case _, 1:
                    difference.right_arrival(state, change.row, tick.now)
                case _:
                    difference.right_end(state, change.row, tick.now)
    return difference.emitted


# --- anti-join ---


class _AntiJoin:
    def __init__(self, keys: tuple[Key, Key]) -> None:
        self.left_key, self.right_key = keys
        self.left: list[Row] = []
        self.right: list[Row] = []
        self.shown: dict[Row, Row] = {}
        self.emitted: list[Change] = []

    def blocked(self, row: Row) -> bool:
        key = self.left_key(row.value)
        return key is not None and any(self.right_key(other.value) == key for other in self.right)

    def settle(self, now: int) -> None:
        """Cancel the shown left rows that have a partner now, and show the others."""
        for row in self.left:
            if row in self.shown and self.blocked(row):
                self.emitted.append(minus(self.shown.pop(row), now))
            elif row not in self.shown and not self.blocked(row):
                self.shown[row] = replace(row, ts=now)
                self.emitted.append(plus(self.shown[row]))

    def left_end(self, row: Row, now: int) -> None:
        self.left.remove(row)
        emitted = self.shown.pop(row, None)
        if emitted is not None and row.exp > now:
            self.emitted.append(minus(emitted, now))


def anti_join(left: Sequence[Change], right: Sequence[Change], left_key: Key = first, right_key: Key = first) -> list[Change]:
    """Emit the left rows without a live partner on the right, event by event.

    A partner's arrival cancels the left rows of its key, the end of the last partner shows them again, and the natural end
    of a left row needs no negative. A null key has no partner (``NOT EXISTS``, not ``NOT IN``).

    Parameters
    ----------
    left, right
        Event lists, with negatives or not; left rows need distinct ids.
    left_key, right_key
        What is compared.

    """
    negation = _AntiJoin((left_key, right_key))
    for tick in timeline(left, right):
        for row in [row for row in negation.left if row.exp <= tick.now]:
            negation.left_end(row, tick.now)
        negation.right = [row for row in negation.right if row.exp > tick.now]
        negation.settle(tick.now)
        for side, change in tick.changes:
            rows = negation.right if side else negation.left
            if change.sign > 0:
                rows.append(change.row)
            elif side:
                rows.remove(change.row)
            else:
                negation.left_end(change.row, tick.now)
            negation.settle(tick.now)
    return negation.emitted
