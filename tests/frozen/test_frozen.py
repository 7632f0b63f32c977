"""Warehouses that earlier builds wrote are opened, checked, updated, rolled back and migrated."""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.frozen.story import answers, land_future
from tests.operations.projects import Verbs, at
from warehouse.catalog.load import load_catalog
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.journal import epoch_numbers, newest_epoch
from warehouse.epochs.known import known_files
from warehouse.operations.context import WriteContext
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.publishing.database import replace_database_if_needed
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
ARCHIVES = sorted(path.with_suffix("").with_suffix("") for path in HERE.glob("*/*.tar.xz"))
LOCAL = [path for path in ARCHIVES if path.name != "store"]


MANY = [path for path in LOCAL if path.name.endswith("build")]
"""Those with many updates or views, which take longer."""
QUICK: list[Any] = [path for path in LOCAL if path not in MANY]


def named(path: Path) -> str:
    """Return the commit and the name of an archive."""
    return f"{path.parent.name}-{path.name}"


@dataclass
class Frozen:
    """A warehouse of an earlier build, and the answers that the build expects of it."""

    directory: Path
    expected: dict[str, Any]
    clock: int
    spark: SparkSession | None = None

    def updater(self) -> Verbs:
        """Return an updater for the warehouse."""

        def session(_: int) -> SparkSession:
            assert self.spark is not None
            return self.spark

        return Verbs(WriteContext(load_catalog(self.directory), session, lambda: self.clock))

    @property
    def root(self) -> Path:
        """Return where the tables are."""
        return load_catalog(self.directory).root

    def update(self, hour: int) -> tuple[str, ...]:
        """Move the windows to an hour; return the messages."""
        report = self.updater().update(UpdateOptions(at=at(hour)))
        self.clock += HOUR
        return (*report.warnings, *(text for epoch in report.epochs for text in epoch.warnings))

    def faults(self) -> list[str]:
        """Return the faults that `check` finds."""
        return [f"{finding.subject}: {finding.message}" for finding in check(self.root).findings if finding.severity == "fault"]

    def loaded(self) -> set[tuple[str, str]]:
        """Return the stream and path of each loaded landing file."""
        files = known_files(self.root, newest_epoch(self.root))
        return {(stream, path) for stream, entry in files.items() for path in entry.loaded}

    def copy(self, directory: Path) -> Frozen:
        """Return the same warehouse elsewhere."""
        shutil.copytree(self.directory, directory)
        twin = replace(self, directory=directory)
        replace_database_if_needed(twin.root, newest_epoch(twin.root))
        return twin


def thawed(path: Path, directory: Path, spark: SparkSession | None = None) -> Frozen:
    """Unpack an archive."""
    with tarfile.open(f"{path}.tar.xz") as packed:
        packed.extractall(directory, filter="data")
    expected = json.loads(path.with_suffix(".json").read_text())
    return Frozen(directory, expected, expected["clock"], spark)


@pytest.mark.parametrize("path", LOCAL, ids=named)
def test_it_is_opened_and_checked(path: Path, tmp_path: Path) -> None:
    """Every epoch gives its recorded answers, the check finds nothing, and every record and all loaded files can be read."""
    frozen = thawed(path, tmp_path / "project")
    assert answers(frozen.directory) == frozen.expected["now"]
    for window_time, expected in frozen.expected["as_of"].items():
        assert answers(frozen.directory, int(window_time)) == expected
    assert epoch_numbers(frozen.root) == frozen.expected["epochs"]
    replace_database_if_needed(frozen.root, newest_epoch(frozen.root))  # its views name files by the place where it was made
    assert frozen.faults() == []
    files = known_files(frozen.root, newest_epoch(frozen.root))
    assert {file for stream in files.values() for file in stream.loaded}


@pytest.mark.parametrize("path", QUICK + [pytest.param(path, marks=pytest.mark.long) for path in MANY], ids=named)
def test_it_is_moved_on_and_taken_back(path: Path, tmp_path: Path, spark: SparkSession) -> None:
    """An update loads the new files, with the rows that the earlier build would load, and rebuilds no view.

    Going back undoes just that.
    """
    frozen = thawed(path, tmp_path / "project", spark)
    hour = frozen.expected["hour"] + 1
    land_future(frozen.directory, hour)
    before = frozen.loaded()
    messages = frozen.update(hour)
    assert [text for text in messages if "is rebuilt" in text] == []
    added = frozen.loaded() - before
    assert (f"{hour:02d}.csv" in {path for _, path in added}, before <= frozen.loaded()) == (True, True)
    assert answers(frozen.directory) == frozen.expected["after"][0]
    assert frozen.faults() == []
    report = frozen.updater().rollback(frozen.expected["newest"])
    assert {(entry.stream, entry.path) for entry in report.forgotten} == added
    assert frozen.loaded() == before
    frozen.update(hour + 1)
    assert frozen.faults() == []


@pytest.mark.long
@pytest.mark.parametrize("path", LOCAL, ids=named)
def test_it_lives_on(path: Path, tmp_path: Path, spark: SparkSession) -> None:
    """All updates to come, then back and on, and another layout: no row is missed.

    Back is to the last epoch of the other build, or to the oldest that `retain` has left.
    """
    frozen = thawed(path, tmp_path / "project", spark)
    hour = frozen.expected["hour"]
    for expected in frozen.expected["after"]:
        hour += 1
        land_future(frozen.directory, hour)
        frozen.update(hour)
        assert answers(frozen.directory) == expected
        assert frozen.faults() == []
    twin = frozen.copy(tmp_path / "twin")
    frozen.updater().rollback(max(frozen.expected["newest"], epoch_numbers(frozen.root)[0]))
    for project in (frozen, twin):
        project.update(hour + 1)
    taken_back, gone_on = answers(frozen.directory), answers(twin.directory)
    for table in load_catalog(frozen.directory).streams:
        assert taken_back[table.name] == gone_on[table.name]
    assert frozen.faults() == []
    before = answers(twin.directory)
    declared = twin.directory / "warehouse.toml"
    declared.write_text(declared.read_text().replace('"grid" = [4, 1]', '"grid" = [3, 2]'))  # what the file says is changed there
    twin.updater().migrate("a", MigrationRequest(layout=LayoutSpec(technique="rebuild", grid=(3, 2))))
    assert answers(twin.directory) == before
    twin.update(hour + 2)
    assert twin.faults() == []
