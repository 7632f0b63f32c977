"""Tables that outsiders changed while no update ran: adopted, ignored, or stopped until the change is taken back.

Each kind of change is made to copies of one warehouse with a past; what is judged is the content, never the operation's name.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.checking.check import check
from warehouse.cli.main import run
from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.steps.foreign import foreign_changes
from warehouse.storage.entries import entry_path
from warehouse.storage.replay import replay

from .outsiders import CHANGES, HARMLESS, REMOVED, split
from .projects import Project, csv, row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWS = ("counts", "once", "named")


@pytest.fixture
def idle(history: Project, tmp_path: Path) -> Project:
    """A copy that needs no Spark."""
    copy = history.copy(tmp_path / "project")
    copy.spark = None
    return copy


def table_of(project: Project, name: str = "a") -> Path:
    """Return where a table is."""
    state = project.epoch.table(name)
    assert state is not None
    return project.root / state.path


def faults(project: Project) -> list[str]:
    """Return the faults that `check` finds."""
    return [f"{finding.code}: {finding.message}" for finding in check(project.root).faults]


def rows_of(project: Project, name: str) -> list[str]:
    """Return the user's columns of the live rows: a rebuilt view has other system columns."""
    system = ("sub_index", "exp_block")
    return sorted(
        str({key: value for key, value in record.items() if key[0] != "_" and key not in system}) for record in project.live(name)
    )


@pytest.mark.parametrize("name", [*HARMLESS, "split"])
def test_what_changes_no_row_is_adopted(idle: Project, name: str) -> None:
    """`check` notes it before; afterwards the newest epoch names the version, reports it, and every check passes."""
    before = {state.name: idle.live(state.name) for state in idle.epoch.tables}
    number = idle.epoch.number
    (split if name == "split" else HARMLESS[name])(table_of(idle))
    changed = bool(foreign_changes(idle.root, idle.epoch))
    assert not faults(idle)
    idle.updater().repair()
    assert idle.epoch.number == number + changed
    if changed:
        assert (idle.epoch.cause, len(idle.epoch.foreign)) == ("adopt", 1)
        assert "from outside" in idle.epoch.warnings[0]
        assert idle.epoch.foreign[0].became == ("adopted" if name == "split" else "passed")
    state = idle.epoch.table("a")
    assert state is not None
    assert state.version == DeltaTable(str(table_of(idle))).version()
    assert {name: idle.live(name) for name in before} == before
    assert not faults(idle)
    assert not foreign_changes(idle.root, idle.epoch)


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_rows_is_told_and_taken_back(idle: Project, name: str) -> None:
    """The dry run reports it and writes nothing; afterwards the table has its rows, and every check passes."""
    before = {state.name: idle.live(state.name) for state in idle.epoch.tables}
    table = table_of(idle)
    CHANGES[name](table)
    if name != "lying optimize":
        assert any("foreign_commit" in fault and "repair" not in fault for fault in faults(idle))
    log = sorted(entry.name for entry in (table / "_delta_log").iterdir())
    reversals = idle.updater().undo_foreign("a", dry_run=True)
    assert [reversal.how for reversal in reversals] == ["removed" if name in REMOVED else "followed"]
    assert sorted(entry.name for entry in (table / "_delta_log").iterdir()) == log
    assert idle.updater().undo_foreign("b") == ()
    assert idle.updater().undo_foreign("a") == reversals
    state = idle.epoch.table("a")
    assert state is not None
    assert state.version == DeltaTable(str(table)).version()
    assert {name: idle.live(name) for name in before} == before
    assert not faults(idle)
    assert idle.updater().undo_foreign() == ()


@pytest.mark.parametrize("changes", [True, False], ids=["says that rows changed", "says that none did"])
def test_a_file_with_narrower_bounds_is_taken_back(idle: Project, *, changes: bool) -> None:
    """The bytes are the same, but readers that prune by the bounds would not find its rows."""
    table = table_of(idle)
    state = idle.epoch.table("a")
    assert state is not None
    add = next(add for add in replay(table, state.version).files.values() if '"x' in str(add["stats"]))
    bounds = json.loads(str(add["stats"]))
    narrow = {**bounds, **{name: {**bounds[name], "k": "a"} for name in ("minValues", "maxValues")}}
    action = {**add, "stats": json.dumps(narrow), "dataChange": changes}
    entry_path(table, state.version + 1).write_text(json.dumps({"add": action}) + "\n")
    assert foreign_changes(idle.root, idle.epoch)["tables/a"].kind == "layout"
    idle.updater().repair()
    assert [record.became for record in idle.epoch.foreign] == ["reversed"]
    newest = idle.epoch.table("a")
    assert newest is not None
    assert json.loads(str(replay(table, newest.version).files[str(unquote(str(add["path"])))]["stats"])) == bounds
    assert not faults(idle)


def test_what_lands_while_rows_are_compared_is_not_taken_back(idle: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows were not compared: the reversal is refused."""
    table = table_of(idle)
    split(table)

    def proven(*_: object) -> tuple[bool, str, str]:
        CHANGES["append"](table)
        return True, "", "not to be relied on"

    rows = DeltaTable(str(table)).to_pyarrow_table().num_rows
    monkeypatch.setattr("warehouse.steps.foreign.prove", proven)
    with pytest.raises(ForeignChangeError):
        idle.updater().repair()
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 2 * rows


def test_an_epochs_version_is_never_taken_back(idle: Project) -> None:
    """No version up to the newest epoch's changes, whatever is above it."""
    table = table_of(idle)
    state = idle.epoch.table("a")
    assert state is not None
    entries = {number: entry_path(table, number).read_bytes() for number in range(state.version + 1)}
    for change in (CHANGES["delete"], CHANGES["torn"]):
        change(table)
    assert [reversal.how for reversal in idle.updater().undo_foreign("a")] == ["removed"]
    assert entries == {number: entry_path(table, number).read_bytes() for number in entries}
    assert DeltaTable(str(table)).version() == state.version


def test_files_that_a_foreign_vacuum_deleted_are_named(idle: Project) -> None:
    """They cannot come back: nothing is written, and `check` names them too."""
    table = table_of(idle)
    CHANGES["overwrite"](table)
    DeltaTable(str(table)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    version = DeltaTable(str(table)).version()
    with pytest.raises(MissingPartError, match=r"a VACUUM from outside must have deleted them: sub_index="):
        idle.updater().undo_foreign("a")
    assert DeltaTable(str(table)).version() == version
    assert any(fault.startswith("file_missing") for fault in faults(idle))


def to_nine(project: Project) -> None:
    """Commit nothing until version 9, which an epoch names: the next commit is foreign and makes a checkpoint."""
    table = table_of(project)
    while DeltaTable(str(table)).version() < 9:
        HARMLESS["empty"](table)
    project.updater().repair()


@pytest.mark.parametrize("name", ["delete", "append", "overwrite"])
def test_a_checkpoint_whose_commit_somebody_removed_never_counts(
    history: Project, followed: Project, tmp_path: Path, name: str
) -> None:
    """A removed foreign commit at a version divisible by ten leaves its checkpoint: readers would read it as ours."""
    project = history.copy(tmp_path / "project")
    to_nine(project)
    before = project.live()
    table = table_of(project)
    CHANGES[name](table)
    DeltaTable(str(table)).create_checkpoint()
    assert (table / f"_delta_log/{10:020d}.checkpoint.parquet").exists()
    entry_path(table, 10).unlink()
    assert any("checkpoint_above" in fault for fault in faults(project))
    assert project.live() == before
    project.land("4.csv", csv(row("n", 3.5, 7)))
    project.update(4)
    assert not faults(project)
    assert keys(project) == keys(followed)


def keys(project: Project) -> dict[str, list[str]]:
    """Return the user's rows of the tables and views."""
    return {name: rows_of(project, name) for name in ("a", "b", *VIEWS)}


def test_a_checkpoint_that_the_commits_contradict_is_found_and_removed(idle: Project) -> None:
    """`check` replays the commits and compares; `check --repair` trusts the commits, since all exist."""
    to_nine(idle)
    table = table_of(idle)
    CHANGES["delete"](table)
    DeltaTable(str(table)).create_checkpoint()
    entry_path(table, 10).unlink()
    info = {"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}}
    entry_path(table, 10).write_text(json.dumps(info) + "\n")
    number = 10
    assert len(list((table / "_delta_log").glob(f"{number:020d}.checkpoint*"))) == 1
    _pin(idle, number)
    assert any(fault.startswith("checkpoint_differs") for fault in faults(idle))
    done = idle.updater().repair()
    assert any("which is not what the commits lead to" in line for line in done)
    assert not faults(idle)


def _pin(project: Project, version: int) -> None:
    """Write an epoch that names the version, as an earlier build did without comparing rows."""
    import dataclasses  # noqa: PLC0415 - one use

    from warehouse.epochs.journal import epoch_path, write_record  # noqa: PLC0415 - same
    from warehouse.epochs.records import ForeignCommits  # noqa: PLC0415 - same

    epoch = project.epoch
    tables = tuple(dataclasses.replace(table, version=version) if table.name == "a" else table for table in epoch.tables)
    foreign = (ForeignCommits("tables/a", version, version, ("WRITE",), "passed"),)
    write_record(
        epoch_path(project.root, epoch.number + 1),
        dataclasses.replace(epoch, number=epoch.number + 1, tables=tables, files=(), foreign=foreign, cause="adopt"),
    )


# --- updates afterwards ---


MOVING = ["delete", "optimize", "lying optimize"]
"""The quick ones; the others are long."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in MOVING else pytest.mark.long)
        for name in (*HARMLESS, *CHANGES)
    ],
)
def test_an_update_goes_on_after_the_command_of_its_message(
    history: Project, followed: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The update reports that the table stands still, with the command; after the command everything is as if undisturbed."""
    project = history.copy(tmp_path / "project")
    {**HARMLESS, **CHANGES}[name](table_of(project))
    project.land("4.csv", csv(row("n", 3.5, 7)))
    if name in CHANGES:
        report = project.update(4)
        assert [table for table, why in report.stopped if "repair --undo-foreign a" in why] == ["a"]
        assert keys(project)["b"] == keys(followed)["b"]
        _run(project, capsys, "repair", "--undo-foreign", "a")
    report = project.update(4)
    assert (report.stopped, report.failed_views) == ((), ())
    assert keys(project) == keys(followed)
    assert [record["k"] for record in project.deferred()] == [record["k"] for record in followed.deferred()]
    assert not faults(project)


def _run(project: Project, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["-C", str(project.directory), *arguments, "-o", "json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def _other_table(table: Path) -> None:
    """Return another table with as many commits."""
    rows, version = DeltaTable(str(table)).to_pyarrow_table(), DeltaTable(str(table)).version()
    shutil.rmtree(table)
    for _ in range(version + 1):
        write_deltalake(str(table), rows, mode="append")


def _longer_table(table: Path) -> None:
    """Return another table with more commits."""
    _other_table(table)
    write_deltalake(str(table), DeltaTable(str(table)).to_pyarrow_table(), mode="append")


def _older_copy(table: Path) -> None:
    """Return the table as it was an epoch before, as in yesterday's copy."""
    entry_path(table, DeltaTable(str(table)).version()).unlink()


REPLACED = {"other": _other_table, "longer": _longer_table, "older": _older_copy, "gone": shutil.rmtree}


@pytest.mark.parametrize("name", REPLACED)
def test_another_log_in_place_of_a_table_is_told_and_never_built_upon(idle: Project, name: str) -> None:
    """`repair --undo-foreign` cannot repair it, and writes nothing; `check` and verbs that need the table name it too."""
    table = table_of(idle)
    REPLACED[name](table)
    log = sorted(path.name for path in (table / "_delta_log").glob("*"))
    assert {path: change.kind for path, change in foreign_changes(idle.root, idle.epoch).items()} == {"tables/a": "replaced"}
    assert any(fault.startswith("log: ") for fault in faults(idle))
    for dry_run in (True, False):
        with pytest.raises(MissingPartError, match=r"replaced by another one .*`stream-wh restore DIR --replace`"):
            idle.updater().undo_foreign("a", dry_run=dry_run)
    with pytest.raises((ForeignChangeError, MissingPartError), match=r"[Rr]estore"):
        idle.updater().rollback(1)
    assert sorted(path.name for path in (table / "_delta_log").glob("*")) == log


@pytest.mark.parametrize("name", ["longer", "gone"])
def test_a_table_that_was_replaced_stands_still_until_it_is_restored(
    history: Project, followed: Project, tmp_path: Path, name: str
) -> None:
    """The others move meanwhile; with its former directory back it continues, and no row is missing."""
    project = history.copy(tmp_path / "project")
    table = table_of(project)
    shutil.copytree(table, tmp_path / "kept")
    REPLACED[name](table)
    project.land("4.csv", csv(row("n", 3.5, 7)))
    report = project.update(4)
    assert [stopped_name for stopped_name, why in report.stopped if "Restore its directory from a copy" in why] == ["a"]
    assert sorted(view for view, _ in report.refused) == sorted(VIEWS)
    assert rows_of(project, "b") == rows_of(followed, "b")
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(tmp_path / "kept", table)
    report = project.update(4)
    assert (report.stopped, report.failed_views) == ((), ())
    assert keys(project) == keys(followed)
    assert not faults(project)


def test_a_verb_that_needs_the_table_says_what_to_do(idle: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A rollback writes to all tables; the command in its message works."""
    CHANGES["delete"](table_of(idle))
    with pytest.raises(ForeignChangeError, match=r'"tables/a" was changed.*commit 4 \(DELETE\)') as raised:
        idle.updater().rollback(1)
    command = str(raised.value).split("`")[1].split()
    assert command == ["stream-wh", "repair", "--undo-foreign", "a"]
    output = _run(idle, capsys, *command[1:], "--dry-run")
    assert output["done"][0]["how"] == "followed"
    _run(idle, capsys, *command[1:])
    assert not faults(idle)


def test_status_tells_of_foreign_commits(idle: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits to adopt, and commits that stop the table, with the command."""
    for name, word in (("vacuum", "change nothing"), ("delete", "repair --undo-foreign a")):
        {**HARMLESS, **CHANGES}[name](table_of(idle))
        assert run(["-C", str(idle.directory), "status"]) == 0
        assert word in capsys.readouterr().err


def test_what_sparks_own_maintenance_leaves_is_adopted(
    history: Project, followed: Project, spark: SparkSession, tmp_path: Path
) -> None:
    """A VACUUM of Spark that deletes nothing, then its OPTIMIZE over several files."""
    project = history.copy(tmp_path / "project")
    split(table_of(project))
    before = {state.name: project.live(state.name) for state in project.epoch.tables}
    spark.sql(f"VACUUM delta.`{table_of(project)}`")
    spark.sql(f"OPTIMIZE delta.`{table_of(project)}`")
    project.updater().repair()
    assert [record.path for record in project.epoch.foreign] == ["tables/a"]
    assert {name: project.live(name) for name in before} == before
    assert not faults(project)
    project.land("4.csv", csv(row("n", 3.5, 7)))
    project.update(4)
    assert keys(project) == keys(followed)
    assert not faults(project)
