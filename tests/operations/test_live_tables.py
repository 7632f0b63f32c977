"""Every verb that writes an epoch moves live tables to it: streams of both techniques, keyed views, relations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.operations.migrate import MigrationRequest
from warehouse.publishing.live.log import LIVE, newest_state
from warehouse.storage.fingerprint import has_sum
from warehouse.time import DAY, NEVER, to_micros

from .projects import Project, StoppedError, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TABLES = {"a", "b", "r", "counts", "once", "named"}


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project for one test, which publishes all tables."""
    project = history.copy(tmp_path / "project")
    project.warehouse["publish"] = "delta"
    project.declare()
    return project


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows in order: the user's columns, `_ts`, `_exp`."""
    system = ("_load_slot", "_exp_slot", "sub_index", "exp_block")
    shown = [sorted(name for name in record if name not in system and "_state" not in name) for record in rows]
    return sorted(repr([(name, record[name]) for name in names]) for record, names in zip(rows, shown, strict=True))


def raw(project: Project, name: str) -> list[dict[str, Any]]:
    """Return what delta-rs reads of a live table."""
    rows: list[dict[str, Any]] = DeltaTable(str(project.root / LIVE / name)).to_pyarrow_table().to_pylist()
    return rows


def answers(project: Project, tables: set[str] = TABLES, *, beside: frozenset[str] = frozenset()) -> None:
    """Check that every live table holds the live rows of the newest epoch, no other live table exists, and the check passes."""
    for name in tables:
        state = newest_state(project.root / LIVE / name)
        assert state is not None
        assert state.epoch == project.epoch.number, name
        assert comparable(raw(project, name)) == comparable(project.live(name)), name
        assert all(map(has_sum, state.files)), name  # shared files have their table's, pieces their own
    assert {path.name for path in (project.root / LIVE).iterdir()} == tables | beside
    assert check(project.root, published=tables).findings == ()


def test_every_verb_moves_live_tables(copy: Project) -> None:
    """An update without new files creates them; update, rollback, restate, migrate, reload and drop move them."""
    copy.update(3)
    answers(copy)
    copy.land("4.csv", csv(row("new", 3.2, 7), row("short", 3.5, 4.6)))
    copy.update(4)
    answers(copy)
    copy.updater().rollback(1)
    answers(copy)
    copy.update(5)
    answers(copy)
    copy.updater().restate("a", allow_lost=True)
    answers(copy)
    copy.change("a", layout={"grid": [1, 2]})
    copy.updater().migrate("a", MigrationRequest())
    answers(copy)
    copy.updater().reload("landing/b/2.csv")
    answers(copy)
    del copy.streams["b"]
    copy.declare()
    copy.update(6)
    answers(copy, TABLES - {"b"}, beside=frozenset("b"))  # it is published no more, and stays for `retain`
    copy.clock += 8 * DAY
    copy.updater().drop("b")
    answers(copy, TABLES - {"b"})
    copy.updater().vacuum()
    answers(copy, TABLES - {"b"})


def test_an_erased_key_is_in_no_file_of_a_live_table(copy: Project) -> None:
    """Nor in its log, nor in former versions; the proof reads them, and other keys stay."""
    copy.update(3)
    former = DeltaTable(str(copy.root / LIVE / "a"))
    outlook, receipt = copy.updater().erase("a", ["bad"])
    assert not outlook.nothing
    assert receipt is not None
    assert receipt.proof.traces == ()
    assert any(row["k"] == "bad" for row in copy.live("r"))
    answers(copy)
    for name in ("a", "counts", "once", "named"):
        table = copy.root / LIVE / name
        assert "bad" not in {record["k"] for path in table.glob("*.parquet") for record in _rows(path)}
        assert not any(b'"bad"' in path.read_bytes() for path in (table / "_delta_log").iterdir())
    assert copy.keys() == "w x x"
    with pytest.raises(Exception, match=r"(?i)not found|no such file"):
        former.to_pyarrow_table()


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - one use

    rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return rows


@pytest.mark.parametrize("point", [Point.EPOCH_WRITTEN, Point.LIVE_READY, Point.LIVE_MOVED])
def test_a_crash_is_made_good_by_the_next_verb(copy: Project, point: Point) -> None:
    """By any verb, here vacuum; before it, each table equals one of the two epochs."""
    copy.update(3)
    with pytest.raises(StoppedError):
        copy.update(4, observer=stop_at(point))
    assert copy.epoch.slot == 4
    for name in TABLES:
        state = newest_state(copy.root / LIVE / name)
        assert state is not None
        assert comparable(raw(copy, name)) == comparable(copy.live(name, state.epoch))
    copy.updater().vacuum()
    answers(copy)


def test_publishing_by_table(tmp_path: Path, spark: SparkSession) -> None:
    """A table's own key overrides the key of all tables; a live table that is switched off is deleted after `retain`."""
    streams = {"a": stream(publish="delta"), "b": stream(landing="landing/b")}
    project = Project(tmp_path / "project", spark, streams)
    project.land("1.csv", csv(row("x", 0.5, 4)))
    project.update(1)
    answers(project, {"a"})
    project.warehouse["publish"] = "delta"
    project.change("a", publish="off")
    project.clock += 8 * DAY
    project.update(2)
    answers(project, {"b"})


def test_archives_are_published_with_their_streams(tmp_path: Path, spark: SparkSession) -> None:
    """Their rows equal the archive's rows."""
    project = Project(tmp_path / "project", spark, {"a": stream(publish="delta", on_expiry="archive")})
    project.land("1.csv", csv(row("x", 0.5, 1.5), row("y", 0.5, 4)))
    for hour in (1, 2, 3):
        project.update(hour)
    answers(project, {"a", "a_archive"})
    assert [record["k"] for record in raw(project, "a_archive")] == ["x"]
    assert {to_micros(record["_exp"]) for record in raw(project, "a_archive")} == {NEVER}


def test_spark_with_delta_reads_it_and_says_of_which_epoch_it_is(copy: Project, spark: SparkSession) -> None:
    """Like any Delta table: without a version or a filter."""
    copy.update(4)
    for name in TABLES:
        path = str(copy.root / LIVE / name)
        rows = [record.asDict(recursive=True) for record in spark.read.format("delta").load(path).collect()]
        expected = raw(copy, name)
        assert {tuple(sorted(record)) for record in rows} == {tuple(sorted(record)) for record in expected}
        shown = [name for name in (expected[0] if expected else ()) if name not in ("_ts", "_exp", "b", "e", "c")]
        assert sorted(repr([record[name] for name in shown]) for record in rows) == sorted(
            repr([record[name] for name in shown]) for record in expected
        )
        names: dict[str, Any] = {}
        exec(Warehouse.open(copy.directory).connect("spark", name), names)  # noqa: S102 - that it can be executed is the point
        assert names["rows"].count() == len(expected)
        [last] = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()
        assert json.loads(last.userMetadata)["epoch"] == copy.epoch.number
