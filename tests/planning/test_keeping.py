"""Marks of age: which epochs' rows were kept for long enough, told by a record that does not grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.planning.keeping import SHARES, marks_after, overdue_epoch, with_mark
from warehouse.time import DAY, MINUTE

if TYPE_CHECKING:
    from warehouse.epochs.records import AgeMark

LATEST = {"at the tick": 1, "now and then": 40, "after a rest": 900}
gaps = st.one_of(*(st.integers(0, longest) for longest in LATEST.values()))


@given(keep=st.integers(0, 400), steps=st.lists(st.tuples(gaps, st.booleans()), max_size=120))
def test_nothing_younger_leaves_and_nothing_older_stays(keep: int, steps: list[tuple[int, bool]]) -> None:
    """Whatever the rhythm of updates, a row leaves after `keep` and at most a sixteenth of it later; some thirty marks suffice.

    found   a b   c            d
    time  --+-+---+------------+------>
    marks   a     c            d          (b is taken for c)
    """
    now, marks = 0, tuple["AgeMark", ...]()
    times: dict[int, int] = {}
    for epoch, (gap, finds) in enumerate(steps):
        now += gap
        through = overdue_epoch(marks, keep, now)
        if through is not None:
            removed = {number: time for number, time in times.items() if number <= through}
            assert all(time + keep <= now for time in removed.values())
            times = {number: time for number, time in times.items() if number > through}
            marks = marks_after(marks, through)
        assert all(time > now - keep - keep / SHARES - 1 for time in times.values())
        if finds:
            times[epoch] = now
            marks = with_mark(marks, epoch, now, keep)
        assert len(marks) <= 2 * (SHARES + 1) + 2
        assert [mark.epoch for mark in marks] == sorted({mark.epoch for mark in marks})


@given(instants=st.lists(st.integers(0, 1000), min_size=1, max_size=40), keep=st.integers(0, 400))
def test_a_clock_that_is_set_back_makes_no_row_older(instants: list[int], keep: int) -> None:
    """The instants of marks do not go back, and none is before its rows were found."""
    marks: tuple[AgeMark, ...] = ()
    for epoch, instant in enumerate(instants):
        marks = with_mark(marks, epoch, instant, keep)
        assert marks[-1].epoch == epoch
        assert marks[-1].at >= instant
        assert [mark.at for mark in marks] == sorted(mark.at for mark in marks)


def test_most_updates_commit_nothing_for_it() -> None:
    """Old rows leave many at a time: once a day where `keep` is 16 days, though rows are found each minute."""
    keep, marks, steps = 16 * DAY, tuple["AgeMark", ...](), 0
    for minute in range(1, 30 * 1440):
        through = overdue_epoch(marks, keep, minute * MINUTE)
        if through is not None:
            marks, steps = marks_after(marks, through), steps + 1
        marks = with_mark(marks, minute, minute * MINUTE, keep)
    assert 12 <= steps <= 16


@pytest.mark.parametrize("now", [0, 10**15])
def test_forever(now: int) -> None:
    """Without a bound nothing is ever overdue."""
    assert overdue_epoch(with_mark((), 3, 0, 1), None, now) is None
