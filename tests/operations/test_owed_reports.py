"""A view under a budget that reports short-lived results: rows that end while owed are set aside, and reported later."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from warehouse import Warehouse
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.operations.migrate import MigrationRequest
from warehouse.promise import units

from .budgets import SQL, ledger
from .projects import Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Bag = Counter[tuple[object, ...]]
WINDOWED = "SELECT w.k, w.x, c.y FROM time_window(a, INTERVAL 2 HOURS) w JOIN c ON w.k = c.k WHERE w.x + c.y < 5"


class Twins:
    """A join that reports all of its short-lived results, and the same join under a budget."""

    def __init__(self, directory: Path, spark: SparkSession, sql: str = SQL, **budget: object) -> None:
        columns = {"k": "string", "b": "timestamp", "e": "timestamp"}
        streams = {
            "a": stream(columns={**columns, "x": "int"}),
            "c": stream(columns={**columns, "y": "int"}, landing="landing/c"),
        }
        view = {"sql": sql, "search_key": "k", "short_lived": "report"}
        views = {"exact": view, "some": {**view, "budget": {"pairs": 3, **budget}}}
        self.project = Project(directory, spark, streams, views=views)
        self.seen: dict[str, Bag] = {"exact": Counter(), "some": Counter()}
        self.files = 0

    def land(self, left: str, right: str, begins: float, ends: float) -> None:
        """Land a file for each stream, with a row for each letter."""
        for name, keys, column in (("a", left, "x"), ("c", right, "y")):
            lines = [f"{key},{text(begins)},{text(ends)},{number}" for number, key in enumerate(keys)]
            self.lines(name, column, lines)
        self.files += 1

    def lines(self, name: str, column: str, lines: list[str]) -> None:
        """Land a file for one stream."""
        self.project.land(f"{self.files}.csv", csv(*lines, header=f"k,b,e,{column}"), landing=f"landing/{name}")

    def live(self, view: str) -> Bag:
        """Return the live results."""
        return Counter((row["k"], row["x"], row["y"], row["_ts"], row["_exp"]) for row in self.project.live(view))

    def reported(self, view: str, *, owed: bool | None = None) -> Bag:
        """Return the short-lived results; under a budget all, or only owed or other results."""
        with Warehouse.open(self.project.directory) as warehouse:
            rows = warehouse.restored(view).arrow().to_pylist()
        return Counter(
            (row["k"], row["x"], row["y"], row["_ts"], row["_exp"]) for row in rows if owed is None or row["_owed"] is owed
        )

    def require(self) -> None:
        """Require that the parts are parts, and with the owed results all: each result that was ever due, once."""
        for view in self.seen:
            self.seen[view] |= self.live(view)
        assert self.live("some") <= self.live("exact")
        due = self.reported("exact") + (self.seen["exact"] - self.seen["some"])
        assert self.reported("some") <= due, "none that never was, none twice"
        if ledger(self.project).complete:
            assert self.live("some") == self.live("exact")
            assert self.reported("some") == due

    @property
    def set_aside(self) -> int:
        """Return how many rows are set aside."""
        state = self.project.epoch.table("some.owed")
        assert state is not None
        return sum(part.rows for part in state.partitions)


def test_what_ends_while_it_is_owed_is_reported_later(tmp_path: Path, spark: SparkSession) -> None:
    """Rows that end are set aside with their partners; completing gives their pairs, marked, and leaves no such row."""
    twins = Twins(tmp_path, spark)
    project = twins.project
    twins.land("pppq", "ppqr", 0.5, 2.5)
    twins.land("p", "", 0.6, 9)
    project.update(1)
    twins.require()
    assert (ledger(project).made, twins.set_aside) == (3, 0)
    twins.land("ss", "s", 1.4, 1.6)
    project.update(2)
    twins.require()
    assert twins.live("some").total() == 6
    project.update(3)
    twins.require()
    assert twins.set_aside > 0
    assert (ledger(project).most, ledger(project).lapsed) == (0, 0), "no live pair is missing"
    made = project.updater().complete("some")
    twins.require()
    assert made.made == 11 - 9
    assert (twins.set_aside, ledger(project).complete) == (0, True)
    assert twins.reported("some", owed=True).total() >= 2
    assert check(project.root).findings == ()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_drawn_updates_completions_and_stops(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Whatever arrives, ends and is stopped in between: each due result is in the view or reported, once."""
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    twins = Twins(tmp_path, spark, WINDOWED if seed % 3 == 0 else SQL, pairs=[2, 4, 9][seed % 3])
    now = 0
    points = (Point.STAGED, Point.STEP_READY, Point.STEP_COMMITTED, Point.STEPS_DONE)
    rounds = 3 if seed == 1 else 6
    for number in range(rounds):
        now += draw.choice([1, 1, 2])
        for name, column in (("a", "x"), ("c", "y")):
            lines = []
            for _ in range(draw.randrange(2, 7)):
                begins = now - draw.choice([0.5, 0.7, 0.9, 1.5])
                ends = begins + draw.choice([0.3, 1, 2, 3])
                lines.append(f"{draw.choice('ppqr')},{text(begins)},{text(ends)},{draw.randrange(4)}")
            twins.lines(name, column, lines)
        twins.files += 1
        if draw.random() < 0.5:
            with suppress(StoppedError):
                twins.project.update(now, observer=stop_at(draw.choice(points), draw.choice([-1, *range(12)])))
        twins.project.update(now)
        twins.require()
        if number in (rounds // 2 - 1, rounds - 1):
            with suppress(StoppedError):
                twins.project.updater(stop_at(draw.choice(points), draw.choice(range(4)))).complete("some")
            twins.project.updater().complete("some")
            twins.require()
            assert ledger(twins.project).complete
            assert twins.set_aside == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 7))
def test_drawn_late_rows_in_ranges_of_several_updates(
    seed: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, with later slots waiting in one range from the first or second on, and no completion before the end."""
    monkeypatch.setattr(units, "RANGES", seed % 2)
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    twins = Twins(tmp_path, spark, pairs=[1, 2, 4][seed % 3])
    now = 0
    for _ in range(6):
        now += draw.choice([1, 1, 2])
        for name, column in (("a", "x"), ("c", "y")):
            lines = []
            for _ in range(draw.randrange(2, 6)):
                begins = now - draw.choice([0.5, 0.9, 1.5, 2.5])
                ends = begins + draw.choice([0.3, 1, 2, 3, 6])
                lines.append(f"{draw.choice('ppq')},{text(begins)},{text(ends)},{draw.randrange(4)}")
            twins.lines(name, column, lines)
        twins.files += 1
        twins.project.update(now)
        twins.require()
    twins.project.updater().complete("some")
    twins.require()
    assert ledger(twins.project).complete
    assert twins.set_aside == 0


def test_other_verbs_take_what_is_set_aside_along(tmp_path: Path, spark: SparkSession) -> None:
    """Rollback restores it, an erasure removes a key from it, and a rebuilt view begins without it."""
    twins = Twins(tmp_path, spark, pairs=1)
    project = twins.project
    twins.land("ppqq", "pq", 0.5, 1.5)
    twins.land("p", "p", 0.6, 9)
    for slot in (1, 2):
        project.update(slot)
        twins.require()
    set_aside, number = twins.set_aside, project.epoch.number
    assert set_aside > 0
    project.updater().complete("some")
    twins.require()
    project.updater().rollback(number)
    assert (twins.set_aside, ledger(project).complete) == (set_aside, False)
    project.updater().complete("some")
    twins.require()
    project.updater().rollback(number)
    _, receipt = project.updater().erase("a", ["p"])
    assert receipt is not None
    assert receipt.ended_rows_given_up == {"some": set_aside}
    paths = (project.root / "tables/some.owed").rglob("*.parquet")
    held_files = [file for file in paths if file.parent.name not in ("_schema", "_delta_log")]
    assert held_files == []
    assert check(project.root).findings == ()
    assert twins.set_aside == 0
    assert not [row for row in twins.reported("some") if row[0] == "p"]
    project.updater().migrate("a", MigrationRequest(LayoutSpec(grid=(2, 2))))
    twins.land("q", "q", 1.6, 2.5)
    project.update(at_slot := 3)
    ended = ledger(project).ended
    assert ended >= set_aside, "the erasure's, and what the migration gave up"
    aside = twins.set_aside
    project.updater().restate("c", since=at(at_slot - 1))
    assert ledger(project).ended == ended + aside
    assert bool(aside) == any("that ended is given up" in warning for warning in project.epoch.warnings)
    project.updater().vacuum()
    assert check(project.root).findings == ()
    project.views["some"]["short_lived"] = "drop"
    project.declare()
    project.update(4)
    assert project.epoch.table("some.owed") is None
    assert check(project.root).findings == ()


def test_a_range_of_several_updates_has_no_pair_that_none_of_them_found(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late row does not meet a row that ended before its update, also if later slots wait in one range."""
    monkeypatch.setattr(units, "RANGES", 0)
    twins = Twins(tmp_path, spark, pairs=1)
    twins.land("pppq", "ppq", 0.5, 6)
    for slot, (left, begins, ends) in enumerate((("ppqq", 0.9, 1.5), ("pq", 1.9, 2.5), ("pq", 1.2, 2.8)), 1):
        twins.land(left, "", begins, ends) if slot < 3 else twins.land("", left, begins, ends)
        twins.project.update(slot)
        twins.require()
    twins.project.updater().complete("some")
    twins.require()
