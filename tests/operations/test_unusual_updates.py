"""First runs, times, records, outside changes, retention and changed declarations: unusual cases of an update."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse import Warehouse
from warehouse.catalog.load import load_catalog
from warehouse.epochs.journal import epoch_at, epoch_path, plan_path, read_epoch
from warehouse.epochs.points import Moment, Point
from warehouse.errors import (
    ChangedDeclarationError,
    EmptyFirstRunError,
    NoEpochError,
    RecordDamagedError,
    UnknownNameError,
    UpdateTimeError,
    UsageError,
)
from warehouse.ingest.landing import listed_files
from warehouse.operations.unneeded_files import GRACE
from warehouse.storage.entries import entry_path
from warehouse.time import DAY, HOUR

from .projects import Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from warehouse.ingest.files import LandingFile


def landed(project: Project, *lines: str, name: str = "1.csv", landing: str = "landing/a") -> Project:
    """Return the project with a file of these lines."""
    project.land(name, csv(*lines), landing=landing)
    return project


# --- first runs and times ---


def test_a_first_run_that_would_lose_every_row_is_refused(project: Project) -> None:
    """Nothing is written; ``allow_dead`` accepts the loss."""
    landed(project, row("a", 0.5, 2), row("b", 0.6, 3))
    with pytest.raises(EmptyFirstRunError, match="--from first --each"):
        project.update(10)
    assert project.numbers == []
    assert not (project.root / "tables").exists()
    project.update(10, allow_dead=True)
    assert (project.keys(), project.counts().dead) == ("", 2)


def test_a_history_is_replayed_one_epoch_a_slot(project: Project, tmp_path: Path) -> None:
    """``each`` from the earliest waiting row makes one epoch per slot, with the live rows of a single catch-up."""
    lines = [row("a", 1.5, 4), row("b", 2.5, 6), row("c", 3.5, 7.5), row("d", 4.2, 9)]
    landed(project, *lines)
    report = project.update(5, each=True, start="first")
    assert [epoch.slot for epoch in report.epochs] == [2, 3, 4, 5]
    assert [project.keys(number=number) for number in project.numbers] == ["a", "a b", "b c", "b c d"]
    other = landed(Project(tmp_path / "other", project.spark), *lines)
    other.update(5)
    assert other.keys() == project.keys()
    late = landed(Project(tmp_path / "late", project.spark), *lines)
    assert [epoch.slot for epoch in late.update(5, each=True, start=3.5).epochs] == [4, 5]
    with pytest.raises(UsageError, match="epochs already"):
        late.update(6, each=True, start="first")


def test_each_landing_directory_is_listed_once_for_an_epoch(
    project: Project, history: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many streams, views and steps ask for Spark; it may hold a million files."""
    listed: Counter[str] = Counter()

    def counted(landing: Path, pattern: str) -> Iterator[LandingFile]:
        listed[landing.name] += 1
        return listed_files(landing, pattern)

    monkeypatch.setattr("warehouse.planning.inputs.listed_files", counted)
    monkeypatch.setattr("warehouse.planning.inputs.list_landing", counted)
    landed(project, row("a", 0.5, 9))
    project.update(1)
    assert listed == {"a": 1}
    listed.clear()
    copy = history.copy(tmp_path / "copy")
    copy.land("4.csv", csv(row("new", 3.2, 7)))
    copy.update(4)
    assert len(listed) > 1
    assert set(listed.values()) == {1}
    listed.clear()
    copy.update(6, each=True)
    assert set(listed.values()) == {2}


def test_a_stream_declared_later_is_built_at_the_same_window_time(project: Project) -> None:
    """Its table is a new epoch at the same time; if all its rows were dead, only ``allow_dead`` makes it."""
    landed(project, row("a", 0.5, 4))
    project.update(2)
    project.streams["b"] = stream(landing="landing/b")
    project.declare()
    landed(project, row("old", -3.5, -1), row("new", 0.2, 3), landing="landing/b")
    assert project.update(2).epochs[0].window_time == at(2)
    assert (project.keys("b"), project.keys("a")) == ("new", "a")
    assert project.counts("b").late == 0
    assert project.update(2).epochs == ()
    project.streams["c"] = stream(landing="landing/c")
    project.declare()
    landed(project, row("dead", 0.2, 1), landing="landing/c")
    with pytest.raises(EmptyFirstRunError, match="--allow-dead"):
        project.update(3)
    assert project.update(3, allow_dead=True).epochs[0].slot == 3
    assert project.keys("c") == ""


def test_times_that_cannot_be_meant_are_refused(project: Project) -> None:
    """Before the anchor, or more than an interval ahead of the clock, unless allowed; times off the grid round down."""
    landed(project, row("a", 0.5, 4))
    with pytest.raises(UpdateTimeError, match="before the anchor"):
        project.update(-1)
    project.clock = at(1.5)
    with pytest.raises(UpdateTimeError, match="--future"):
        project.update(3)
    assert project.update(1.9).epochs[0].window_time == at(1)
    assert project.update(1.2).epochs == ()
    assert project.update(3, future=True).epochs[0].window_time == at(3)
    with pytest.raises(UsageError, match="--each"):
        project.update(3, start="first")


# --- records ---


def test_a_damaged_plan_is_made_anew_unless_a_table_has_moved(project: Project) -> None:
    """An unused plan is replaced; a damaged plan on which a table depends is an error that names the file."""
    landed(project, row("a", 0.5, 4))
    with pytest.raises(StoppedError):
        project.update(1, observer=stop_at(Point.PLAN_WRITTEN))
    plan = plan_path(project.root, 0)
    plan.write_bytes(plan.read_bytes()[:100])
    project.update(1)
    assert project.keys() == "a"
    landed(project, row("b", 1.5, 4), name="2.csv")
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.STEP_COMMITTED, 0))
    plan = plan_path(project.root, 1)
    whole = plan.read_bytes()
    plan.write_bytes(whole.replace(b'"slot":2', b'"slot":3', 1))
    with pytest.raises(RecordDamagedError, match="checksum"):
        project.update(2)
    assert project.keys() == "a"
    plan.write_bytes(whole)
    project.update(2)
    assert project.keys() == "a b"
    record = epoch_path(project.root, 0)
    record.write_bytes(record.read_bytes()[:-40])
    with pytest.raises(RecordDamagedError, match="restore"):
        project.update(3)


def test_a_plan_is_finished_with_the_declarations_and_the_clock_it_holds(project: Project) -> None:
    """Changes of ``warehouse.toml`` since apply to the update after it."""
    project.change(max_ahead="1h")
    project.clock = at(1)
    landed(project, row("a", 0.5, 4), row("ahead", 2.5, 4))
    with pytest.raises(StoppedError):
        project.update(1, observer=stop_at(Point.PLAN_WRITTEN))
    project.change(expires="b + INTERVAL 1 MINUTE", over_lifetime="reject", max_ahead="9d")
    project.clock = at(3)
    report = project.update(1)
    assert [len(report.finished), len(report.epochs)] == [1, 0]
    assert project.keys() == "a"
    assert [record["reason"] for record in project.rejected()] == ["too_far_ahead"]


def test_commits_whose_files_did_not_survive_are_undone_and_made_again(project: Project) -> None:
    """After a power loss a commit may name files that are missing or cut: no epoch names it, so it is run again.

    The commit stays in the log, one that follows takes it back, and the next one has the rows.
    """
    landed(project, row("a", 0.5, 4), "short")
    project.update(1)
    for damage in ("missing", "cut"):
        slot = project.epoch.slot + 1
        before = DeltaTable(str(project.root / "tables/a")).version()
        landed(project, row(damage, slot - 0.5, slot + 3), name=f"{damage}.csv")

        def observe(moment: Moment, damage: str = damage) -> None:
            if moment.point == Point.STEPS_DONE:
                state = project.epoch.table("a")
                assert state is not None
                log = json.loads(entry_path(project.root / state.path, state.version + 1).read_text().splitlines()[-1])
                file = project.root / state.path / log["add"]["path"]
                file.unlink() if damage == "missing" else file.write_bytes(file.read_bytes()[:-9])
                raise StoppedError

        with pytest.raises(StoppedError):
            project.update(slot, observer=observe)
        project.update(slot)
        assert damage in project.keys().split()
        assert DeltaTable(str(project.root / "tables/a")).version() == before + 3


# --- changes from outside ---


def test_a_table_changed_from_outside_stands_still_before_anything_is_written(project: Project) -> None:
    """The update names the commit; readers keep the table's rows; without the commit it goes on."""
    landed(project, row("a", 0.5, 4))
    project.update(1)
    state = project.epoch.table("a")
    assert state is not None
    table = project.root / state.path
    foreign = DeltaTable(str(table)).to_pyarrow_table()
    write_deltalake(str(table), foreign, mode="append")
    landed(project, row("b", 1.5, 4), name="2.csv")
    ((name, why),) = project.update(2).stopped
    assert (name, f"commit {state.version + 1} " in why) == ("a", True)
    assert (project.numbers, project.keys()) == ([0, 1], "a")
    entry_path(table, state.version + 1).unlink()
    project.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    project.update(2)
    assert project.keys() == "a b"


# --- retention ---


def test_space_comes_back_when_epochs_fall_out_of_retain(project: Project, set_limits: Callable[..., object]) -> None:
    """Superseded epochs stay readable for ``retain``, then their files are deleted; loaded files stay known for ever."""
    set_limits(past_records=2)
    project.warehouse["retain"] = "3h"
    project.change(layout={"technique": "rebuild", "grid": [1, 1]})
    expected = {}
    for slot in range(1, 8):
        landed(project, row(f"k{slot}", slot - 0.5, slot + 3), name=f"{slot}.csv")
        project.clock = at(slot)
        project.update(slot)
        expected[slot - 1] = project.keys()
        for number in project.numbers:
            assert project.keys(number=number) == expected[number], "a readable epoch is readable in full"
    assert project.numbers == [3, 4, 5, 6]
    files = {path.name for path in (project.root / "tables/a").glob("sub_index=*/*/*.parquet")}
    named = {
        path.rsplit("/", 1)[1]
        for number in project.numbers
        for path in DeltaTable(str(project.root / "tables/a"), version=number + 1).file_uris()
    }
    assert files == named
    with pytest.raises(NoEpochError, match="retain"):
        epoch_at(project.root, at(2))
    project.land("2.csv", csv(row("k2", 7.5, 9)), mtime=at(7))
    project.clock = at(8)
    assert [file.path for file in project.update(8).landing[0].changed] == ["2.csv"]
    assert "k2" not in project.keys().split()


def test_logs_lose_what_no_readable_epoch_needs(project: Project, set_limits: Callable[..., object]) -> None:
    """Updates alone keep a log as long as readable epochs, from the checkpoint below the oldest epoch on."""
    set_limits(checkpoint_interval=3)
    project.warehouse["retain"] = "3h"
    project.declare()
    for slot in range(1, 12):
        landed(project, row(f"k{slot}", slot - 0.5, slot + 3), name=f"{slot}.csv")
        project.clock = at(slot)
        project.update(slot)
        for number in project.numbers:
            assert project.keys(number=number)
    log = project.root / "tables/a/_delta_log"
    state = read_epoch(project.root, project.numbers[0]).table("a")
    assert state is not None
    first = min(int(path.stem) for path in log.glob("*.json"))
    assert 0 < state.version - first < 3


def test_vacuum_removes_leftovers_and_nothing_that_an_epoch_names(project: Project) -> None:
    """Old files of failed writes are deleted; a dry run only counts; a dropped table's directory is deleted."""
    project.streams["b"] = stream(landing="landing/b")
    project.declare()
    landed(project, row("a", 0.5, 4))
    project.update(1)
    young = project.land("data/tables/a/sub_index=1/exp_block=0/part-young.parquet", b"PAR1", landing=".")
    project.land("data/tables/a/sub_index=1/exp_block=0/part-old.parquet", b"PAR1", landing=".", mtime=at(0))
    project.clock = young.stat().st_mtime_ns // 1000 + GRACE // 2
    updater = project.updater()
    assert updater.vacuum(dry_run=True).files == 1
    assert updater.vacuum().files == 1
    assert young.exists()
    assert updater.vacuum().files == 0
    assert project.keys() == "a"
    with pytest.raises(UsageError, match="still declared"):
        updater.drop("b")
    del project.streams["b"]
    project.declare()
    with pytest.raises(UnknownNameError):
        project.updater().drop("nothing")
    project.updater().drop("b")
    assert project.epoch.table("b") is None
    project.clock += 8 * DAY
    project.updater().vacuum()
    assert not (project.root / "tables/b").exists()
    assert project.keys() == "a"


def test_a_table_that_was_dropped_and_is_declared_again_loads_its_files(project: Project) -> None:
    """After its files are deleted the name is free; files in the landing directory are new then."""
    landed(project, row("a", 0.5, 9))
    project.land("1.csv", csv(row("b", 0.5, 40)), landing="landing/b")
    project.streams["b"] = stream(landing="landing/b", max_lifetime="40h")
    project.declare()
    project.update(1)
    declaration = project.streams.pop("b")
    project.declare()
    project.updater().drop("b")
    assert project.update(1).epochs == ()
    project.clock += 8 * DAY
    project.updater().vacuum()
    project.streams["b"] = declaration
    project.declare()
    project.update(2)
    assert (project.keys("b"), project.keys("a")) == ("b", "a")
    with Warehouse.open(project.directory) as warehouse:
        assert warehouse.check().faults == ()


def test_raising_retain_keeps_the_logs_of_existing_tables_longer(project: Project) -> None:
    """Their properties are set by the next update that moves the window, in a commit of its own."""
    landed(project, row("a", 0.5, 4))
    project.update(1)
    project.warehouse["retain"] = "60d"
    project.declare()
    project.update(2)
    table = DeltaTable(str(project.root / "tables/a"))
    assert table.metadata().configuration["delta.logRetentionDuration"] == f"interval {62 * 86_400} seconds"
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    landed(project, row("b", 2.5, 5), name="2.csv")
    project.update(3)
    assert project.keys() == "a b"


# --- declarations ---


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"search_key": ["k", "b"]}, "search_key"),
        ({"layout": {"grid": [1, 2]}}, "grid"),
        ({"layout": {"technique": "rebuild"}}, "technique"),
        ({"columns": {"k": "bigint", "b": "timestamp", "e": "timestamp"}}, "columns.k"),
    ],
)
def test_a_changed_declaration_is_refused_with_both_values(
    tmp_path: Path, changes: dict[str, object], found: str
) -> None:
    """Settings on which stored rows depend cannot change; Spark is not started to find out."""
    project = Project(tmp_path / "project", None)
    project.update(1)
    project.change(**changes)
    with pytest.raises(ChangedDeclarationError, match=found):
        project.update(2)
    assert project.numbers == [0]


def test_what_only_judges_incoming_rows_changes_freely(project: Project) -> None:
    """Expiry, lifetimes, retention and options apply to rows loaded from then on; the layout stays."""
    landed(project, row("a", 0.5, 4))
    project.update(1)
    before = project.epoch.table("a")
    project.warehouse["retain"] = "1d"
    project.change(expires="timestampadd(MINUTE, 90, b)", max_lifetime="9h", over_lifetime="clamp", layout={"seal": False})
    landed(project, row("b", 1.5, 9), name="2.csv")
    report = project.update(2)
    assert any("expires" in warning for warning in report.warnings)
    after = project.epoch.table("a")
    assert before is not None
    assert after is not None
    assert (after.layout.periods, after.layout.rows, after.layout.seal) == (4, before.layout.rows, False)
    assert project.keys() == "a b"
    project.update(3)
    assert project.keys() == "a"


def test_a_copied_root_works(project: Project, tmp_path: Path) -> None:
    """Records hold no absolute path: a copy is read and updated like the original."""
    landed(project, row("a", 0.5, 4))
    project.update(1)
    copy = project.copy(tmp_path / "elsewhere")
    shutil.rmtree(project.directory)
    assert copy.keys() == "a"
    landed(copy, row("b", 1.5, 4), name="2.csv")
    copy.update(2)
    assert copy.keys() == "a b"
    assert load_catalog(copy.directory).root == copy.root
    assert copy.epoch.committed_at - at(0) > HOUR


# --- texts ---


def test_keys_with_characters_that_end_lines_elsewhere(project: Project) -> None:
    """U+0085, U+2028 and U+2029 are characters of a key: commits, statistics and the live table have them."""
    keys = ["a\x85b", "a\u2028b", "a\u2029b", "\u2027" * 40]
    landed(project, *(row(key, 0.5, 4) for key in keys))
    project.update(1)
    landed(project, *(row(key, 1.5, 5) for key in keys), name="2.csv")
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.STEPS_DONE))
    assert not project.update(2).left_out
    assert sorted(record["k"] for record in project.live()) == sorted(2 * keys)
    with Warehouse.open(project.directory) as warehouse:
        for key in keys:
            assert len(warehouse.probe("a", [key], now=at(2)).all()) == 2
