"""A backup is a whole warehouse of one epoch, whatever goes on beside it; restoring brings it back and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.frozen.story import answers, land_future
from tests.frozen.test_frozen import HERE, Frozen, thawed
from warehouse.epochs.journal import newest_epoch, record_path, write_record
from warehouse.epochs.known import DIRECTORY, keep_ledger, known_files, write_ledger
from warehouse.errors import BackupError
from warehouse.objects.path import ObjectPath
from warehouse.operations.backup import back_up, read_backup, verify
from warehouse.operations.vacuum import retire, sweep, trim_logs
from warehouse.planning.inputs import stream_inputs
from warehouse.project import Warehouse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = ("norebuild", "past", "unfinished", "wave")


@pytest.fixture(params=NAMES)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    """A warehouse that has been through much."""
    return thawed(HERE / "61b4f80" / request.param, tmp_path / "project")


@pytest.fixture
def small(tmp_path: Path) -> Frozen:
    """A small one."""
    return thawed(HERE / "61b4f80" / "wave", tmp_path / "project")


def restored(backup: Path, directory: Path, frozen: Frozen) -> Frozen:
    """Restore a backup into a new project."""
    Warehouse.restore(directory, backup)
    return replace(frozen, directory=directory)


def waiting(frozen: Frozen) -> set[tuple[str, str]]:
    """Return the landing files that an update would load."""
    catalog = Warehouse.open(frozen.directory).catalog
    inputs, _ = stream_inputs(catalog, newest_epoch(frozen.root), {}, frozen.clock)
    return {(given.stream.name, file.path) for given in inputs for group in given.groups for file in group.files}


def test_it_is_brought_back_whole(frozen: Frozen, tmp_path: Path) -> None:
    """All answers, what is known of landing files, what waits: as in the warehouse; `check` passes on both."""
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
    """It loads exactly what was not loaded, with the rows of the warehouse that was never lost."""
    frozen = thawed(HERE / "61b4f80" / name, tmp_path / "project", spark)
    back_up(frozen.root, frozen.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", frozen)
    (frozen.directory / "landing").rename(again.directory / "landing")
    hour = frozen.expected["hour"] + 1
    land_future(again.directory, hour)
    again.update(hour)
    assert answers(again.directory) == frozen.expected["after"][0]
    assert again.faults() == []


def test_what_goes_on_beside_it(small: Frozen, tmp_path: Path) -> None:
    """New epochs, retired ones, files that vacuums delete at any moment: it is of one epoch that was readable to the end."""
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
    """At any moment; it is not restored, and the next run makes it whole."""

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
    """A directory that is not empty, a root that is there, a root in a store, a backup with a damaged or missing file."""
    configuration, target = small.directory / "warehouse.toml", tmp_path / "backup"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(BackupError, match="is not empty"):
        back_up(small.root, configuration, tmp_path / "mine", now=1)
    with pytest.raises(BackupError, match="inside the warehouse"):
        back_up(small.root, configuration, small.root / "backup", now=1)
    with pytest.raises(BackupError, match="object store"):
        back_up(ObjectPath("s3://bucket/house"), configuration, target, now=1)
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


def test_shards_of_the_ledger_are_in_it(small: Frozen, tmp_path: Path) -> None:
    """So that nothing is loaded twice, however long ago it was."""
    newest = newest_epoch(small.root)
    assert newest is not None
    write_ledger(small.root, newest)
    back_up(small.root, small.directory / "warehouse.toml", tmp_path / "backup", now=1)
    again = restored(tmp_path / "backup", tmp_path / "again", small)
    assert any((again.root / DIRECTORY).iterdir())
    assert again.loaded() == small.loaded() != set()
