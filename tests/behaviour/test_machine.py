"""Whatever happens in whatever order, crashes included, the warehouse answers as the model."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.layout.strategies import appended, rebuilt
from tests.operations.projects import counts_of
from warehouse.epochs.points import Moment, Point
from warehouse.errors import EmptyFirstRunError
from warehouse.testing import Model, Row, Rules, bag
from warehouse.time import DAY, HOUR, MINUTE, SECOND, parse_instant

from .placement import check_placement
from .project import Layouts, live_versions, stored_files, tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from warehouse.layout import Layout
    from warehouse.operations.update import UpdateReport

KEYS = ("a", "b", "Ü", None)
POINTS = [point for point in Point if point not in (Point.LOCKED, Point.VACUUMED, Point.RETIRED)]
ANCHORS = (parse_instant("2013-03-10T00:00:00Z"), parse_instant("1969-12-30T23:59:58.999999Z"))


class Crash(Exception):  # noqa: N818 - it is no error of ours
    """What stops an update at a named point."""


@dataclass
class Watcher:
    """Sees every moment of an update, and stops it when a point is reached for the ``nth`` time."""

    point: Point | None = None
    nth: int = 1
    moments: list[Moment] = field(default_factory=list)

    def __call__(self, moment: Moment) -> None:
        """See a moment."""
        self.moments.append(moment)
        if self.point is not None and self.count(self.point) == self.nth:
            raise Crash(moment.text)

    def count(self, point: Point) -> int:
        """Return how often a point was reached."""
        return sum(moment.point == point for moment in self.moments)


@st.composite
def declared(draw: st.DrawFn) -> tuple[Rules, Layout]:
    """Draw a layout, and rules with the layout's p; S need not be a multiple of the interval."""
    kinds = st.one_of(rebuilt(), appended(plain=False, seal=True), appended(plain=False), appended())
    layout: Layout = draw(kinds.filter(lambda layout: layout.periods <= 9))
    interval = draw(st.sampled_from([SECOND, 7 * MINUTE, HOUR]))
    short = draw(st.sampled_from([0, 1])) if layout.periods > 1 else 0
    rules = Rules(
        anchor=draw(st.sampled_from(ANCHORS)),
        interval=interval,
        max_lifetime=layout.periods * interval - short * interval // 2,
        over_lifetime=draw(st.sampled_from(["accept", "clamp", "reject"])),
        null_expiry=draw(st.sampled_from(["reject", "never"])),
        max_ahead=DAY,
    )
    return rules, layout


quarters = st.integers(-12, 16)
"""Arrival relative to the window time, in quarters of a slot."""
lives = st.one_of(st.none(), st.integers(-1, 48))
"""Lifetime in quarters of a slot."""
drafts = st.lists(st.tuples(quarters, lives, st.sampled_from([0, 0, 1, -1]), st.sampled_from(KEYS)), min_size=1, max_size=8)


class Windows(RuleBasedStateMachine):
    """One stream, landed into, updated, crashed and read; the model beside it."""

    spark: SparkSession

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="machine-"))
        self.value = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "project"):
            self.project.warehouse.close()
            self.project.in_memory.close()
        shutil.rmtree(self.directory)

    # --- what happens ---

    @initialize(chosen=declared(), rows=drafts, slot=st.integers(0, 12))
    def declare(self, chosen: tuple[Rules, Layout], rows: list[tuple[int, int | None, int, str | None]], slot: int) -> None:
        """A warehouse with rows that wait."""
        rules, layout = chosen
        keys: dict[str, object] = {
            "technique": layout.technique,
            "grid": (layout.rows, layout.columns),
            "insertion": layout.insertion,
            "expiration": layout.expiration,
            "seed": abs(layout.seed),
        }
        if layout.technique == "norebuild":
            keys |= {"expiry_block": layout.expiry_block, "seal": layout.seal}
        event(f"{layout.technique} {layout.rows}x{layout.columns}{' sealed' if layout.seal else ''}")
        self.project = Layouts(self.directory / "project", rules, {"s": keys}, self.spark, warehouse_keys={"publish": "delta"})
        self.model = Model(rules)
        self.slot = slot
        self.arrive(rows)

    def arrive(self, rows: list[tuple[int, int | None, int, str | None]]) -> None:
        """Land a file."""
        rules = self.model.rules
        landed = []
        for start, life, shift, key in rows:
            self.value += 1
            ts = rules.time(self.slot) + start * rules.interval // 4 + shift
            landed.append(Row(ts, None if life is None else ts + life * rules.interval // 4, key, self.value))
        self.project.land(landed)
        self.model.arrive(*landed)

    @rule(rows=drafts, off=st.sampled_from([0, 0, 1]))
    def update(self, rows: list[tuple[int, int | None, int, str | None]], off: int) -> None:
        """The next update, with new rows."""
        self.arrive(rows)
        self._move(1, off=off, each=False)

    @rule(slots=st.sampled_from([2, 3, 4, 8, 12, 0]), each=st.sampled_from([False, False, True]))
    def catch_up(self, slots: int, *, each: bool) -> None:
        """An update moves by several slots, at once or one by one; an update by no slot only finishes what a crash left."""
        self._move(min(slots, 3) if each else slots, off=0, each=each)

    def _move(self, slots: int, *, off: int, each: bool) -> None:
        rules, model = self.model.rules, self.model
        target = rules.time(self.slot + slots) + off * (rules.interval - 1)
        if model.refuses(target, each=each):
            with pytest.raises(EmptyFirstRunError):
                self.project.update(target, each=each)
            assert not model.states
            model.begin(self.slot + slots)
            model.finish()
            self.project.update(target, allow_dead=True)
            self.slot += slots
            return
        before = len(model.states)
        (model.update_each if each else model.update)(target)
        watcher = Watcher()
        report = self.project.update(target, each=each, observer=watcher)
        self.slot += slots
        self._same_counts(report, before)

    def _same_counts(self, report: UpdateReport, before: int) -> None:
        states = self.model.states[before:]
        epochs = (*report.finished, *report.epochs)
        assert [epoch.slot for epoch in epochs] == [state.slot for state in states]
        for epoch, state in zip(epochs, states, strict=True):
            counts = counts_of(epoch, "s")
            assert {name: getattr(counts, name) for name in asdict(state.counts)} == asdict(state.counts)

    @rule(
        point=st.sampled_from(POINTS),
        nth=st.sampled_from([1, 1, 1, 2, 3]),
        slots=st.integers(1, 3),
        each=st.booleans(),
        rows=drafts,
    )
    def crash(
        self,
        point: Point,
        nth: int,
        slots: int,
        rows: list[tuple[int, int | None, int, str | None]],
        *,
        each: bool,
    ) -> None:
        """An update is stopped at a point; a later update finishes the epochs that had a plan, and no other epoch."""
        self.arrive(rows)
        model = self.model
        target = model.rules.time(self.slot + slots)
        if model.refuses(target, each=each):
            return
        unfinished = model.begun is not None
        watcher = Watcher(point, nth)
        try:
            self.project.update(target, each=each, observer=watcher)
        except Crash:
            event(f"crash {point}")
        finished = watcher.count(Point.EPOCH_WRITTEN)
        if unfinished and finished:
            model.finish()
            finished -= 1
        planned = watcher.count(Point.PLAN_WRITTEN)
        start = self._first_slot(target, each=each)
        for number in range(planned):
            model.begin(start + number)
            if number < finished:
                model.finish()
        self.slot = max([self.slot, *(state.slot for state in model.states[-1:])])

    def _first_slot(self, target: int, *, each: bool) -> int:
        last = self.model.rules.last_slot(target)
        if not each:
            return last
        return self.model.states[-1].slot + 1 if self.model.states else self.model.first_slot(last)

    # --- what is answered ---

    @precondition(lambda self: self.model.states)
    @rule(keys=st.lists(st.sampled_from([*KEYS, "absent"]), min_size=1, max_size=3), data=st.data())
    def read(self, keys: list[str | None], data: st.DataObject) -> None:
        """Probes and scans read as of any epoch, at any later instant."""
        model = self.model
        as_of = data.draw(st.sampled_from([None, *(state.window_time for state in model.states)]), label="as of")
        window_time = model.state(as_of).window_time
        now = data.draw(st.sampled_from([None, window_time, window_time + model.rules.interval // 4]), label="now")
        options = {"as_of": as_of, **({} if now is None else {"now": now})}
        rows = self.project.probe("s", keys, **options)
        expected = model.probe(*keys, as_of=as_of, now=now)
        assert Counter(rows) == bag(expected)
        assert [(key, end, start) for key, _, start, end in rows] == [
            (stored.row.key, stored.exp, stored.ts) for stored in expected
        ]
        assert self.project.scan("s", **options) == bag(model.scan(as_of=as_of, now=now))

    @precondition(lambda self: len(self.model.states) > 1)
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        """A consumer that stopped at some epoch reads on to the newest."""
        states = self.model.states
        since = data.draw(st.integers(0, len(states) - 2), label="since")
        with self.project.warehouse.reader() as reader:
            assert reader.epoch.number == len(states) - 1
            changes = reader.changes("s", since=since, system_columns=True).arrow()
        kinds = changes["_change_type"]
        changed = {kind: Counter(tuples(changes.filter(pc.equal(kinds, kind)))) for kind in ("insert", "expire")}
        assert sum(map(Counter.total, changed.values())) == changes.num_rows
        expired = Counter[object]()
        for state in states[since + 1 :]:
            expired += bag(state.expired)
        assert changed["expire"] == expired
        assert bag(states[since].live) + changed["insert"] - changed["expire"] == bag(states[-1].live)

    @invariant()
    def answers_as_the_model(self) -> None:
        """The newest epoch is the model's newest state, and each row lies where the layout says."""
        if not hasattr(self, "model") or not self.model.states:
            return
        state = self.model.states[-1]
        with self.project.warehouse.reader() as reader:
            epoch = reader.epoch
        assert epoch.slot == state.slot
        assert self.project.scan("s") == bag(state.live)
        self._live_table_is_an_answer(epoch.number)
        table = epoch.table("s")
        assert table is not None
        check_placement(stored_files(self.project.warehouse.root, epoch, "s"), table.layout, epoch, state.live)
        waiting = sum(entry.rows for entry in table.deferred.waiting) if table.deferred else 0
        assert waiting == len(state.waiting)
        assert (table.rejected.rows if table.rejected else 0) == len(state.rejected)


    def _live_table_is_an_answer(self, newest: int) -> None:
        """The live table has the rows of the newest epoch, or of the epoch before if the update was stopped; never later rows."""
        if not (self.project.warehouse.root / "live" / "s" / "_delta_log" / f"{0:020}.json").exists():
            assert newest == 0
            return
        (number, rows), = live_versions(self.project, "s", newest=True).items()
        assert newest - 1 <= number <= newest
        assert rows == bag(self.model.states[number].live)


def test_any_history_answers_as_the_model(spark: SparkSession) -> None:
    """Arrivals, updates, catch-ups, crashes and reads in any order give the answers and the files of the model."""
    Windows.spark = spark
    run_state_machine_as_test(
        Windows,
        settings=settings(
            max_examples=6,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
