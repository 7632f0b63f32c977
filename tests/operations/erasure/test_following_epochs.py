"""An epoch records what was erased if it erased, and no later epoch repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import ANCHOR, Project, at, csv
from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.records import Epoch, Erased, Loaded
from warehouse.ingest.files import LandingFile
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path


def test_an_epoch_at_the_same_window_time_erased_nothing(tmp_path: Path) -> None:
    """It is a changed copy of the epoch before, without that epoch's erasure."""
    project = Project(tmp_path / "project", None)
    project.land("1.csv", csv())
    epoch = Epoch(
        number=0, window_time=at(1), slot=1, previous_slot=0, anchor=ANCHOR, update_interval=HOUR, committed_at=0,
        catalog_digest="", tables=(), files=(Loaded("a", (LandingFile("1.csv", 6, 0),)),), erased=Erased("a", 1, ()),
    )  # fmt: skip
    project.root.mkdir()
    write_record(epoch_path(project.root, 0), epoch)
    made = project.updater().reload(str(project.directory / "landing/a/1.csv"))
    assert (made.number, made.cause, made.erased) == (1, "reload", None)
    assert project.epoch == made
