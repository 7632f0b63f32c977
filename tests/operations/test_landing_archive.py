"""Loaded landing files stay, are archived or are deleted, once no readable epoch may need them.

Epochs are recorded by hand, without tables: which files each loaded is all that counts::

    epoch     0      1      2
    loaded    1.csv  2.csv  ...
    readable  all, until `retain` (7 days) has passed since the next
"""

from __future__ import annotations

import errno
import os
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.catalog.load import load_catalog
from warehouse.epochs.journal import epoch_path, newest_epoch, write_record
from warehouse.epochs.records import Epoch, Loaded
from warehouse.ingest.files import LandingFile
from warehouse.ingest.landing import list_landing
from warehouse.operations.erasure.landing import landing_files
from warehouse.operations.landing_archive import archive_loaded
from warehouse.serving.keys import KeyColumn
from warehouse.steps.erased_keys import erased_keys
from warehouse.steps.relanding import ArchivedFiles
from warehouse.time import DAY, HOUR

from .projects import ANCHOR, LATER, Project, StoppedError, at, csv, row, stream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _land(project: Project, hour: int) -> LandingFile:
    path = project.land(f"{hour}.csv", csv(row(f"k{hour}", hour - 0.5, 9)), mtime=LATER - DAY)
    facts = path.stat()
    return LandingFile(path.name, facts.st_size, facts.st_mtime_ns)


def _record(project: Project, *loaded: LandingFile, gone: Sequence[str] = ()) -> None:
    """Write the epoch of an update that loaded these files, and found others missing."""
    last = newest_epoch(project.root)
    number = 0 if last is None else last.number + 1
    epoch = Epoch(
        number=number,
        window_time=at(number + 1),
        slot=number + 1,
        previous_slot=number,
        anchor=ANCHOR,
        update_interval=HOUR,
        committed_at=project.clock,
        catalog_digest="",
        tables=(),
        files=(Loaded("a", loaded=loaded, gone=tuple(gone)),),
    )
    write_record(epoch_path(project.root, number), epoch)


def _files(project: Project) -> list[str]:
    landing = project.directory / "landing"
    return sorted(path.relative_to(landing).as_posix() for path in landing.rglob("*") if path.is_file())


def _waiting(project: Project) -> int:
    (facts,) = project.updater().landing()
    return facts.waiting


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two epochs with one file each, in a project that moves files."""
    project = Project(tmp_path / "project", None, {"a": stream(after_load="move")})
    for hour in (1, 2):
        _record(project, _land(project, hour))
    return project


def test_a_file_goes_when_every_readable_epoch_has_its_rows(project: Project) -> None:
    """The first epoch's at once, the second's once the first can no longer be read; a dry run only counts."""
    assert project.updater().vacuum(dry_run=True).landing == 1
    assert _files(project) == ["a/1.csv", "a/2.csv"]
    assert project.updater().vacuum().landing == 1
    assert _files(project) == ["a/2.csv", "loaded/a/1.csv"]
    assert project.updater().vacuum().landing == 0
    project.clock += 8 * DAY
    _record(project, _land(project, 3), gone=["1.csv"])
    assert project.updater().vacuum().landing == 1
    assert _files(project) == ["a/3.csv", "loaded/a/1.csv", "loaded/a/2.csv"]


def test_where_many_epochs_are_readable_an_update_looks_now_and_then(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 32nd update looks; `vacuum` always does."""
    monkeypatch.setattr("warehouse.operations.landing_archive._MANY", 8)
    catalog = load_catalog(project.directory)
    assert archive_loaded(catalog, rarely=True, dry_run=True) == 1  # few are readable
    looked = []
    for number in range(2, 66):
        _record(project)
        looked += [number] if archive_loaded(catalog, rarely=True, dry_run=True) else []
    assert looked == [*range(2, 8), 32, 64]
    assert archive_loaded(catalog, dry_run=True) == 1


def test_files_stay_unless_one_says_otherwise(project: Project) -> None:
    """``keep`` is the default."""
    project.change(after_load=None)
    project.clock += 8 * DAY
    _record(project)
    assert project.updater().vacuum().landing == 0
    assert _files(project) == ["a/1.csv", "a/2.csv"]


def test_only_what_was_loaded_is_deleted(project: Project) -> None:
    """A file that changed afterwards stays until it is reloaded; an unloaded file stays too; a link is not followed."""
    project.change(after_load="delete")
    project.clock += 8 * DAY
    _record(project)
    landing = project.directory / "landing" / "a"
    (landing / "1.csv").write_text("other\n")
    _land(project, 3)
    assert project.updater().vacuum().landing == 1
    assert _files(project) == ["a/1.csv", "a/3.csv"]
    landed = _land(project, 1)
    (landing / "1.csv").rename(project.directory / "kept.csv")
    (landing / "1.csv").symlink_to(project.directory / "kept.csv")
    assert (landing / "1.csv").stat().st_mtime_ns == landed.mtime_ns
    assert project.updater().vacuum().landing == 0
    assert (project.directory / "kept.csv").exists()


def test_a_file_is_never_loaded_twice(project: Project) -> None:
    """It is known as loaded until an update has seen that it is missing; delivered afterwards, it is a new file."""
    assert _waiting(project) == 0
    project.updater().vacuum()
    assert _waiting(project) == 0
    _land(project, 1)
    assert _waiting(project) == 0
    (project.directory / "landing/a/1.csv").unlink()
    _record(project, gone=["1.csv"])
    _land(project, 1)
    assert _waiting(project) == 1


def test_a_file_that_is_to_be_reloaded_stays(project: Project) -> None:
    """It stays until it is loaded again."""
    project.updater().reload("1.csv")
    assert project.updater().vacuum().landing == 0
    assert _files(project) == ["a/1.csv", "a/2.csv"]


def test_a_move_to_another_file_system_stopped_half_way_is_finished(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any stop the file is in one place, or whole in both; then the landing file is removed."""

    def across(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    def stopped(*_: object, **__: object) -> None:
        raise StoppedError

    monkeypatch.setattr(os, "rename", across)
    catalog = load_catalog(project.directory)
    before = (project.directory / "landing/a/1.csv").stat()
    with monkeypatch.context() as context:
        context.setattr(os, "unlink", stopped)
        with pytest.raises(StoppedError):
            archive_loaded(catalog)
    assert _files(project) == ["a/1.csv", "a/2.csv", "loaded/a/1.csv"]
    archived = ArchivedFiles(catalog.sources[0], frozenset(list_landing(project.directory / "landing/a", "*")))
    assert archived.others() == [], "a file that is in both places is one file"
    assert archive_loaded(catalog) == 1
    assert _files(project) == ["a/2.csv", "loaded/a/1.csv"]
    after = (project.directory / "landing/loaded/a/1.csv").stat()
    assert (after.st_size, after.st_mtime_ns, after.st_mode) == (before.st_size, before.st_mtime_ns, before.st_mode)


def test_files_of_one_name_do_not_take_each_others_place(project: Project) -> None:
    """The second file gets a number; the archive may be any directory."""
    project.change(move_to="done/here")
    directory = project.directory / "done" / "here"
    directory.mkdir(parents=True)
    (directory / "1.csv").write_bytes((project.directory / "landing/a/1.csv").read_bytes())  # of another time
    project.updater().vacuum()
    assert sorted(path.name for path in directory.iterdir()) == ["1.csv", "1~1.csv"]
    assert "k1" in (directory / "1~1.csv").read_text()


def test_an_erasure_looks_into_files_that_were_put_aside(project: Project) -> None:
    """Archived files hold the key as well."""
    project.updater().vacuum()
    table: Any = SimpleNamespace(name="a", archive_of=None)
    paths = landing_files(load_catalog(project.directory), table, erased_keys([KeyColumn("k", "VARCHAR")], ["k1"]))
    assert [path.relative_to(project.directory).as_posix() for path in paths] == ["landing/loaded/a/1.csv"]


@pytest.mark.parametrize("way", ["delete", "move"])
def test_a_directory_swapped_for_a_link_leads_nowhere(tmp_path: Path, way: str) -> None:
    """The file behind the link is foreign, even if it has the loaded file's name, size and time."""
    project = Project(tmp_path / "project", None, {"a": stream(after_load=way)})
    landing, outside = project.directory / "landing/a", tmp_path / "outside"
    path = project.land("sub/1.csv", csv(row("k", 0.5, 9)), mtime=LATER - DAY)
    _record(project, LandingFile("sub/1.csv", path.stat().st_size, path.stat().st_mtime_ns))
    shutil.move(landing / "sub", outside)
    (landing / "sub").symlink_to(outside)
    assert project.updater().vacuum().landing == 0
    assert (outside / "1.csv").exists()


def test_a_hard_link_is_a_file_like_any_other(project: Project) -> None:
    """It is loaded and archived under its name: the file's other name stays, with its content."""
    project.change(after_load="delete")
    other = project.directory / "kept.csv"
    other.hardlink_to(project.directory / "landing/a/1.csv")
    assert project.updater().vacuum().landing == 1
    assert "k1" in other.read_text()
    (project.directory / "landing/a/3.csv").hardlink_to(other)
    assert _waiting(project) == 1


def test_put_away_files_are_found_by_what_they_were(project: Project) -> None:
    """By their former name, with a number if another file has it, by size and time, unless the stream has no such files."""
    directory = project.directory / "landing/loaded/a"
    project.updater().vacuum()
    first = LandingFile("1.csv", *_facts(directory / "1.csv"))
    (directory / "1.csv").rename(directory / "1~1.csv")
    (directory / "1.csv").write_text("an earlier one\n")
    (directory / "notes.txt").write_text("not of the stream\n")
    project.change(files="*.csv")
    (stream_of_a,) = load_catalog(project.directory).sources
    listed = frozenset(list_landing(stream_of_a.landing, "*"))
    archived = ArchivedFiles(stream_of_a, listed)
    assert archived.wanted("1.csv", LandingFile("1.csv", 1, 1)) is None
    assert archived.wanted("1.csv", first) == first
    assert [file.path for file in archived.others()] == ["1~1.csv"], "another file is wanted under the name"
    assert archived.back == {"1.csv": "1~1.csv", "1~1.csv": "1.csv"}
    other = ArchivedFiles(stream_of_a, listed | {LandingFile("1.csv", 5, 5)})
    assert other.wanted("1.csv", first, renamed=False) is None
    assert other.wanted("1.csv", first) == LandingFile("1~1.csv", first.size, first.mtime_ns)


def _facts(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
