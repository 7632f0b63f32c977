"""Intervals of several slots: the sheet's vectors, windows against brute force, and what is written and merged by the model."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.aggregates.intervals import (
    MANY,
    Piece,
    basic_is_enough,
    changed,
    cover,
    levels_of,
    longest_levels,
    merged_basic,
    merged_interval,
    merged_upkeep,
    upkeep,
)
from warehouse.aggregates.synopses import ColumnState, Synopsis

VALUES = (5, 3, 8, 1, 9, 2, 7, 4, 6, 0, 8, 2)
"""Values of the slots 1, 2, ... of the sheet's vector (section 3.1)."""
LARGEST = {
    8: [4, 7, 7, 9, 9, 9, 9, 9], 9: [6, 6, 7, 7, 9, 9, 9, 9], 10: [0, 6, 6, 7, 7, 9, 9, 9], 11: [8, 8, 8, 8, 8, 8, 9, 9],
    12: [2, 8, 8, 8, 8, 8, 8, 9],
}  # fmt: skip
TOUCHED = {
    8: [1, 1, 2, 1, 2, 2, 3, 1], 9: [1, 2, 2, 3, 2, 3, 3, 4], 10: [1, 1, 2, 2, 3, 2, 3, 3], 11: [1, 2, 2, 3, 3, 4, 3, 4],
    12: [1, 1, 2, 1, 2, 2, 3, 2],
}  # fmt: skip


class Kept:
    """The values of intervals, kept as a synopsis keeps its rows: each update adds values, late values too."""

    def __init__(self, levels: int, slots: int) -> None:
        self.levels, self.slots, self.through = levels, slots, -10
        self.rows: defaultdict[Piece, list[int]] = defaultdict(list)
        self.written = self.merged = 0

    def update(self, through: int, values: list[tuple[int, int]]) -> None:
        """Move to a slot; values come with their slots."""
        before = self.through if self.rows else None
        stored = {piece: list(values_of_piece) for piece, values_of_piece in self.rows.items()}
        new, late = changed(self.levels, self.slots, before=before, through=through, arrived={slot for slot, _ in values})
        for piece in (*new, *late):
            parts = [value for slot, value in values if piece.first <= slot <= piece.last]
            if piece in new and before is not None:
                stored_pieces = [*cover(piece.first, min(piece.last, before), self.levels, before - self.slots)]
                stored_pieces += [Piece(0, slot) for slot in range(max(piece.first, before + 1), piece.last + 1)]
                parts += [value for stored_piece in stored_pieces for value in stored.get(stored_piece, ())]
            if parts:
                self.rows[piece].append(sum(parts))
                self.written, self.merged = self.written + 1, self.merged + len(parts)
        for slot, value in values:
            self.rows[Piece(0, slot)].append(value)
        self.through = through
        for piece in [stored_piece for stored_piece in self.rows if stored_piece.first <= through - self.slots]:
            del self.rows[piece]

    def pieces(self, slots: int, end: int) -> list[Piece]:
        """The intervals of a window."""
        return [*cover(end - slots + 1, end, self.levels, self.through - self.slots)]

    def total(self, slots: int, end: int) -> int:
        """The sum of a window."""
        return sum(value for piece in self.pieces(slots, end) for value in self.rows.get(piece, ()))


def test_windows_and_intervals_of_the_sheet() -> None:
    """Eight slots: what is kept, the intervals that each window touches, and the greatest value of it."""
    intervals = Kept(3, 8)
    for slot, value in enumerate(VALUES, 1):
        intervals.update(slot, [(slot, value)])
        if slot in LARGEST:
            windows = [intervals.pieces(length, slot) for length in range(1, 9)]
            assert [len(pieces) for pieces in windows] == TOUCHED[slot]
            largest = [max(max(VALUES[piece.first - 1 : piece.last]) for piece in pieces) for pieces in windows]
            assert largest == LARGEST[slot]
            assert [intervals.total(length, slot) for length in range(1, 9)] == [
                sum(VALUES[slot - length : slot]) for length in range(1, 9)
            ]
        if slot in (8, 9):
            assert len(intervals.rows) == {8: 15, 9: 12}[slot]


@pytest.mark.parametrize(
    ("slots", "most", "average"), [(4, 3, 1.7), (8, 4, 2.2), (16, 6, 3.0), (32, 8, 3.8), (64, 10, 4.7), (128, 12, 5.6)]
)
def test_how_many_intervals_a_window_touches(slots: int, most: int, average: float) -> None:
    """Over all lengths and phases, as the sheet has it."""
    levels = slots.bit_length() - 1
    ends = range(slots, 3 * slots)
    touched = [len([*cover(end - n + 1, end, levels, end - slots)]) for end in ends for n in range(1, slots + 1)]
    assert max(touched) == most
    assert mean(touched) == pytest.approx(average, abs=0.07)


arrivals = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.tuples(st.integers(-14, 2), st.integers(0, 9)), max_size=6)), min_size=1, max_size=12
)


@settings(deadline=None)
@given(arrivals, st.integers(0, 3))
def test_every_window_is_that_of_all_rows(given_moves: list[tuple[int, list[tuple[int, int]]]], levels: int) -> None:
    """Updates move over several slots, rows are late by some, and some are ahead; their slots are complete later."""
    intervals, all_values, now = Kept(levels, 9), list[tuple[int, int]](), 0
    for slots, offsets in given_moves:
        now += slots
        values = [(now + offset, value) for offset, value in offsets if now + offset > now - 9]
        all_values += values
        intervals.update(now, values)
        for length in range(1, 10):
            expected = sum(value for slot, value in all_values if now - length < slot <= now)
            assert intervals.total(length, now) == expected, (now, length)


@pytest.mark.parametrize("windows", [{24: 1}, {24: 1, 5: 2}, {100: 3}, {720: 1, 168: 24}])
def test_what_is_written_and_merged_is_that_of_the_model(windows: dict[int, int]) -> None:
    """Counted over whole periods of the longest interval, one row a slot."""
    levels = max(windows).bit_length() - 1
    period, model, basic, interval = 1 << levels, Kept(levels, max(windows)), 0, 0
    for slot in range(1, 8 * period + 1):
        if slot == 4 * period + 1:
            model.written = model.merged = 0
        model.update(slot, [(slot, 1)])
        if slot > 4 * period:
            due = [length for length, step in windows.items() if slot % step == 0]
            basic, interval = basic + sum(due), interval + sum(len(model.pieces(length, slot)) for length in due)
    slots = 4 * period
    assert model.written / slots == pytest.approx(upkeep(levels))
    assert model.merged / slots <= merged_upkeep(levels)
    assert basic / slots == pytest.approx(merged_basic(windows), rel=0.02)
    assert interval / slots == pytest.approx(merged_interval(windows, levels), rel=0.1)


@pytest.mark.parametrize(
    ("windows", "basic", "interval"),
    [
        ({720: 1}, 720, 9.0), ({1: 1, 24: 1, 720: 1}, 745, 14.6), ({168: 1}, 168, 7.3), ({24: 1}, 24, 4.6), ({720: 24}, 30, 0.3),
        ({168: 24}, 7, 0.2), ({24: 6}, 4, 0.6),
    ],
)  # fmt: skip
def test_what_the_documentation_says_is_merged(windows: dict[int, int], basic: float, interval: float) -> None:
    """The table of docs/aggregates.md."""
    assert merged_basic(windows) == basic
    assert merged_interval(windows, max(windows).bit_length() - 1) == pytest.approx(interval, abs=0.05)


def test_what_comes_once_is_written_once_for_each_length() -> None:
    """A month by the hour: what stays alone in its group, or is late, is in ten intervals at most, not in all slots since."""
    intervals = Kept(9, 720)
    intervals.update(1000, [(1000, 1)])
    written = []
    for slot in range(1001, 1720):
        intervals.update(slot, [(700, 1)] if slot == 1400 else [])
        written.append(intervals.written)
    late = written[1400 - 1001] - written[1399 - 1001]
    assert 1 + written[398] <= 10
    assert 1 + late <= 10


def test_when_one_scan_needs_no_intervals() -> None:
    """The sheet's values: at least b / log2 b queries together."""
    least = {slots: next(q for q in range(1, slots) if basic_is_enough(slots, q)) for slots in (8, 16, 32, 64, 128, 256)}
    assert least == {8: 3, 16: 4, 32: 7, 64: 11, 128: 19, 256: 32}


@pytest.mark.parametrize(
    ("windows", "levels"),
    [
        ({720: 1}, 9), ({720: 24}, 9), ({24: 1, 1: 1}, 4), ({24: 24}, 0), ({24: 6}, 0), ({2: 1, 1: 1}, 0),
        (dict.fromkeys(range(1, 25), 1), 0), ({}, 0),
    ],
)  # fmt: skip
def test_intervals_pay_for_long_windows_that_are_often_due(windows: dict[int, int], levels: int) -> None:
    """A month by the hour, yes, also once a day; not short windows, nor very many that one scan gives."""
    assert levels_of(windows) == levels


def test_which_synopses_have_intervals() -> None:
    """Sketches of arrivals, and numbers of many groups; not live rows, a join's parts, counts of values, or few numbers."""
    count, sketch = ColumnState("count", "v", "bigint"), ColumnState("hll", "v", "binary", 12)
    windows = {720: 1}
    assert longest_levels(Synopsis("s", None, (), None, (count, sketch)), windows) == 9
    numbers = Synopsis("s", None, (), None, (count,))
    few, many = (MANY - 1) / 24, MANY / 24
    assert [longest_levels(numbers, windows, groups) for groups in (1, few, many)] == [0, 0, 9]
    with_intervals = replace(numbers, levels=9)
    assert [longest_levels(with_intervals, windows, groups) for groups in (1, many / 5, many / 3)] == [0, 0, 9], "not to and fro"
    assert longest_levels(with_intervals, {24: 24}, many) == 0
    assert longest_levels(Synopsis("s", None, (), ("v", "int"), ()), windows) == 0
    assert longest_levels(Synopsis("s", None, (), None, (sketch,), live=True), windows) == 0
    assert longest_levels(Synopsis("s", None, (), None, (sketch,), parts=("a", "b")), windows) == 0
    assert longest_levels(Synopsis("s", None, (), None, (ColumnState("sum", "v", "bigint"), sketch)), windows) == 0
