from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reference.engine.buffers import AppendList, Buffer, FifoQueue, FifoRing, HashTable
from tests.reference.engine.calendar_queue import CalendarQueue
from tests.reference.engine.changes import arrivals, timeline
from tests.reference.engine.row_windows import row_window
from tests.reference.engine.tuples import Row, live_rows

from .generators import cancelling, seeds, weak, weakest

if TYPE_CHECKING:
    from random import Random

LONGEST = 10


def drive(buffer: Buffer, rows: list[Row]) -> bool:
    """Insert rows in the order of time, expiring at every tick; whether live reads were right throughout."""
    waiting, good = sorted(rows, key=lambda row: row.ts), True
    for now in range(60):
        buffer.expire(now)
        while waiting and waiting[0].ts == now:
            buffer.insert(waiting.pop(0))
        good = good and sorted(map(str, buffer.live(now))) == sorted(map(str, live_rows(rows, now)))
    return good


def busy(random: Random) -> list[Row]:
    """Many rows that live from 1 to the longest time."""
    return weak(random, "r", LONGEST, count=60, horizon=45)


def test_every_buffer_answers_right_on_its_pattern() -> None:
    """Reads of live rows are right for equal lifetimes in a queue, own lifetimes in a calendar, none in a list."""
    for random in seeds(30):
        assert drive(FifoQueue(), weakest(random, "r", LONGEST, count=60, horizon=45))
        assert drive(CalendarQueue(LONGEST, random.randint(1, 6)), busy(random))
        assert drive(AppendList(), [Row(row.id, row.value, row.ts) for row in busy(random)])


def test_a_queue_frees_exactly_what_expired() -> None:
    """A FIFO queue holds no dead row after expiring, and refuses rows that would expire out of order."""
    for random in seeds(20):
        rows, queue = weakest(random, "r", LONGEST, count=30), FifoQueue()
        for row in rows:
            assert all(dead.exp <= row.ts for dead in queue.expire(row.ts))
            queue.insert(row)
            assert queue.rows() == live_rows(queue.rows(), row.ts)
    with pytest.raises(ValueError, match="weak input needs a calendar queue"):
        queue.insert(Row("early", ("a",), 40, 12))


def test_a_ring_holds_a_count_window() -> None:
    """What a ring overwrites is what a count-based window cancels, and what it holds is the window."""
    for random in seeds(30):
        rows, size = [Row(row.id, row.value, row.ts) for row in weak(random, "r", count=12)], random.randint(1, 5)
        ring = FifoRing(size)
        overwritten = [old for row in rows for old in ring.insert(row)]
        assert overwritten == [change.row for change in row_window(arrivals(rows), size) if change.sign < 0]
        assert ring.rows() == rows[-size:]
        assert ring.expire(100) == []


def test_cancelled_rows_leave_a_hash_table_and_a_calendar() -> None:
    """Negative tuples remove their partners, whatever the order of ends."""
    for random in seeds(30):
        changes = cancelling(random, weak(random, "r", LONGEST, count=20))
        table, calendar = HashTable(), CalendarQueue(LONGEST, 3)
        gone: list[Row] = []
        for tick in timeline(changes):
            calendar.expire(tick.now)
            for _, change in tick.changes:
                for buffer in (table, calendar):
                    if change.sign > 0:
                        buffer.insert(change.row)
                    else:
                        buffer.cancel(change.row)
                if change.sign < 0:
                    gone.append(change.row)
            expected = {c.row for c in changes if c.sign > 0 and c.row.live(tick.now)} - set(gone)
            assert set(table.live(tick.now)) == set(calendar.live(tick.now)) == expected
    with pytest.raises(ValueError, match="nothing to cancel"):
        calendar.cancel(Row("unknown", ("a",), 1, 2))


# --- the calendar queue ---


def test_days_of_the_source_example() -> None:
    """TV-13: window 50, 5 days and 5 slots; 101 to 110 lie where 51 to 60 lay."""
    calendar = CalendarQueue(50, 5, slots=5)
    assert [calendar.slot(exp) for exp in (51, 60, 61, 100, 101, 110)] == [0, 0, 1, 4, 0, 0]
    for exp in range(51, 101):
        calendar.insert(Row(exp, ("a",), 50, exp))
    assert [sorted({row.exp for row in slot}) for slot in calendar.slots()] == [
        list(range(first, first + 10)) for first in (51, 61, 71, 81, 91)
    ]
    assert sorted(row.exp for row in calendar.expire(60)) == list(range(51, 61))
    calendar.insert(Row("new", ("a",), 60, 110))
    assert [row.id for row in calendar.slots()[0]] == ["new"]


def test_as_many_slots_as_days_lose_live_rows() -> None:
    """A row inserted at 51 that ends at 101 is dropped with the day from 51 to 60; with one slot more it is kept."""
    for slots, is_kept in ((5, False), (6, True)):
        calendar = CalendarQueue(50, 5, slots)
        calendar.insert(Row("old", ("a",), 41, 60))
        calendar.insert(Row("late", ("a",), 51, 101))
        dropped = [row.id for row in calendar.expire(60)]
        assert dropped == (["old"] if is_kept else ["old", "late"])
        assert [row.id for row in calendar.live(60)] == (["late"] if is_kept else [])


def test_one_slot_more_than_days_never_loses_a_row() -> None:
    """Random rows: with P slots nearly every run loses live rows, with P + 1 none does."""
    failed = {"P": 0, "P+1": 0}
    for random in seeds(60):
        rows, days = busy(random), 5
        failed["P"] += not drive(CalendarQueue(LONGEST, days, days), rows)
        failed["P+1"] += not drive(CalendarQueue(LONGEST, days), rows)
    assert failed["P"] > 50
    assert failed["P+1"] == 0


def test_a_calendar_refuses_longer_lives() -> None:
    """A row that outlives the circle would come to lie on another day's rows."""
    with pytest.raises(ValueError, match="lives longer than 10"):
        CalendarQueue(LONGEST, 5).insert(Row("a", ("a",), 1, 12))


def test_dead_rows_wait_for_the_end_of_their_day() -> None:
    """After expiring, dead rows remain only in the current day."""
    for random in seeds(20):
        calendar = CalendarQueue(LONGEST, 4)
        for row in busy(random):
            calendar.insert(row)
            assert all(calendar.day(stored.exp) >= row.ts // calendar.width for stored in calendar.rows())
