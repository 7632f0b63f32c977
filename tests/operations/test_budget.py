"""Views under a budget: results made in time and results completed later together are the exact view."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_dry_runs import tree
from warehouse import Warehouse
from warehouse.catalog.model import LayoutSpec
from warehouse.cli.reports import completion_report
from warehouse.epochs.points import Point
from warehouse.errors import UsageError
from warehouse.limits import limited
from warehouse.operations import complete as complete_module
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.verification import verdicts_of
from warehouse.promise import units
from warehouse.promise.units import Ledger
from warehouse.serving import Reader
from warehouse.views.maintenance import unit_pairs

from .budgets import SQL, bag, declared, land, ledger, require_sound
from .outsiders import CHANGES
from .projects import Project, StoppedError, at, csv, row, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Observer

SHAPES = (
    SQL,
    "SELECT l.k, l.x, r.x + 1 AS y FROM a l JOIN a r ON l.k = r.k",
    "SELECT w.k, w.x, c.y FROM time_window(a, INTERVAL 2 HOURS) w JOIN c ON w.k = c.k AND w.x = c.y",
    "SELECT u.k, u.x, c.y FROM (SELECT k, x FROM a WHERE x > 0 UNION ALL SELECT k, y FROM c) u JOIN c ON u.k = c.k",
    "SELECT d.k, d.x, c.y FROM d JOIN c ON d.k = upper(c.k)",
)
"""Joins that may have a budget; `d` is a view."""


def declare(
    directory: Path, spark: SparkSession, pairs: int | None = 5, sql: str = SQL, *, above: bool = True, **budget: object
) -> Project:
    """Return a project with an exact join, a join under a budget, and views above that."""
    return declared(Project(directory, spark), pairs, sql, above=above, **budget)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return a project with all these views after its first update, which owes results; tests copy it."""
    project = declare(tmp_path_factory.mktemp("budget") / "begun", spark)
    land(project, "1", "ppppqq", "pppqr", 0.5, 3.5)
    project.update(1)
    return project


def test_an_update_makes_its_budget_and_complete_the_rest(begun: Project, tmp_path: Path) -> None:
    """Never more results than the budget, and some whenever some are owed; complete makes the view equal its query."""
    project = begun.copy(tmp_path / "copy")
    assert (ledger(project).made, ledger(project).exact) == (5, 14)
    require_sound(project)
    land(project, "2", "pr", "pr", 1.5, 4.5)
    project.update(2)
    assert ledger(project).made == 5
    require_sound(project)
    done = project.updater().complete("some")
    require_sound(project)
    assert bag(project, "some") == bag(project, "exact")
    assert done.made == bag(project, "exact").total() - 10
    assert not project.updater().complete("some").epochs
    project.update(3)
    assert bag(project, "some") == bag(project, "exact")


class Drawn:
    """Updates, completions, stops and expiries in a drawn order."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project = project
        self.draw = random.Random(seed)  # noqa: S311 - rows of a test
        self.now = 0
        self.files = 0

    def land(self) -> None:
        """Land rows of few keys, some late, some that end soon."""
        keys = "ppppqqr"
        for name, column in (("a", "x"), ("c", "y")):
            lines = []
            for _ in range(self.draw.randrange(7)):
                begins = self.now - self.draw.choice([0.5, 0.5, 0.5, 1.5, 2.5])
                ends = begins + self.draw.choice([1, 2, 3, 4])
                lines.append(f"{self.draw.choice(keys)},{text(begins)},{text(ends)},{self.draw.randrange(4)}")
            self.project.land(f"{self.files}.csv", csv(*lines, header=f"k,b,e,{column}"), landing=f"landing/{name}")
        self.files += 1

    def stopped(self, move: Callable[[Observer], object]) -> None:
        """Stop a verb at a drawn moment; the verb may end before."""
        points = (Point.PLAN_WRITTEN, Point.STAGED, Point.STEP_READY, Point.STEP_COMMITTED, Point.STEPS_DONE)
        with suppress(StoppedError):
            move(stop_at(self.draw.choice(points), self.draw.choice([-1, *range(12)])))

    def update(self) -> None:
        """Move by one slot or several, perhaps stopped before the end."""
        self.now += self.draw.choice([1, 1, 1, 2])
        self.land()
        if self.draw.random() < 0.5:
            self.stopped(lambda observer: self.project.update(self.now, observer=observer))
        before = self.project.epoch.number if self.project.numbers else -1
        self.project.update(self.now)
        if self.project.epoch.number > before:
            assert self.pairs is None or ledger(self.project).made <= self.pairs
            assert ledger(self.project).made or not ledger(self.project).ranges

    def complete(self, chunk: int) -> None:
        """Complete in chunks, perhaps stopped in one of them."""
        with mock_chunk(chunk):
            if self.draw.random() < 0.5:
                self.stopped(lambda observer: self.project.updater(observer).complete("some"))
            once = self.draw.random() < 0.3
            self.project.updater().complete("some", out_of_time=lambda: once)
        if not once:
            assert ledger(self.project).complete

    @property
    def pairs(self) -> int | None:
        """Return how many results the budget allows; None if the budget counts something else."""
        limit: int | None = self.project.views["some"]["budget"].get("pairs")  # type: ignore[attr-defined]
        return limit


@contextmanager
def mock_chunk(results: int) -> Iterator[None]:
    """Complete in chunks of ``results`` results, if the budget is not larger."""
    before, complete_module.CHUNK = complete_module.CHUNK, results
    try:
        yield
    finally:
        complete_module.CHUNK = before


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 16))])
def test_drawn_updates_and_completions(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """However updates and completions follow each other and stop: a part of the exact view, and all of it after completion."""
    pairs, prefer = [3, 1, 8, 40, None][seed % 5], ["weighted", "desc", "asc", "left_count * pow(0.5, age)"][seed % 4]
    rows = {} if pairs else {"rows": 7}
    drawn = Drawn(declare(tmp_path, spark, pairs, SHAPES[seed % len(SHAPES)], prefer=prefer, **rows), seed)
    drawn.now = 1
    land(drawn.project, "first", "ppq", "pqq", 0.5, 3)
    drawn.project.update(1)
    require_sound(drawn.project)
    for _ in range(5):
        if drawn.draw.random() < 0.7:
            drawn.update()
        else:
            drawn.complete(drawn.draw.choice([2, 5, 1000]))
        require_sound(drawn.project)
    drawn.complete(4)
    require_sound(drawn.project)


def test_budgets_of_rows_and_seconds(tmp_path: Path, spark: SparkSession) -> None:
    """Joined rows and seconds limit an update as results do, and an expression orders the results."""
    project = declare(tmp_path, spark, None, above=False, rows=6)
    view = {"sql": SQL, "search_key": "k"}
    project.views["timed"] = {**view, "budget": {"seconds": 0.00021}}  # 4 results, as long as nothing was measured
    project.views["old"] = {**view, "budget": {"pairs": 3, "prefer": "CASE k WHEN 'r' THEN 100 ELSE right_count END + age"}}
    project.views["odd"] = {**view, "budget": {"pairs": 3, "prefer": "right_count / CASE k WHEN 'p' THEN 0 ELSE 1 END"}}
    project.views["broken"] = {**view, "budget": {"pairs": 3, "prefer": "CAST(k AS INT)"}}
    project.declare()
    land(project, "1", "ppppqq", "pppqr", 0.5, 5.5)
    land(project, "r", "r", "", 0.5, 5.5)
    report = project.update(1)
    require_sound(project)
    assert Counter(row["k"] for row in project.live("odd")) == {"q": 2, "r": 1}, "what divides by zero comes last"
    ((failed, why),) = report.failed_views
    assert failed == "broken"
    assert why.startswith('views.broken.budget.prefer = "CAST(k AS INT)" fails for a key, change it: [CAST_INVALID_INPUT]')
    del project.views["odd"], project.views["broken"]
    project.declare()
    assert Counter(row["k"] for row in project.live("some")) == {"p": 9}, "three of its four rows on the left, all on the right"
    assert (ledger(project).made, ledger(project).rows, ledger(project).incomplete) == (9, 12, 5)
    assert (ledger(project, "timed").made, ledger(project, "timed").allowed) == (4, 4)
    assert Counter(row["k"] for row in project.live("old")) == {"r": 1, "p": 2}
    land(project, "2", "s", "s", 1.5, 5.5)
    project.update(2)
    assert ledger(project, "timed").allowed == 1, "it took much longer"
    assert ledger(project, "timed").made == 1
    assert Counter(row["k"] for row in project.live("old")) == {"r": 1, "p": 5}, "the older first"
    require_sound(project)
    for name in ("some", "timed", "old"):
        project.updater().complete(name)
        assert bag(project, name) == bag(project, "exact")
    require_sound(project)
    assert (ledger(project).rows, ledger(project).incomplete) == (0, 0)


def test_other_verbs_take_the_ledger_along(tmp_path: Path, spark: SparkSession) -> None:
    """Rollback restores what was owed; a rebuilt view begins again under its budget; erased rows stay away."""
    project = declare(tmp_path, spark, above=False)
    land(project, "1", "ppppqq", "pppqr", 0.5, 3.5)
    project.update(1)
    before, number = ledger(project), project.epoch.number
    project.updater().complete("some")
    assert ledger(project).complete
    project.updater().rollback(number)
    assert ledger(project) == before
    require_sound(project)
    land(project, "2", "pqr", "qqr", 1.5, 4.5)
    project.update(2)
    require_sound(project)
    project.updater().restate("a", since=at(1))
    assert ledger(project).made == 5
    require_sound(project)
    project.updater().migrate("a", MigrationRequest(LayoutSpec(grid=(2, 2))))
    require_sound(project)
    project.updater().rebuild("some")
    assert bag(project, "some").total() == 5
    require_sound(project)
    project.updater().erase("a", ["p"])
    assert {row["k"] for row in project.live("some")} <= {"q", "r"}
    require_sound(project)
    project.updater().complete("some")
    require_sound(project)
    assert ledger(project).complete


def test_a_budget_comes_changes_and_goes(tmp_path: Path, spark: SparkSession) -> None:
    """With a new budget new results are owed; a smaller one makes less; without one an owing view is built again."""
    project = declare(tmp_path, spark)
    budget = project.views["some"].pop("budget")
    project.declare()
    land(project, "1", "ppq", "ppq", 0.5, 4)
    project.update(1)
    assert bag(project, "some") == bag(project, "exact")
    project.views["some"]["budget"] = budget
    project.declare()
    with pytest.raises(UsageError, match="run `stream-wh update` first"):
        project.updater().complete("some")
    land(project, "2", "pp", "pp", 1.5, 4)
    project.update(2)
    assert ledger(project).made == 5
    require_sound(project)
    project.views["some"]["budget"] = {"pairs": 2, "complete": "never"}
    project.declare()
    project.update(3)
    assert (ledger(project).made, ledger(project).ranges, ledger(project).complete) == (2, (), False)
    require_sound(project)
    with pytest.raises(UsageError, match="never"):
        project.updater().complete("some")
    del project.views["some"]["budget"]
    project.declare()
    land(project, "4", "p", "p", 3.2, 6)
    project.update(3.5)
    assert bag(project, "some") == bag(project, "exact")
    state = project.epoch.table("some")
    assert state is not None
    assert state.view is not None
    assert state.view.ledger is None


def test_files_left_for_another_epoch(begun: Project, tmp_path: Path) -> None:
    """Later rows of the same slot join a unit only when all rows are there, and views above get them once."""
    project = begun.copy(tmp_path / "copy")
    for number in range(3):
        land(project, f"more{number}", "pq", "pq", 1.5, 4)
    with limited(files_per_plan=2):
        project.update(2)
    assert project.epoch.number == 2
    require_sound(project)
    project.updater().complete("some")
    require_sound(project)
    assert ledger(project).complete


def test_files_left_of_another_stream(tmp_path: Path, spark: SparkSession) -> None:
    """Pairs of a slot whose other stream has left files are owed until they become units, also if nothing more arrives."""
    project = declare(tmp_path, spark, pairs=50, above=False)
    project.streams["z"] = stream(landing="landing/z")
    project.declare()
    for slot in (1, 2):
        land(project, str(slot), "pq", "pq", slot - 0.5, 9)
        for number in range(3):
            project.land(f"{slot}{number}.csv", csv(row("z", slot - 0.5, 9)), landing="landing/z")
        with limited(files_per_plan=1):
            project.update(slot)
        assert ledger(project).complete
        require_sound(project)
        before = project.epoch.number - 1
        missing = (bag(project, "exact", before) - bag(project, "some", before)).total()
        assert missing > 0
        assert (ledger(project, number=before).complete, ledger(project, number=before).later) == (False, missing)


def test_rejected_records_that_are_tried_again(tmp_path: Path, spark: SparkSession) -> None:
    """The units of their load slot were already made, so the view begins again under its budget."""
    project = declare(tmp_path, spark, above=False)
    land(project, "1", "pq", "pq", 0.5, 4)
    project.land("2.csv", csv(f"p,{text(0.6)},{text(4)},7,1", header="k,b,e,x,more"), landing="landing/a")
    project.update(1)
    assert ledger(project).complete
    project.change(unknown_columns="ignore")
    project.updater().restate("a", rejected=True)
    require_sound(project)
    project.updater().complete("some")
    require_sound(project)
    assert bag(project, "some").total() == 3


def test_a_unit_goes_on_after_its_last_result_ended(tmp_path: Path, spark: SparkSession) -> None:
    """After the last result has ended, the number of its equal results says nothing about other results."""
    project = declare(tmp_path, spark, pairs=3, above=False)
    ends = (2, 3, 2.5, 4, 4, 5, 2.2, 5.5)
    lines = [f"p,{text(0.5)},{text(end)},{number}" for number, end in enumerate(ends)]
    project.land("1.csv", csv(*lines, header="k,b,e,x"), landing="landing/a")
    lines = [f"p,{text(0.5)},{text(9)},{number}" for number in range(2)]
    project.land("1.csv", csv(*lines, header="k,b,e,y"), landing="landing/c")
    for slot in (1, 2, 3, 4):
        project.update(slot)
        require_sound(project)
    project.updater().complete("some")
    assert bag(project, "some") == bag(project, "exact")


def test_the_share_counts_what_was_given_up_before(tmp_path: Path, spark: SparkSession) -> None:
    """Pairs that an update gave up are missing in the next epochs too; if nothing arrives nobody counts them."""
    project = declare(tmp_path, spark, pairs=2, above=False, complete="never")
    land(project, "1", "pppp", "pppp", 0.5, 9)
    project.update(1)
    land(project, "2", "q", "q", 1.5, 9)
    project.update(2)
    require_sound(project)
    assert ledger(project).shares == (pytest.approx(3 / 17), pytest.approx(3 / 17))
    project.update(3)
    require_sound(project)
    assert ledger(project).shares == (0, 1)


def _then_once(move: Callable[[], object]) -> Callable[[WriteContext], AbstractContextManager[None]]:
    """Return a replacement of the writer lock that calls a function when the lock is first released."""
    todo = [move]

    @contextmanager
    def locked_before(context: WriteContext) -> Iterator[None]:
        with locked(context):
            yield
        while todo:
            todo.pop()()

    return locked_before


def test_large_units_are_cut_by_rows(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of many pairs is joined in slices, also under a condition, by Spark and by the driver."""
    monkeypatch.setattr(units, "_EXCESS_PAIRS", 2)
    project = declare(tmp_path, spark, pairs=7, above=False)
    project.views["few"] = {
        "sql": "SELECT a.k, a.x, c.y FROM a JOIN c ON a.k = c.k WHERE (a.x + c.y) % 5 = 0",
        "search_key": "k",
        "budget": {"pairs": 7},
    }
    project.views["whole"] = {key: value for key, value in project.views["few"].items() if key != "budget"}
    project.declare()
    land(project, "1", "p" * 14, "p" * 10 + "q", 0.5, 4.5)
    project.update(1)
    assert (ledger(project, "few").made, ledger(project, "few").exact) == (7, None)
    monkeypatch.setattr(unit_pairs, "FEW", 0)
    project.update(2)
    assert ledger(project, "few").made == 7
    require_sound(project)
    with mock_chunk(9):
        with monkeypatch.context() as patch:
            patch.setattr(complete_module, "locked", _then_once(lambda: project.update(3)))
            chunks = project.updater().complete("few").epochs
        assert [epoch.slot for epoch in chunks][:1] == [2]
        assert project.epoch.slot == 3, "an update began between two chunks"
        project.updater().complete("some", out_of_time=lambda: True)
    assert bag(project, "few") == bag(project, "whole")
    require_sound(project)


def test_check_and_answers_know_what_is_owed(begun: Project, tmp_path: Path, spark: SparkSession) -> None:
    """A part passes as a part, an extra row does not; answers from it, and from views above, say what they miss."""
    project = begun.copy(tmp_path / "copy")
    verdicts = {verdict.view: verdict.outcome for verdict in verdicts_of(project.root, project.epoch, spark)}
    assert set(verdicts.values()) == {"same"}
    with Reader.open(project.root) as reader:
        assert reader.scan("exact").metadata.get("stream_wh.owed") is None
        for table in ("some", "met"):
            metadata = reader.scan(table).metadata
            assert (metadata["stream_wh.owed"], float(metadata["stream_wh.share"])) == ("some", pytest.approx(5 / 14))
            assert metadata["stream_wh.owed_rows"] == "10"
        (row,) = reader.sql("SELECT owed_least, owed_most, share_least, owed_rows FROM _epochs").arrow().to_pylist()
        assert [*row.values()] == [9, 9, pytest.approx(5 / 14), 10]
    warehouse = Warehouse(project.directory, project.root)
    gauges = warehouse.metrics().decode()
    assert 'stream_wh_owed_results{bound="most",table="some"} 9.0' in gauges
    assert 'stream_wh_incomplete_rows{bound="least",table="some"} 3.0' in gauges, "q is owed whole; of p some pairs are there"
    assert 'table="exact"' not in "".join(line for line in gauges.splitlines() if "owed" in line)
    assert warehouse.report().count("Results that are owed") == 1
    before = tree(project.root)
    looked_at = completion_report(warehouse.complete("some", dry_run=True), dry_run=True)
    assert tree(project.root) == before
    assert looked_at.lines == (
        "9 results are owed: `stream-wh complete some` goes on",
        "  completing joins up to 10 rows of 2 units; 3 to 10 rows lack a partner",
    )
    state = project.epoch.table("some")
    assert state is not None
    assert state.view is not None
    whole = replace(state, view=replace(state.view, ledger=Ledger(through=1)))
    tables = tuple(whole if state.name == "some" else state for state in project.epoch.tables)
    claimed = {
        verdict.view: verdict.outcome
        for verdict in verdicts_of(project.root, replace(project.epoch, tables=tables), spark)
    }
    assert claimed["some"] == "differs"


@pytest.mark.parametrize("sql", [SQL, pytest.param(SHAPES[-1].replace("upper(c.k)", "c.k"), marks=pytest.mark.long)])
def test_a_stream_that_goes_on_at_a_slot_of_before(sql: str, tmp_path: Path, spark: SparkSession) -> None:
    """Its rows belong to the next slot, or to slots that were made: the next update adds their results."""
    project = declare(tmp_path, spark, 100, sql, above=False)
    land(project, "1", "ppq", "ppq", 0.5, 4)
    project.update(1)
    assert ledger(project).complete
    CHANGES["overwrite"](project.root / "tables/a")
    project.streams["z"] = stream(landing="landing/z")
    project.declare()
    assert [name for name, _ in project.update(1).stopped] == ["a"]
    project.updater().undo_foreign("a")
    land(project, "2", "pq", "", 0.5, 4)
    project.update(1)
    assert bag(project, "some") <= bag(project, "exact")
    project.update(2)
    require_sound(project)
    assert bag(project, "some") == bag(project, "exact")
