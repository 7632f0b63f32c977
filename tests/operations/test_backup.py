"""A backup is a whole warehouse of one epoch, whatever happens meanwhile; a restore brings back exactly that."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.frozen.story import answers, land_future
from tests.frozen.test_frozen import HERE, Frozen, thawed
from warehouse.epochs.journal import encode_record, newest_epoch, numbers, record_path, write_record
from warehouse.epochs.known import DIRECTORY, keep_ledger, known_files, write_ledger
from warehouse.epochs.view_findings import ViewFinding, last_verified, note_verified, open_findings, record_finding
from warehouse.errors import BackupError, StorageFailedError
from warehouse.objects.path import ObjectPath
from warehouse.operations.backup import back_up, read_backup, verify
from warehouse.operations.unneeded_files import retire, sweep, trim_logs
from warehouse.planning.inputs import stream_inputs
from warehouse.project import Warehouse
from warehouse.storage.checkpoints import checkpoint
from warehouse.storage.entries import entry_path
from warehouse.storage.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NAMES = ("norebuild", "past", "unfinished", "wave")


@pytest.fixture(params=NAMES)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    """Return a warehouse with a long history."""
    return thawed(HERE / "61b4f80" / request.param, tmp_path / "project")


@pytest.fixture
def small(tmp_path: Path) -> Frozen:
    """Return a small warehouse."""
    return thawed(HERE / "61b4f80" / "wave", tmp_path / "project")


def restored(backup: Path, directory: Path, frozen: Frozen) -> Frozen:
    """Restore a backup into a new project."""
    Warehouse.restore(directory, backup)
    return replace(frozen, directory=directory)


def waiting(frozen: Frozen) -> set[tuple[str, str]]:
    """Return the landing files that an update would load."""
    catalog = Warehouse.open(frozen.directory).catalog
    inputs, _ = stream_inputs(catalog, newest_epoch(frozen.root), {}, frozen.clock)
    return {(incoming.stream.name, file.path) for incoming in inputs for group in incoming.groups for file in group.files}


def test_it_is_brought_back_whole(frozen: Frozen, tmp_path: Path) -> None:
    """All answers, the known landing files, and the waiting rows are as in the warehouse; `check` passes on both."""
    made = back_up(frozen.root, frozen.directory / "warehouse.toml", tmp_path / "backup", now=1)
    assert made.linked > 0
    assert verify(tmp_path / "backup") == read_backup(tmp_path / "backup") == made
    again = restored(tmp_path / "backup", tmp_path / "again", frozen)
    assert answers(again.directory) == frozen.expected["now"]
    newest = newest_epoch(frozen.root)
    assert (newest_epoch(again.root), again.loaded()) == (newest, frozen.loaded())
    land_future(frozen.directory, frozen.expected["hour"] + 1)
    (frozen.directory / "landing").rename(again.directory / "landing")
    assert again.faults() == []
    (again.directory / "landing").rename(frozen.directory / "landing")
    assert frozen.faults() == [] or frozen.faults()[0].startswith("warehouse.duckdb")
    expected = waiting(frozen)
    (frozen.directory / "landing").rename(again.directory / "landing")
    assert waiting(again) == expected != set()


@pytest.mark.parametrize("name", ["rebuild", "unfinished"])
def test_an_update_goes_on_from_it(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """It loads exactly the files that were not loaded, with the same rows as the original warehouse."""
    frozen = thawed(HERE / "61b4f80" / name, tmp_path / "project", spark)
    back_up(frozen.root, frozen.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", frozen)
    (frozen.directory / "landing").rename(again.directory / "landing")
    hour = frozen.expected["hour"] + 1
    land_future(again.directory, hour)
    again.update(hour)
    assert answers(again.directory) == frozen.expected["after"][0]
    assert again.faults() == []


def test_live_tables_are_made_again(small: Frozen, tmp_path: Path) -> None:
    """A backup has none, and `check` misses none after a restore."""
    declaration = small.directory / "warehouse.toml"
    declaration.write_text(declaration.read_text().replace("[warehouse]", '[warehouse]\npublish = "delta"', 1))
    back_up(small.root, declaration, tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", small)
    live = Warehouse.open(again.directory).catalog.published
    assert live
    assert {path.name for path in (again.root / "live").iterdir()} >= set(live)
    (small.directory / "landing").rename(again.directory / "landing")
    assert again.faults() == []


def test_what_goes_on_beside_it(small: Frozen, tmp_path: Path) -> None:
    """With new epochs, retired epochs and files that vacuums delete at any moment, it has one epoch, readable to the end."""
    root, moments = small.root, 0

    def move_on() -> None:
        last = newest_epoch(root)
        assert last is not None
        write_record(record_path(root, last.number + 1, "epoch"), replace(last, number=last.number + 1, files=(), removed=()))
        retire(root, retain=0, now=last.committed_at + 1)
        sweep(root, now=10**18)
        trim_logs(root, ())
        write_ledger(root, replace(last, number=last.number + 1))
        keep_ledger(root, replace(last, number=last.number + 1), last.number + 1)

    def beside(step: int) -> Callable[[str], None]:
        count = 0

        def after(_: str) -> None:
            nonlocal count, moments
            count += 1
            if count == step:
                moments += 1
                move_on()

        return after

    for step in (1, 4, 9, 30, 55):
        target = tmp_path / f"backup{step}"
        made = back_up(root, small.directory / "warehouse.toml", target, now=step, after=beside(step))
        newest = newest_epoch(root)
        assert newest is not None
        assert made.epoch == newest.number
        again = restored(target, tmp_path / f"again{step}", small)
        assert (answers(again.directory), again.loaded()) == (small.expected["now"], small.loaded())
        assert again.faults() == []
    assert moments == 5


def test_one_that_was_stopped_is_none(small: Frozen, tmp_path: Path) -> None:
    """At any moment; it cannot be restored, and the next run completes it."""

    class StoppedError(Exception):
        pass

    target, configuration = tmp_path / "backup", small.directory / "warehouse.toml"
    for step in (1, 7, 40):
        count = 0

        def stop(_: str, step: int = step) -> None:
            nonlocal count
            count += 1
            if count == step:
                raise StoppedError

        with pytest.raises(StoppedError):
            back_up(small.root, configuration, target, now=1, after=stop)
        with pytest.raises(BackupError, match="was stopped before it was whole"):
            Warehouse.restore(tmp_path / "again", target)
    back_up(small.root, configuration, target, now=1, copy=True)
    assert answers(restored(target, tmp_path / "again", small).directory) == small.expected["now"]


def test_nothing_is_overwritten(small: Frozen, tmp_path: Path) -> None:
    """A directory that is not empty, an existing root, a root in a store, a backup with a damaged or missing file."""
    configuration, target = small.directory / "warehouse.toml", tmp_path / "backup"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(BackupError, match="is not empty"):
        back_up(small.root, configuration, tmp_path / "mine", now=1)
    with pytest.raises(BackupError, match="inside the warehouse"):
        back_up(small.root, configuration, small.root / "backup", now=1)
    with pytest.raises(BackupError, match="object store"):
        back_up(ObjectPath("s3://bucket/house"), configuration, target, now=1)
    with pytest.raises(BackupError, match=r"no archive; name it without \.zip"):
        back_up(small.root, configuration, tmp_path / "backup.zip", now=1)
    made = back_up(small.root, configuration, target, now=1, copy=True)
    with pytest.raises(BackupError, match="holds a backup already"):
        back_up(small.root, configuration, target, now=1)
    with pytest.raises(BackupError, match="give --replace"):
        Warehouse.restore(small.directory, target)
    Warehouse.restore(small.directory, target, replace=True)
    (aside,) = small.directory.glob("data.before-*")
    assert (answers(small.directory), known_files(aside, newest_epoch(aside)).keys()) == (small.expected["now"], {"a", "b"})
    victim = target / next(file.path for file in made.files if file.path.endswith(".parquet") and "/tables/" in file.path)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    for damage in (lambda: None, victim.unlink):
        damage()
        with pytest.raises(BackupError, match=r"1 file\(s\) are missing or damaged, first root/"):
            Warehouse.restore(tmp_path / "again", target)
        assert not (tmp_path / "again" / "data").exists()


def flipped(path: Path) -> None:
    """Flip a bit in the middle; a link's other name keeps its bytes."""
    content = bytearray(path.read_bytes())
    content[-2 if path.suffix == ".json" else len(content) // 2] ^= 1  # not every bit of a commit shows
    path.unlink()
    path.write_bytes(content)


def some_file(frozen: Frozen, kind: str) -> Path:
    """Return a file that a backup includes."""
    newest = newest_epoch(frozen.root)
    assert newest is not None
    state = newest.table("a")
    assert state is not None
    table = frozen.root / state.path
    match kind:
        case "record":
            past = newest.number - 1 in numbers(frozen.root, "past")
            return record_path(frozen.root, newest.number - 1, "past" if past else "epoch")
        case "shard":
            return min((frozen.root / DIRECTORY).iterdir())
        case "commit":
            return entry_path(table, state.version)
        case "zero-row file":
            return frozen.root / state.schema_file
        case _:
            return table / max(replay(table, state.version).files)


KINDS = ("data file", "record", "shard", "commit", "zero-row file")


@pytest.mark.parametrize("damage", [flipped, lambda path: path.unlink()], ids=["flipped", "missing"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_not_backed_up(small: Frozen, tmp_path: Path, kind: str, damage: Callable[[Path], None]) -> None:
    """A damaged or missing file is named after at most one more try, and there is no backup."""
    newest = newest_epoch(small.root)
    assert newest is not None
    write_ledger(small.root, replace(newest, number=newest.number - 2))
    victim = some_file(small, kind)
    damage(victim)
    copied: list[str] = []
    with pytest.raises(BackupError, match=victim.name):
        back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1, after=copied.append)
    assert max(Counter(copied).values(), default=0) <= 2
    with pytest.raises(BackupError, match="was stopped"):
        read_backup(tmp_path / "backup")


def test_checkpoints_that_are_torn_or_incomplete_are_left_out(small: Frozen, tmp_path: Path) -> None:
    """A crash or another writer left them; the restored warehouse is opened from the commits."""
    newest = newest_epoch(small.root)
    assert newest is not None
    for state in newest.tables:
        for path, version in ((state.path, state.version), *((side.path, side.version) for side in state.sides)):
            if version < 0:
                continue
            name = entry_path(small.root / path, version).with_suffix(".checkpoint")
            checkpoint(small.root / path, version)
            whole = name.with_suffix(".checkpoint.parquet")
            content = whole.read_bytes()
            whole.write_bytes(content[:-9])
            name.with_suffix(".checkpoint.0000000001.0000000002.parquet").write_bytes(content)
            (whole.parent / "_last_checkpoint").unlink()
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", small)
    assert answers(again.directory) == small.expected["now"]
    assert again.faults() == []


@pytest.mark.parametrize("there", ["nothing", "empty", "warehouse"])
def test_a_root_that_is_a_link_stays_one(small: Frozen, tmp_path: Path, there: str) -> None:
    """The link's target is replaced, on the target's disk."""
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    disk = tmp_path / "disk"
    disk.mkdir()
    if there == "warehouse":
        small.root.rename(disk / "data")
    elif there == "empty":
        (disk / "data").mkdir()
    directory = small.directory if there == "warehouse" else tmp_path / "again"
    directory.mkdir(exist_ok=True)
    (directory / "data").symlink_to(disk / "data")
    Warehouse.restore(directory, tmp_path / "backup", replace=there == "warehouse")
    assert (directory / "data").is_symlink()
    assert answers(directory) == small.expected["now"]
    assert sorted(path.name.partition("-")[0] for path in disk.iterdir()) == ["data", *["data.before"] * (there == "warehouse")]
    inside = tmp_path / "inside"
    inside.symlink_to(disk / "data" / "tables")
    with pytest.raises(BackupError, match="inside the warehouse"):
        back_up(directory / "data", directory / "warehouse.toml", inside / "backup", now=1)


@pytest.mark.parametrize("step", ["copyfile", "rename", "interrupted"])
@pytest.mark.parametrize("there", [True, False], ids=["replace", "new"])
def test_a_restore_that_fails_leaves_the_project_as_it_was(
    small: Frozen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, there: bool
) -> None:
    """No ``warehouse.toml`` and no part of a root are left; the former root is where it was."""
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    directory = small.directory if there else tmp_path / "again"
    before = {path for path in tmp_path.rglob("*") if not path.name.startswith(".update")}
    named = Path.rename

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there")

    def rename(path: Path, target: Path) -> Path:
        if not path.name.endswith(".restoring"):
            return named(path, target)
        if step == "interrupted":
            raise KeyboardInterrupt
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    with monkeypatch.context() as patch:
        if step == "copyfile":
            patch.setattr(shutil, "copyfile", full)
        else:
            patch.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt if step == "interrupted" else StorageFailedError):
            Warehouse.restore(directory, tmp_path / "backup", replace=there)
    after = {path for path in tmp_path.rglob("*") if not path.name.startswith(".update")}
    assert after - {directory} == before - {directory}
    Warehouse.restore(directory, tmp_path / "backup", replace=there)
    assert answers(directory) == small.expected["now"]


@pytest.mark.parametrize("path", ["root/../../stolen", "/stolen", "../stolen"])
def test_a_backup_that_names_files_elsewhere_is_refused(small: Frozen, tmp_path: Path, path: str) -> None:
    """Nothing is written outside the project, whoever made the backup."""
    made = back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    record = tmp_path / "backup" / "backup.json"
    record.write_bytes(encode_record(replace(made, files=(*made.files, replace(made.files[0], path=path)))))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BackupError, match="stolen"):
        Warehouse.restore(tmp_path / "again", tmp_path / "backup")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_stops_a_backup(small: Frozen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backup fails with an error, and the next run completes it."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        with pytest.raises(StorageFailedError, match="No space left"):
            back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1, copy=True)
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1, copy=True)
    verify(tmp_path / "backup")


def test_a_view_that_was_found_to_differ_is_told_of_after_a_restore(small: Frozen, tmp_path: Path) -> None:
    """The backup has the results and times of verifications of its views; nothing of a view that its epoch lacks."""
    newest = newest_epoch(small.root)
    assert newest is not None
    view = next(state.name for state in newest.tables if state.kind == "view")
    for name in (view, "dropped"):
        record_finding(small.root, ViewFinding(name, newest.number, 5, "2 rows differ"))
    note_verified(small.root, 7)
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", small)
    assert open_findings(again.root, newest) == open_findings(small.root, newest) != ()
    assert last_verified(again.root) == 7
    assert len(list((again.root / "findings").iterdir())) == 2


def test_shards_of_the_ledger_are_in_it(small: Frozen, tmp_path: Path) -> None:
    """No file is loaded twice, however long ago it was loaded."""
    newest = newest_epoch(small.root)
    assert newest is not None
    write_ledger(small.root, newest)
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", small)
    assert any((again.root / DIRECTORY).iterdir())
    assert again.loaded() == small.loaded() != set()
