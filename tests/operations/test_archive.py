"""``on_expiry = "archive"``: rows that expired from a stream are in its archive, once, from the same epoch on.

Rows of one key each; an update in every hour but 4, blocks of two hours in ``a``, sub-indices rewritten in ``b``::

    hour   0.....1.....2.....3.....4.....5.....6.....7
    p        ....:..|  |     |           |     |             ends within an update's hours
    q        ....:.....:     |           |     |             ends at the very instant of update 2
    r        ....:.....:.....:...|       |     |             ends in an hour that is caught up with
    s, w     . . |     | . . |           |     |             dead on arrival: never were in the table
    t        ....:.....:.....:...........:.....:....         lives on
    u, u           ....:..   |           |     |             twice the same row
    v                        ............:..   |             no key
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.replayed import replayed
from warehouse.checking.check import check
from warehouse.cli import inspection
from warehouse.cli.reports import update_report
from warehouse.cli.status import status
from warehouse.epochs.journal import read_epoch
from warehouse.epochs.points import Point
from warehouse.errors import ChangedDeclarationError, UsageError
from warehouse.operations.update import UpdateOptions, UpdateReport
from warehouse.planning.steps import MoveWindow, Step
from warehouse.project import Warehouse
from warehouse.time import to_micros

from .projects import ANCHOR, Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = {
    1: [("p", 0.2, 1.5), ("q", 0.2, 2), ("r", 0.2, 3.6), ("s", 0.2, 0.8), ("t", 0.2, 6.9)],
    2: [("u", 1.2, 2.5), ("u", 1.2, 2.5)],
    3: [("", 2.4, 5.2), ("w", 2.5, 2.9)],
}
HOURS = (1, 2, 3, 5, 6)


def declared(directory: Path, spark: SparkSession) -> Project:
    """Two streams that land the same rows."""
    layouts = {"a": {"expiry_block": 2}, "b": {"technique": "rebuild"}}
    return Project(directory, spark, {
        name: stream(landing=f"landing/{name}", max_lifetime="8h", layout=layout, on_expiry="archive")
        for name, layout in layouts.items()
    })  # fmt: skip


def land(project: Project, hour: int) -> None:
    """Put the rows of an hour into a file of each stream."""
    for name in project.streams:
        lines = (row(key, begins, ends) for key, begins, ends in ROWS.get(hour, ()))
        project.land(f"{hour}.csv", csv(*lines), landing=f"landing/{name}")


def run(project: Project, hours: tuple[int, ...] = HOURS) -> Project:
    """Land and update."""
    for hour in hours:
        land(project, hour)
        project.update(hour)
    return project


def archived(project: Project, name: str = "a", number: int | None = None) -> Counter[tuple[str, float, float]]:
    """Return key, arrival and end in hours of the rows that an archive shows."""
    return Counter(
        ((record["k"] or ""), _hours(record["_ts"]), _hours(record["expired_at"]))
        for record in project.live(f"{name}_archive", number)
    )


def _hours(instant: object) -> float:
    return round((to_micros(instant) - ANCHOR) / 3_600_000_000, 3)  # type: ignore[arg-type]


def ended(by: float, *hours: int) -> Counter[tuple[str, float, float]]:
    """Return the expected rows of an archive: rows of the files of some hours that were live then and have ended."""
    rows = Counter[tuple[str, float, float]]()
    for hour in hours or ROWS:
        rows.update((key, begins, ends) for key, begins, ends in ROWS[hour] if hour < ends <= by)
    return rows


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The script, run once."""
    return run(declared(tmp_path_factory.mktemp("kept") / "project", spark))


@pytest.fixture
def copy(kept: Project, tmp_path: Path) -> Project:
    """The warehouse after the script, for one test."""
    return kept.copy(tmp_path / "project")


def test_what_the_warehouse_knows_of_an_archive(kept: Project) -> None:
    """It is listed and described as an archive, nothing warns of it, and the update reports how many rows it got."""
    shown = status(kept.directory, verbose=False, expanded=False)
    assert [warning for warning in shown.warnings if "archive" in warning] == []
    tables = {name: kind for rows in inspection.tables(kept.directory).result.rows(10) for name, kind in rows}
    assert tables == {"a": "stream", "a_archive": "archive", "b": "stream", "b_archive": "archive"}
    facts = {(of, name): text for of, name, text in _described(kept, "a_archive")}
    assert (facts["table", "kind"], facts["table", "search_key"]) == ("archive", "k")
    assert facts["column", "expired_at"] == "timestamp"
    assert ("table", "expires") not in facts
    report = update_report(UpdateReport((kept.epoch,)))
    assert "  a_archive: 1 expired row kept" in report.lines


def _described(project: Project, table: str) -> list[tuple[Any, ...]]:
    return [row for rows in inspection.describe(project.directory, table).result.rows(100) for row in rows]


@pytest.mark.parametrize("name", ["a", "b"])
def test_an_archive_has_what_expired_at_every_epoch(kept: Project, name: str) -> None:
    """Each row once, whether the stream drops its files unread or rewrites them, sealed or not."""
    for number, hour in enumerate(HOURS):
        assert archived(kept, name, number) == ended(hour), hour
    assert ended(HOURS[-1]).total() == 6
    counts = replayed(kept.root, [name, f"{name}_archive"])
    assert counts[name, "expire"] == counts[f"{name}_archive", "insert"] == 6 - ended(HOURS[0]).total()
    assert {kind for table, kind in counts if table != name} == {"insert"}


def test_an_archive_is_a_table_as_any_other(kept: Project) -> None:
    """It is probed, scanned, queried and checked; its rows never expire, and its runs are merged once."""
    with Warehouse.open(kept.directory) as warehouse:
        assert [row[0] for row in warehouse.probe("a_archive", ["u"]).all()] == ["u", "u"]
        assert len(warehouse.probe("a_archive", null=True).all()) == 1
        query = "SELECT (SELECT count(*) FROM a_archive) + (SELECT count(*) FROM a)"
        assert warehouse.sql(query).all() == [(ended(6).total() + 1,)]
        assert warehouse.sql("SELECT max(expired_at) FROM b_archive WHERE expired_at > now()").all() == [(None,)]
    assert check(kept.root).findings == ()
    state = kept.epoch.table("a_archive")
    assert state is not None
    assert (state.kind, state.archive_of, state.layout.columns, state.declared) == ("archive", "a", 1, True)
    assert kept.counts("a_archive").inserted == 1
    counted = [counts for number in kept.numbers for counts in read_epoch(kept.root, number).counts]
    assert any(counts.sealed for counts in counted if counts.stream == "a_archive")


def test_an_update_that_is_stopped_archives_each_row_once(tmp_path: Path, spark: SparkSession) -> None:
    """Stopped at one moment after the other: readers have the epoch before, and a later update completes it."""
    project = declared(tmp_path / "project", spark)
    del project.streams["b"]
    run(project, HOURS[:1])
    rows = {step.path: number for number, step in enumerate(_planned(project, 2)) if isinstance(step, MoveWindow)}
    archive = rows["tables/a_archive"]
    moments = [
        (Point.STEP_COMMITTED, rows["tables/a"]),
        *((point, archive) for point in (Point.STEP_STARTED, Point.STEP_READY, Point.STEP_COMMITTED)),
        (Point.STEPS_DONE, -1),
    ]
    for point, step in moments:
        with pytest.raises(StoppedError):
            project.update(2, observer=stop_at(point, step))
        assert (project.numbers, archived(project)) == ([0], Counter())
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.EPOCH_WRITTEN))
    assert (project.numbers, archived(project)) == ([0, 1], ended(2))
    project.update(7)
    assert archived(project) == ended(7, 1, 2)
    assert check(project.root).findings == ()


def _planned(project: Project, hour: int) -> tuple[Step, ...]:
    """Return the steps of an update into which a file is loaded."""
    land(project, hour)
    plan, _ = project.updater().plan(UpdateOptions(at=at(hour)))
    assert plan is not None
    return plan.steps


def test_an_archive_that_is_declared_later_has_what_expires_from_then_on(tmp_path: Path, spark: SparkSession) -> None:
    """Earlier expired rows are missing; switched off, it stays unchanged until it is dropped."""
    project = declared(tmp_path / "project", spark)
    del project.streams["b"]
    project.change(on_expiry=None)
    run(project, (1, 2))
    project.change(on_expiry="archive")
    run(project, (3, 5))
    later = ended(5) - ended(2)
    assert archived(project) == later
    with pytest.raises(UsageError, match="is still declared"):
        project.updater().drop("a_archive")
    project.change(on_expiry="drop")
    report = project.update(7)
    assert any("drop a_archive" in text for text in project.update(7).warnings)
    assert report.epochs
    assert archived(project) == later
    project.updater().drop("a_archive")
    assert project.epoch.table("a_archive") is None
    assert check(project.root).findings == ()


def test_going_back_takes_an_archive_back_and_archives_what_has_expired_since(copy: Project) -> None:
    """As if the updates since had found no file; the rows of forgotten files come again with the files."""
    copy.updater().rollback(1)
    assert archived(copy) == ended(6, 1, 2)
    assert copy.keys() == "t"
    assert check(copy.root).findings == ()
    replayed(copy.root)


def test_restating_leaves_an_archive_as_it_is(copy: Project) -> None:
    """Expired rows stay as they were; columns that the archive lacks are refused before anything is written."""
    copy.change(expires="timestampadd(MINUTE, 30, e)")
    copy.updater().restate("a", since=at(1))
    assert archived(copy) == ended(6)
    copy.change(columns={"k": "string", "b": "timestamp", "e": "timestamp", "more": "string"})
    with pytest.raises(ChangedDeclarationError, match="drop a_archive"):
        copy.updater().restate("a", since="first")
    assert check(copy.root).findings == ()


def test_an_erased_key_leaves_the_archive_too(copy: Project) -> None:
    """The proof reads the archive too; a stream's archive cannot be erased by itself."""
    with pytest.raises(UsageError, match='erase the rows of "a"'):
        copy.updater().erase("a_archive", ["u"])
    for hour in ROWS:
        (copy.directory / "landing/a" / f"{hour}.csv").unlink()
    outlook, receipt = copy.updater().erase("a", ["u", None])
    assert receipt is not None
    assert (outlook.rows, receipt.rows, receipt.proof.traces) == (3, 3, ())
    assert archived(copy) == Counter({row: count for row, count in ended(6).items() if row[0] not in ("u", "")})
    assert archived(copy, "b") == ended(6)
    assert check(copy.root).findings == ()
    copy.update(7)
    assert ("t", 0.2, 6.9) in archived(copy)
