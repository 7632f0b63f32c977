"""Changes between a plan and its epoch: files appear and disappear, records and tables are damaged or foreign."""

from __future__ import annotations

import fcntl
import gzip
import json
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.epochs.journal import epoch_path, plan_path
from warehouse.epochs.lock import jvm_lock_path
from warehouse.epochs.points import Moment, Point
from warehouse.errors import (
    ConfigurationError,
    EmptyFirstRunError,
    LockHeldError,
    MissingPartError,
    UsageError,
)
from warehouse.storage.entries import entry_path

from .projects import Project, StoppedError, at, csv, row, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


def _table(project: Project, name: str = "a") -> tuple[Path, int]:
    """Return where a table is, and its version at the newest epoch."""
    state = project.epoch.table(name)
    assert state is not None
    return project.root / state.path, state.version


# --- files that come and go while an update is stopped ---


def test_a_file_that_the_batch_was_read_without_stays_out_of_the_steps_after_a_crash(project: Project) -> None:
    """A file that was missing when the rows were loaded, and is back when the update is finished, is not loaded in part."""
    path = project.land("away.csv", csv(row("away", 0.5, 4), row("waits", 1.5, 4), "short"))
    project.land("stays.csv", csv(row("stays", 0.5, 4), row("later", 1.5, 4), "small"))
    aside = project.directory / "aside.csv"

    def observe(moment: Moment) -> None:
        if moment.point == Point.PLAN_WRITTEN:
            path.rename(aside)
        if moment.point == Point.STEP_COMMITTED and moment.step == 1:
            aside.rename(path)
            raise StoppedError

    with pytest.raises(StoppedError):
        project.update(1, observer=observe)
    report = project.update(1)
    assert [entry.file.path for _, entry in report.left_out] == ["away.csv"]
    assert project.keys() == "stays"
    assert [record["k"] for record in project.deferred()] == ["later"]
    assert [record["raw"] for record in project.rejected()] == ["small"]


def test_a_file_counts_as_loaded_once_any_step_has_taken_its_rows(project: Project) -> None:
    """Its waiting rows are stored, no row is live: if it vanishes then, it counts as loaded, and its other rows are lost."""
    project.update(1)
    path = project.land("1.csv", csv(row("waits", 2.5, 4), "short"), mtime=at(1))
    plan = [Point.STEP_COMMITTED, 2]
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(*plan))
    assert DeltaTable(str(project.root / "deferred/a")).version() == 1
    path.write_text(csv(row("waits", 2.5, 4), row("more", 2.5, 4)))
    project.update(2)
    assert [file.path for entry in project.epoch.files for file in entry.loaded] == ["1.csv"]
    assert project.counts().lost == 1
    report = project.update(3)
    assert [file.path for file in report.landing[0].changed] == ["1.csv"]
    assert project.keys() == "waits"


def test_a_file_left_out_of_a_first_run_is_reported_once(project: Project) -> None:
    """However many epochs ``each`` makes."""
    project.change(format="json")
    project.land("1.json", f'{{"k":"a","b":"{text(0.5)}","e":"{text(4)}"}}')
    project.land("2.json.gz", gzip.compress(b"{}" * 1000)[:-9])
    report = project.update(3, each=True, start="first")
    assert [entry.file.path for _, entry in report.left_out] == ["2.json.gz"]
    assert [epoch.slot for epoch in report.epochs] == [1, 2, 3]


# --- damage ---


def test_a_commit_cut_short_by_a_power_loss_is_undone(project: Project) -> None:
    """A commit that is empty or no JSON counts for nothing: the step runs again."""
    project.land("1.csv", csv(row("a", 0.5, 4)))
    project.update(1)
    for slot, content in ((2, b""), (3, b'{"commitInfo":{"oper')):
        project.land(f"{slot}.csv", csv(row(f"b{slot}", slot - 0.5, 5.5)))
        with pytest.raises(StoppedError):
            project.update(slot, observer=stop_at(Point.STEPS_DONE))
        table, version = _table(project)
        entry_path(table, version + 1).write_bytes(content)
        project.update(slot)
        assert f"b{slot}" in project.keys().split()
        assert DeltaTable(str(table)).version() == version + 1


@pytest.mark.parametrize("lost", ["table", "log"])
def test_a_table_that_is_gone_stands_still_and_is_no_new_table(project: Project, lost: str) -> None:
    """An update never appends to a missing table, and its message says how to restore it."""
    project.land("1.csv", csv(row("a", 0.5, 4)))
    project.update(1)
    table, version = _table(project)
    if lost == "table":
        shutil.rmtree(table)
    else:
        entry_path(table, version).unlink()
    project.land("2.csv", csv(row("b", 1.5, 4)))
    ((name, why),) = project.update(2).stopped
    assert name == "a"
    assert "Restore its directory from a copy" in why
    assert not entry_path(table, version).exists()
    assert not entry_path(table, version + 1).exists()


def test_a_seal_whose_old_files_are_gone_fails_and_changes_nothing(project: Project) -> None:
    """Rows that must be rewritten but cannot be read stop the update; with the file back it continues."""
    project.land("1.csv", csv(row("a0", 0.5, 4.5)))
    project.update(1)
    table, _ = _table(project)
    (file,) = table.glob("sub_index=*/*/*.parquet")
    aside = project.directory / "aside.parquet"
    file.rename(aside)
    project.land("2.csv", csv(row("a1", 1.5, 4.5)))
    with pytest.raises(MissingPartError, match=file.name):
        project.update(2)
    assert project.numbers == [0]
    aside.rename(file)
    assert len(project.update(2).finished) == 1
    assert project.keys() == "a0 a1"
    assert project.counts().sealed == 1


def test_an_epoch_that_somebody_else_wrote_is_not_overwritten(project: Project) -> None:
    """The record's name is taken, so the second update fails with a transient error, and changes nothing."""
    project.land("1.csv", csv(row("a", 0.5, 4)))

    def observe(moment: Moment) -> None:
        if moment.point == Point.DURABLE:
            epoch_path(project.root, 0).write_text("taken")

    with pytest.raises(LockHeldError, match=r"00000\.epoch\.json"):
        project.update(1, observer=observe)
    assert epoch_path(project.root, 0).read_text() == "taken"
    assert [epoch.number for epoch in project.update(1).finished] == [0], "it is no whole record, so it counts as not written"
    assert project.keys() == "a"


# --- changes from outside ---


def _append(table: Path, _: SparkSession) -> None:
    write_deltalake(str(table), DeltaTable(str(table)).to_pyarrow_table(), mode="append")


def _spark_append(table: Path, spark: SparkSession) -> None:
    spark.read.format("delta").load(str(table)).write.format("delta").mode("append").save(str(table))


def _delete(table: Path, _: SparkSession) -> None:
    DeltaTable(str(table)).delete("k = 'a'")


@pytest.mark.parametrize("change", [_append, _spark_append, _delete], ids=lambda change: change.__name__)
def test_any_commit_from_outside_stops_the_table(project: Project, change: object) -> None:
    """The message names it, nothing is written, the epoch's rows are served; undone, also within one JVM, the table continues."""
    project.change(layout={"grid": [1, 1], "seal": False})
    for slot in (1, 2):  # two files in one partition
        project.land(f"{slot}.csv", csv(row("a", slot - 0.5, 4), row("b", slot - 0.5, 4)))
        project.update(slot)
    table, version = _table(project)
    before = project.live()
    change(table, project.spark)  # type: ignore[operator]
    slot = 3
    project.land("3.csv", csv(row("z", slot - 0.5, slot + 2)))
    ((name, why),) = project.update(slot).stopped
    assert (name, f"commit {version + 1} (" in why) == ("a", True)
    assert project.live() == before
    assert not entry_path(table, version + 2).exists()
    for path in (table / "_delta_log").glob(f"*{version + 1:020d}*"):
        path.unlink()
    assert project.update(slot).stopped == ()
    assert "z" in project.keys().split()
    state = project.epoch.table("a")
    assert state is not None
    assert DeltaTable(str(table)).version() == state.version > version


# --- declarations and tables that come and go ---


def test_an_expression_that_gives_no_timestamp_is_found_before_anything_is_written(project: Project) -> None:
    """It can be corrected and the update repeated: no plan contains it."""
    project.land("1.csv", csv(row("a", 0.5, 4)))
    project.update(1)
    project.change(expires="to_date(e)")
    project.land("2.csv", csv(row("b", 1.5, 4)))
    with pytest.raises(ConfigurationError, match="which gives date"):
        project.update(2)
    assert not plan_path(project.root, 1).exists()
    project.change(expires="e")
    project.update(2)
    assert project.keys() == "a b"
    project.streams["c"] = stream(landing="landing/c", arrival="k || 'x'")
    project.declare()
    project.land("1.csv", csv(row("c", 2.5, 5)), landing="landing/c")
    with pytest.raises(ConfigurationError, match="which gives string"):
        project.update(3, allow_dead=True)
    assert not plan_path(project.root, 2).exists()


def test_a_dropped_table_can_be_declared_again(project: Project) -> None:
    """While older epochs can still read its files it is refused before anything is written, then it is built."""
    project.warehouse["retain"] = "2h"
    project.streams["b"] = stream(landing="landing/b")
    project.declare()
    project.land("1.csv", csv(row("old", 0.5, 4.5)), landing="landing/b")
    project.clock = at(1)
    project.update(1)
    declaration = project.streams.pop("b")
    project.declare()
    project.update(1)
    project.updater().drop("b")
    project.streams["b"] = {**declaration, "search_key": ["k", "b"]}
    project.declare()
    with pytest.raises(UsageError, match="retain"):
        project.update(1)
    assert project.keys("b", number=0) == "old"
    project.clock = at(4)
    project.updater().vacuum()
    project.update(4)
    assert project.keys("b") == "old", "its file is loaded as if for the first time"
    project.clock = at(8)
    project.update(5)
    assert project.live("b") == []


def test_a_table_that_is_no_longer_declared_is_frozen(project: Project) -> None:
    """It stays readable, is reported as frozen, and continues when it is declared again."""
    project.streams["b"] = stream(landing="landing/b")
    project.declare()
    project.land("1.csv", csv(row("b", 0.5, 5)), landing="landing/b")
    project.update(1)
    declaration = project.streams.pop("b")
    project.declare()
    report = project.update(2)
    assert any("no longer declared" in warning for warning in report.warnings)
    frozen = project.epoch.table("b")
    assert frozen is not None
    assert not frozen.declared
    assert project.keys("b") == "b"
    project.streams["b"] = declaration
    project.declare()
    project.land("2.csv", csv(row("c", 2.5, 6)), landing="landing/b")
    project.update(3)
    assert project.keys("b") == "b c"
    state = project.epoch.table("b")
    assert state is not None
    assert state.declared


# --- many files ---


def test_a_first_run_looks_at_every_file_before_it_refuses(
    project: Project, set_limits: Callable[..., object]
) -> None:
    """Files beyond the first plan count, for possible live rows and for the start of a replay."""
    set_limits(files_per_plan=1)
    project.land("1.csv", csv(row("dead", 0.5, 1)))
    project.land("2.csv", csv(row("dead", 0.5, 2)))
    project.land("3.csv", csv(row("live", 3.5, 6)))
    report = project.update(4)
    assert len(report.epochs) == 3
    assert project.keys() == "live"
    other = Project(project.directory.parent / "other", project.spark)
    other.land("1.csv", csv(row("b", 2.5, 6)))
    other.land("2.csv", csv(row("a", 0.5, 3.5)))
    report = other.update(3, each=True)
    assert report.epochs[0].slot == 1
    assert other.keys() == "a b"
    empty = Project(project.directory.parent / "empty", project.spark)
    empty.land("1.csv", csv(row("dead", 0.5, 1)))
    empty.land("2.csv", csv(row("dead", 0.5, 2)))
    with pytest.raises(EmptyFirstRunError, match="2 dead"):
        empty.update(4)


def test_files_left_for_later_epochs_survive_a_reload(project: Project, set_limits: Callable[..., object]) -> None:
    """An update stopped between two epochs of one window time continues there, whatever epochs came in between."""
    set_limits(files_per_plan=1)
    project.land("1.csv", csv(row("a", 0.5, 4)))
    project.land("2.csv", csv(row("b", 0.6, 4)))
    with pytest.raises(StoppedError):
        project.update(1, observer=stop_at(Point.EPOCH_WRITTEN))
    project.land("1.csv", csv(row("c", 0.5, 4)), mtime=at(1))
    project.updater().reload("landing/a/1.csv")
    report = project.update(1)
    assert [[file.path for file in epoch.files[0].loaded] for epoch in report.epochs] == [["1.csv"], ["2.csv"]]
    assert (project.keys(), [epoch.counts[0].late for epoch in report.epochs]) == ("a b c", [0, 0])
    assert project.update(1).epochs == ()


# --- the lock of the Java process ---


def test_an_update_waits_for_the_java_process_that_a_dead_one_left(
    project: Project, set_limits: Callable[..., object]
) -> None:
    """It may commit until it releases its lock; a process that never does is named."""
    project.update(1)
    holder = project.root / ".update.holder.json"
    holder.write_text(json.dumps({"host": "elsewhere", "pid": 7, "since": "2024-01-01T00:00:00Z"}))
    import subprocess  # noqa: PLC0415 - one use
    import sys  # noqa: PLC0415 - one use

    script = "import fcntl,sys; f=open(sys.argv[1],'a'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.readline()"  # noqa: E501 - a script in one line
    with subprocess.Popen(
        [sys.executable, "-c", script, str(jvm_lock_path(project.root))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as orphan:
        assert orphan.stdout is not None
        assert orphan.stdin is not None
        assert orphan.stdout.readline() == "held\n"
        set_limits(orphan_seconds=0.2)
        with pytest.raises(LockHeldError, match="left behind by process 7 on elsewhere"):
            project.update(2)
        set_limits(orphan_seconds=60.0)
        waiting = threading.Thread(target=project.update, args=(2,))
        waiting.start()
        assert project.epoch.slot == 1
        orphan.communicate("go\n", timeout=60)
        waiting.join(timeout=60)
    assert project.epoch.slot == 2
    with jvm_lock_path(project.root).open("a") as stream_:
        fcntl.lockf(stream_, fcntl.LOCK_EX | fcntl.LOCK_NB)
