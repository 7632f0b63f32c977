"""A slow, obvious model of one stream's table, for tests: it gives the answers that the warehouse must give.

The model is a list of rows and if statements. It has no grid, no technique, no files and no Spark, so it is the same for every
layout. Give it the rows that you land, move it to the times of your updates, and compare its answers with those of the warehouse:

>>> from warehouse.testing import Model, Row, Rules
>>> from warehouse.time import HOUR, MINUTE
>>> model = Model(Rules(anchor=0, interval=HOUR, max_lifetime=4 * HOUR))
>>> model.arrive(Row(ts=10 * MINUTE, exp=90 * MINUTE, key="a", value=1), Row(ts=70 * MINUTE, exp=3 * HOUR, key="b"))
>>> model.update(HOUR).counts.deferred
1
>>> [stored.row.key for stored in model.scan()]
['a']
>>> model.update(2 * HOUR + 5 * MINUTE).window_time == 2 * HOUR
True
>>> [stored.row.key for stored in model.scan()], [stored.row.key for stored in model.scan(as_of=HOUR)]
(['b'], ['a'])

All instants and durations are integers of microseconds since 1970, UTC.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from warehouse.time import FIRST_INSTANT, NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Counted", "Model", "Row", "Rules", "State", "Stored", "bag"]



@dataclass(frozen=True)
class Row:
    """A row as it arrives; ``ts`` or ``exp`` of ``None`` is null. ``value`` distinguishes rows."""

    ts: int | None
    exp: int | None
    key: Any = None
    value: Any = None


@dataclass(frozen=True)
class Rules:
    """The declarations of the warehouse and the stream that affect answers.

    ``max_lifetime`` is S (None: rows may live for any time); ``max_ahead`` is how far ahead of the clock a row may arrive.
    """

    anchor: int
    interval: int
    max_lifetime: int | None = None
    over_lifetime: Literal["accept", "clamp", "reject"] = "accept"
    null_expiry: Literal["reject", "never"] = "reject"
    max_ahead: int | None = None

    @property
    def periods(self) -> int:
        """The number of slots a row can live through at the most, p = ceil(S/interval)."""
        if self.max_lifetime is None:
            return 24
        whole, rest = divmod(self.max_lifetime, self.interval)
        return whole if rest == 0 else whole + 1

    def slot(self, instant: int) -> int:
        """Return the slot of an instant: slot j ends with the instant ``anchor + j * interval``.

        >>> rules = Rules(anchor=100, interval=10)
        >>> rules.slot(100), rules.slot(101), rules.slot(110), rules.slot(111), rules.slot(90)
        (0, 1, 1, 2, -1)
        """
        whole, rest = divmod(instant - self.anchor, self.interval)
        return whole if rest == 0 else whole + 1

    def time(self, slot: int) -> int:
        """Return the instant at which a slot ends."""
        return self.anchor + slot * self.interval

    def last_slot(self, instant: int) -> int:
        """Return the slot of the last grid point at or before an instant."""
        return (instant - self.anchor) // self.interval


@dataclass(frozen=True)
class Stored:
    """A row as the table holds it: its times (``exp`` is :data:`warehouse.time.NEVER` for ever) and both slots."""

    row: Row
    ts: int
    exp: int
    load_slot: int
    exp_slot: int

    @property
    def never(self) -> bool:
        """Whether the row never expires."""
        return self.exp == NEVER


@dataclass(frozen=True)
class Counted:
    """Rows of one update, by the names they have in the epoch's record."""

    rows: int = 0
    taken: int = 0
    inserted: int = 0
    late: int = 0
    over_lifetime: int = 0
    deferred: int = 0
    dead: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class State:
    """The table after one update: the live rows at its window time, the waiting rows, all rejected rows.

    ``expired`` are the rows that were live before this update and have expired.
    """

    slot: int
    window_time: int
    live: tuple[Stored, ...]
    waiting: tuple[Row, ...]
    rejected: tuple[tuple[Row, str], ...]
    expired: tuple[Stored, ...]
    counts: Counted


@dataclass
class Model:
    """The table of one stream, as a list of rows.

    ``states`` are the states after each update, oldest first; ``landed`` are rows that no update has loaded yet;
    ``begun`` is the slot, the rows and the clock of an update that was begun and not finished.
    """

    rules: Rules
    landed: list[Row] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    begun: tuple[int, tuple[Row, ...], int | None] | None = None

    # --- events ---

    def arrive(self, *rows: Row) -> None:
        """Put rows into the landing directory; their files and their order do not matter."""
        self.landed.extend(rows)

    def update(self, at: int, *, clock: int | None = None) -> State:
        """Finish an update that was begun, then move the window to the last grid point at or before ``at``.

        Parameters
        ----------
        at
            T.
        clock
            The wall-clock instant from which ``max_ahead`` is counted; None: no row is too far ahead.

        Raises
        ------
        ValueError
            When T is before the anchor.

        """
        if self.begun is not None:
            self.finish()
        slot = self.rules.last_slot(at)
        if slot < 0:
            raise ValueError("T is before the anchor")
        if self.states and slot <= self.states[-1].slot:
            return self.states[-1]
        self.begin(slot, clock=clock)
        return self.finish()

    def update_each(self, at: int, *, start: int | None = None, clock: int | None = None) -> list[State]:
        """Move the window slot by slot, at first from the slot of ``start``, or else of the earliest valid row."""
        if self.begun is not None:
            self.finish()
        last = self.rules.last_slot(at)
        first = self.states[-1].slot + 1 if self.states else self.first_slot(last, start=start, clock=clock)
        return [self.update(self.rules.time(slot), clock=clock) for slot in range(first, last + 1)]

    def first_slot(self, last: int, *, start: int | None = None, clock: int | None = None) -> int:
        """Return the first slot of a first run slot by slot: of ``start``, or of the earliest valid row; 0 to ``last``."""
        valid = [row.ts for row in self.landed if row.ts is not None and self._fault(row, clock) is None]
        if start is not None:
            slot = self.rules.slot(start)
        elif valid:
            slot = self.rules.slot(min(valid))
        else:
            slot = last
        return min(max(0, slot), last)

    def begin(self, slot: int, *, clock: int | None = None) -> None:
        """Record the rows that an update to a slot will load, like its write-ahead plan; :meth:`finish` loads them.

        Rows that arrive between the two do not belong to this update. A crash is a :meth:`begin` without :meth:`finish`.
        """
        self.begun = (slot, tuple(self.landed), clock)
        self.landed.clear()

    def finish(self) -> State:
        """Finish the update that was begun.

        Raises
        ------
        ValueError
            When no update was begun.

        """
        if self.begun is None:
            raise ValueError("nothing was begun")
        slot, batch, clock = self.begun
        self.begun = None
        state = self._moved(slot, batch, clock)
        self.states.append(state)
        return state

    def refuses(self, at: int, *, each: bool = False, clock: int | None = None) -> bool:
        """Whether a first update would be refused: rows wait, and none of them would be live."""
        if self.states or self.begun is not None:
            return False
        slot = self.rules.last_slot(at)
        if each:
            slot = self.first_slot(slot, clock=clock)
        counts = self._moved(slot, tuple(self.landed), clock).counts
        if counts.inserted:
            return False
        if each:
            return counts.dead > 0 and counts.deferred == 0
        return counts.dead + counts.deferred > 0

    # --- answers ---

    def scan(self, *, as_of: int | None = None, now: int | None = None) -> list[Stored]:
        """Return the live rows of the newest state, or of the newest at or before ``as_of``; no order.

        ``now`` leaves out rows that have expired by then, too.
        """
        state = self.state(as_of)
        instant = state.window_time if now is None else max(now, state.window_time)
        return [stored for stored in state.live if stored.exp > instant]

    def probe(self, *keys: Any, as_of: int | None = None, now: int | None = None) -> list[Stored]:  # noqa: ANN401 - any key
        """Return the live rows of keys by key, ``exp``, ``ts``; null keys are first."""
        rows = [stored for stored in self.scan(as_of=as_of, now=now) if stored.row.key in keys]
        return sorted(rows, key=_probe_order)

    def probe_range(
        self, low: Any = None, high: Any = None, *, as_of: int | None = None, now: int | None = None  # noqa: ANN401 - any key
    ) -> list[Stored]:
        """Return the live rows with ``low <= key < high`` in the order of :meth:`probe`; None: that end is open."""
        rows = []
        for stored in self.scan(as_of=as_of, now=now):
            key = stored.row.key
            if key is None or (low is not None and key < low) or (high is not None and key >= high):
                continue
            rows.append(stored)
        return sorted(rows, key=_probe_order)

    def state(self, as_of: int | None = None) -> State:
        """Return the newest state, or the newest whose window time is at or before ``as_of``.

        Raises
        ------
        LookupError
            When there is no such state.

        """
        for state in reversed(self.states):
            if as_of is None or state.window_time <= as_of:
                return state
        raise LookupError("no state at or before that time")

    # --- the if statements ---

    def _moved(self, k: int, batch: Sequence[Row], clock: int | None) -> State:
        rules = self.rules
        before = self.states[-1] if self.states else None
        k0 = k - rules.periods if before is None else before.slot
        now = rules.time(k)

        live_before = before.live if before else ()
        expired = [stored for stored in live_before if stored.exp <= now]
        live = [stored for stored in live_before if stored.exp > now]
        waiting = [row for row in (before.waiting if before else ()) if self._waits(row, now)]
        taken = [row for row in (before.waiting if before else ()) if not self._waits(row, now)]
        rejected = list(before.rejected) if before else []

        tally: Counter[str] = Counter()
        for row in [*taken, *batch]:
            fault = self._fault(row, clock)
            if fault is not None:
                rejected.append((row, fault))
                tally["rejected"] += 1
            elif self._is_dead(row, now):
                tally["dead"] += 1
            elif self._waits(row, now):
                waiting.append(row)
                tally["deferred"] += 1
            else:
                stored = self._stored(row, k0)
                live.append(stored)
                tally["inserted"] += 1
                if before is not None and rules.slot(stored.ts) <= k0:
                    tally["late"] += 1
                if self._is_over(row):
                    tally["over_lifetime"] += 1
        counts = Counted(rows=len(batch), taken=len(taken), **tally)
        return State(k, now, tuple(live), tuple(waiting), tuple(rejected), tuple(expired), counts)

    def _fault(self, row: Row, clock: int | None) -> str | None:
        rules = self.rules
        if row.ts is None:
            return "null_arrival"
        if row.exp is None and rules.null_expiry == "reject":
            return "null_expiry"
        if row.ts < FIRST_INSTANT or row.ts >= NEVER:
            return "out_of_range"
        if row.exp is not None and row.exp < row.ts:
            return "expires_before_arrival"
        if rules.over_lifetime == "reject" and self._is_over(row):
            return "over_lifetime"
        if clock is not None and rules.max_ahead is not None and row.ts > clock + rules.max_ahead:
            return "too_far_ahead"
        return None

    def _waits(self, row: Row, now: int) -> bool:
        return row.ts is not None and row.ts > now

    def _is_dead(self, row: Row, now: int) -> bool:
        if row.ts is None:
            return False
        return row.ts <= now and self._exp(row) <= now

    def _stored(self, row: Row, k0: int) -> Stored:
        ts = FIRST_INSTANT if row.ts is None else row.ts
        exp = self._exp(row)
        load_slot = self.rules.slot(ts)
        if load_slot <= k0:
            load_slot = k0 + 1
        return Stored(row, ts, exp, load_slot, self.rules.slot(exp))

    def _is_over(self, row: Row) -> bool:
        if row.ts is None or row.exp is None or row.exp == NEVER or self.rules.max_lifetime is None:
            return False
        return row.exp - row.ts > self.rules.max_lifetime

    def _exp(self, row: Row) -> int:
        if row.exp is None or row.ts is None:
            return NEVER
        if self.rules.over_lifetime == "clamp" and self.rules.max_lifetime is not None and self._is_over(row):
            return row.ts + self.rules.max_lifetime
        return row.exp


def _probe_order(stored: Stored) -> tuple[bool, Any, int, int]:
    return (stored.row.key is not None, stored.row.key, stored.exp, stored.ts)


def bag(rows: Iterable[Stored]) -> Counter[tuple[Any, Any, int, int]]:
    """Return rows as a bag of (key, value, ts, exp): equal rows count, order does not."""
    return Counter((stored.row.key, stored.row.value, stored.ts, stored.exp) for stored in rows)
