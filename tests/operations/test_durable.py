"""Files are synced before the log entry that names them, entries before the epoch; nothing of a failed sync is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from warehouse.epochs.points import Point
from warehouse.errors import NotDurableError
from warehouse.operations.migrate import MigrationRequest
from warehouse.storage.local_disk import watching
from warehouse.storage.store import store_of

from .disk import Disk, FailingDisk
from .histories import RELATION
from .projects import Project, StoppedError, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FIRST = csv(row("a0", 0.5, 4.5), row("x", 0.5, 1.5), row("w", 1.5, 3.5), row("bad", 0.5, "?"))
SECOND = csv(row("a1", 1.5, 4.5), row("w2", 2.5, 4), row("bad", 9e5, "?"), "short")
QUICK = 24
"""Of the syncs of an update that loads rows, one in so many fails in the quick run; `tests/soak` has others, without Spark."""


def test_the_order_holds_for_every_verb(history: Project, tmp_path: Path) -> None:
    """After a power loss at any moment, all files exist that a log entry or an epoch's record names."""
    project = history.copy(tmp_path / "project")
    disk = Disk(project.directory)
    seen: dict[str, int] = {}

    def judged(verb: str) -> None:
        assert disk.faults == [], verb
        assert disk.epochs > 0, verb
        for operation, count in disk.entries.items():
            seen[operation] = seen.get(operation, 0) + count
        disk.entries.clear()
        disk.epochs = 0

    with watching(disk):
        project.streams["c"] = stream(landing="landing/c")
        project.relations["names"] = {**RELATION, "landing": "landing/names"}
        project.views["most"] = {"sql": "SELECT DISTINCT c.k FROM c JOIN names ON c.k = names.k", "search_key": "k"}
        project.declare()
        project.land("1.csv", "k,c,name\nz,2023-01-01T00:00:00Z,Z\n", landing="landing/names")
        project.land("1.csv", csv(row("z", 3.5, 7), row("no", 3, "?"), row("w", 4.5, 7)), landing="landing/c")
        project.land("3.csv", csv(row("z", 3.5, 7)))
        project.update(4)
        judged("an update that creates tables of each kind")
        for declared in (project.streams, project.relations, project.views):
            declared.popitem()
        project.declare()
        project.updater().rollback(1)
        judged("rollback")
        project.updater().restate("a", since="first", allow_lost=True)
        judged("restate")
        project.change("a", layout={"technique": "rebuild"})
        project.updater().migrate("a", MigrationRequest())
        judged("migrate")
        project.updater().erase("a", ["x"])
        judged("erase")
        project.land("5.csv", csv(row("y", 4.5, 7)))
        with pytest.raises(StoppedError):
            project.update(5, observer=stop_at(Point.STEPS_DONE))
        project.update(5)
        judged("a resumed update")
    assert {"CREATE TABLE", "WRITE", "RESTORE"} <= seen.keys()


def test_a_disk_that_loses_names_is_noticed(tmp_path: Path) -> None:
    """The disk's model distinguishes unsynced files from files that were synced with their directories."""
    disk = Disk(tmp_path)
    with watching(disk):
        store_of(tmp_path / "one" / "two" / "file").write_exclusive(tmp_path / "one" / "two" / "file", b"content")
        assert disk.on(tmp_path / "one" / "two" / "file")
        (tmp_path / "one" / "bare").write_bytes(b"content")
        assert not disk.on(tmp_path / "one" / "bare")
        (tmp_path / "one" / "two" / "file").write_bytes(b"changed")
        assert not disk.on(tmp_path / "one" / "two" / "file")


@pytest.mark.parametrize("failing", range(4))
def test_a_name_that_is_not_durable_is_free_again(tmp_path: Path, failing: int) -> None:
    """A write that fails at any of its syncs leaves nothing, and can be repeated."""
    path = tmp_path / "new" / "deep" / "file"
    with watching(FailingDisk(failing)), pytest.raises(NotDurableError, match="the disk did not confirm"):
        store_of(path).write_exclusive(path, b"content")
    assert not path.exists()
    store_of(path).write_exclusive(path, b"content")
    assert path.read_bytes() == b"content"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("failing", range(2))
def test_what_was_to_be_replaced_is_whole(tmp_path: Path, failing: int) -> None:
    """After a failed sync the file has the former content or the new content, and no other file is left."""
    path = tmp_path / "file"
    path.write_bytes(b"former")
    with watching(FailingDisk(failing)), pytest.raises(NotDurableError):
        store_of(path).write_replacing(path, b"new")
    assert path.read_bytes() == (b"former", b"new")[failing]
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Project, Disk]:
    """A project after its first update, with files for the second, and the syncs that the disk saw; it has a view."""
    views = {"counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"}}
    project = Project(tmp_path_factory.mktemp("begun") / "project", spark, {"a": stream()}, views=dict(views))
    disk = Disk(project.directory)
    project.land("1.csv", FIRST)
    with watching(disk):
        project.update(1)
    project.land("2.csv", SECOND)
    return project, disk


@pytest.fixture(scope="module")
def begun(first: tuple[Project, Disk]) -> Project:
    """The project without the disk."""
    return first[0]


def test_the_order_holds_for_a_first_update(first: tuple[Project, Disk]) -> None:
    """No directory exists before it."""
    _, disk = first
    assert disk.faults == []
    assert disk.epochs == 1
    assert disk.entries.keys() == {"CREATE TABLE", "WRITE"}


@pytest.fixture(scope="module")
def undisturbed(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """The result of an undisturbed second update, and its number of syncs."""
    project = begun.copy(tmp_path_factory.mktemp("undisturbed") / "project")
    disk = FailingDisk()
    with watching(disk):
        project.update(2)
    assert {"short", "bad,"} & {record["raw"][:5].rstrip() for record in project.rejected()}
    return _picture(project), len(disk.syncs)


def _picture(project: Project) -> dict[str, Any]:
    return {**project.picture(), "view": sorted(map(repr, project.live("counts")))}


def _failing_at(project: Project, failing: int, expected: dict[str, Any]) -> str:
    """Let one sync of an update fail; the next update completes it. Returns the synced paths."""
    disk = FailingDisk(failing)
    with watching(disk), pytest.raises(NotDurableError, match="run again"):
        project.update(2)
    project.update(2)
    assert _picture(project) == expected, (failing, disk.syncs[failing])
    return disk.syncs[failing]


def test_after_a_failed_sync_the_next_update_makes_what_was_begun(
    begun: Project, undisturbed: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    """Nothing that the disk did not confirm is used: it is written again from its source (some syncs)."""
    expected, count = undisturbed
    for failing in range(0, count, QUICK):
        _failing_at(begun.copy(tmp_path / str(failing)), failing, expected)


@pytest.mark.long
def test_after_each_failed_sync_the_next_update_makes_what_was_begun(
    begun: Project, undisturbed: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    """The same for every sync of the update; files, directories, entries, records, and what other tools open."""
    expected, count = undisturbed
    names = [_failing_at(begun.copy(tmp_path / str(failing)), failing, expected) for failing in range(count)]
    print(f"{count} syncs, each failed once: {names}")  # noqa: T201 - the figure is for the reader of the run


@pytest.mark.long
def test_after_a_failed_sync_of_a_resumed_update_it_is_written_again(
    begun: Project, undisturbed: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    """A commit of an earlier process is synced again, and undone if that fails."""
    expected, _ = undisturbed
    stopped = begun.copy(tmp_path / "stopped")
    with pytest.raises(StoppedError):
        stopped.update(2, observer=stop_at(Point.STEPS_DONE))
    for failing in range(100):
        project = stopped.copy(tmp_path / str(failing))
        try:
            with watching(FailingDisk(failing)):
                project.update(2)
        except NotDurableError:
            project.update(2)
            assert _picture(project) == expected
        else:
            assert failing > 8
            print(f"{failing} syncs of a resumed update, each failed once")  # noqa: T201 - the figure is for the reader of the run
            return
