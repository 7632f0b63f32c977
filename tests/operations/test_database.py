"""``warehouse.duckdb`` follows the epochs: who opens it gets the newest epoch, who has it open keeps the former one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.publishing.reading import attached, with_duckdb_alone
from warehouse.epochs.points import Point
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import database_difference
from warehouse.serving import Reader
from warehouse.time import MINUTE

from .projects import Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWED = 4
"""How many of the last updates have a view: as many as an expiry block has slots."""
RETAIN = 5
LANDING = 4
"""Rows land every so many updates; the others only expire."""
FILTERED: dict[str, object] = {"sql": "SELECT k, e FROM a WHERE k <> 'k1'", "search_key": "k"}


def _landed(slot: int) -> str:
    """Return rows of one slot, each of which ends in another of the next eight, and a row that is dead on arrival."""
    return csv(*(row(f"k{n}", slot - 0.5, slot + n - 0.5) for n in range(1, 9)), row("gone", slot - 0.5, slot - 0.1))


@pytest.mark.parametrize("updates", [30, pytest.param(100, marks=pytest.mark.long)])
def test_updates_with_connections_open(tmp_path: Path, spark: SparkSession, updates: int) -> None:
    """After each update, another process and a new connection count the rows of a scan; older connections keep theirs.

    Expiry blocks have four slots, so most updates leave dead rows in the files::

        block    |---- ---- ---- ----|---- ---- ---- ----|
        update   ^    ^    ^    ^    ^ files of the first block go
    """
    layout = {"grid": [2, 3], "expiry_block": 4}
    project = Project(
        tmp_path / "project", spark, {"a": stream(max_lifetime="8h", layout=layout)}, warehouse={"retain": f"{RETAIN}h"}
    )
    connections: list[tuple[int, int, duckdb.DuckDBPyConnection]] = []
    dead = 0
    for alone in with_duckdb_alone(project.root, tmp_path):
        for slot in range(1, updates + 1):
            project.clock = at(slot)
            if slot % LANDING == 1:
                project.land(f"{slot}.csv", _landed(slot))
            if slot == updates - VIEWED + 1:
                project.views["filtered"] = FILTERED
                project.declare()
            project.update(slot)
            tables = ["a", "filtered"] if slot > updates - VIEWED else ["a"]
            with Reader.open(project.root) as reader:
                number = reader.epoch.number
                counts = [len(reader.scan(table).all()) for table in tables]
            answers = alone.answers("SELECT max(number) FROM w._epochs", *(f"SELECT count(*) FROM w.{name}" for name in tables))
            assert answers == [[[number]], *([[count]] for count in counts)]
            connections.append((number, counts[0], attached(project.root)))
            for epoch, count, connection in connections[-RETAIN:]:
                query = "SELECT (SELECT max(number) FROM w._epochs), (SELECT count(*) FROM w.a)"
                assert connection.execute(query).fetchall() == [(epoch, count)]
            dead += sum(part.rows for state in project.epoch.tables for part in state.partitions) > counts[0]
    assert dead > updates / 2, "most of the time a reader has rows to leave out"
    assert project.numbers[0] > updates - 2 * RETAIN
    first = connections[0][2]
    with pytest.raises(duckdb.IOException):
        first.execute("SELECT count(*) FROM w.a")
    for _, _, connection in connections:
        connection.close()


def test_every_verb_that_writes_an_epoch_replaces_it(history: Project, tmp_path: Path) -> None:
    """Marking a file, going back, reading files again and forgetting a view."""
    project = history.copy(tmp_path / "project")
    numbers = [project.epoch.number]

    def written() -> None:
        assert database_difference(project.root, project.epoch) is None
        numbers.append(project.epoch.number)

    project.updater().reload("landing/a/1.csv")
    written()
    project.updater().rollback(1)
    written()
    project.updater().restate("b", since="first")
    written()
    with attached(project.root) as connection:
        assert connection.execute("SELECT count(*) FROM w.once").fetchall() == [(len(project.live("once")),)]
    del project.views["once"]
    project.declare()
    project.updater().drop("once")
    written()
    assert len(set(numbers)) == 5
    with attached(project.root) as connection, pytest.raises(duckdb.CatalogException):
        connection.execute("SELECT * FROM w.once")


def test_a_missing_file_is_made_again_by_an_update_that_has_nothing_else_to_do(history: Project, tmp_path: Path) -> None:
    """Without Spark; also a file of a former epoch, and a file that is no database."""
    project = history.copy(tmp_path / "project")
    project.spark = None
    database = project.root / DATABASE
    database.unlink()
    for content in (b"", b"something else"):
        assert project.update(3).epochs == ()
        assert database_difference(project.root, project.epoch) is None
        database.unlink()
        database.write_bytes(content)
    project.updater().vacuum()
    assert database_difference(project.root, project.epoch) is None


def test_what_it_shows_stays_as_long_as_the_epoch(project: Project) -> None:
    """An update died before it replaced the file; a vacuum replaces it first, and keeps the files of the former one."""
    project.warehouse["retain"] = "1h"
    project.declare()
    project.clock = at(1)
    project.land("1.csv", csv(row("a", 0.5, 1.5), row("b", 0.5, 4)))
    project.update(1)
    project.land("2.csv", csv(row("c", 1.5, 5)))
    for slot in (2, 3, 4):
        project.clock = at(slot)
        with pytest.raises(StoppedError):
            project.update(slot, observer=stop_at(Point.EPOCH_WRITTEN))
        with attached(project.root) as former:
            rows = len(project.live(number=slot - 2))
            assert former.execute("SELECT max(number) FROM w._epochs").fetchall() == [(slot - 2,)]
            project.clock = at(slot) + 59 * MINUTE
            project.updater().vacuum()
            assert former.execute("SELECT count(*) FROM w.a").fetchall() == [(rows,)]
        assert database_difference(project.root, project.epoch) is None
        assert project.numbers == [slot - 2, slot - 1]
    project.clock = at(6)
    project.updater().vacuum()
    with attached(project.root) as newest:
        assert newest.execute("SELECT k FROM w.a").fetchall() == [("c",)]
