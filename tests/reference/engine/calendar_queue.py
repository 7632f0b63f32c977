"""A circular array of days by expiration time, each dropped as a whole: the buffer for weak input.

``width = ceil(longest / days)``, ``day(exp) = (exp - 1) div width``, ``slot = day mod slots``; day d is dead when
``now >= (d + 1) * width``. Live rows can lie in one day more than there are in the longest lifetime, so one slot more is
needed than days: with as many slots as days, rows inserted between two borders are dropped alive
(update-patterns sheet, 5.3, A15; TV-13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.engine.tuples import Row, live_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CalendarQueue"]


class CalendarQueue:
    """Rows by day of expiration; the clock starts with the first call.

    Parameters
    ----------
    longest
        W, the longest lifetime in ticks.
    days
        P, the number of days that it spans.
    slots
        Places of the circle, P + 1 unless fewer are wanted to see what goes wrong.

    """

    def __init__(self, longest: int, days: int, slots: int | None = None) -> None:
        self.longest = longest
        self.width = -(-longest // days)
        self._slots: list[list[Row]] = [[] for _ in range(days + 1 if slots is None else slots)]
        self._first_day: int | None = None

    def day(self, exp: int) -> int:
        """The day in which rows of an expiration time lie."""
        return (exp - 1) // self.width

    def slot(self, exp: int) -> int:
        """The place of that day in the circle."""
        return self.day(exp) % len(self._slots)

    def slots(self) -> Sequence[Sequence[Row]]:
        """The rows of each slot, in the order of insertion."""
        return tuple(tuple(slot) for slot in self._slots)

    def insert(self, row: Row) -> list[Row]:
        """Move the clock to the row's ``ts``, store it, and return what was dropped.

        Raises
        ------
        ValueError
            When it lives longer than the longest lifetime.

        """
        if row.exp - row.ts > self.longest:
            raise ValueError(f"{row} lives longer than {self.longest}")
        dropped = self.expire(row.ts)
        self._slots[self.slot(row.exp)].append(row)
        return dropped

    def expire(self, now: int) -> list[Row]:
        """Drop the days that are dead, unread, and return their rows."""
        today = now // self.width  # the first day that is not dead
        dropped = []
        for day in range(today if self._first_day is None else self._first_day, today):
            dropped += self._slots[day % len(self._slots)]
            self._slots[day % len(self._slots)] = []
        self._first_day = today if self._first_day is None else max(today, self._first_day)
        return dropped

    def cancel(self, row: Row) -> None:
        """Remove one row equal to this one, looking through all slots: for the few early ends of strict input.

        Raises
        ------
        ValueError
            When there is none.

        """
        for slot in self._slots:
            if row in slot:
                slot.remove(row)
                return
        raise ValueError(f"nothing to cancel: {row}")

    def rows(self) -> list[Row]:
        """All stored rows, slot by slot."""
        return [row for slot in self._slots for row in slot]

    def live(self, now: int) -> list[Row]:
        """The rows that are live: what expired in the current day is still stored."""
        return live_rows(self.rows(), now)
