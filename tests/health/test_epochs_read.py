"""A verdict reads each epoch's record once, and only those that a threshold needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at
from warehouse.advice import update_history
from warehouse.catalog.load import load_catalog
from warehouse.epochs.journal import epoch_path, read_epoch, write_record
from warehouse.operations.health import health_facts
from warehouse.serving import Reader
from warehouse.time import MINUTE

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.health import Facts

EPOCHS = 40


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Forty epochs, an hour apart, that were committed a minute after their window time."""
    project = Project(tmp_path_factory.mktemp("health") / "project", None, warehouse={"retain": "30d"})
    project.clock = at(1) + MINUTE
    project.update(1)
    first = project.epoch
    for number in range(1, EPOCHS):
        moved = {"number": number, "slot": first.slot + number, "previous_slot": first.slot + number - 1}
        times = {"window_time": at(1 + number), "committed_at": at(1 + number) + MINUTE}
        write_record(epoch_path(project.root, number), replace(first, **moved, **times))
    return project


def read(project: Project, monkeypatch: pytest.MonkeyPatch, *, layouts: bool) -> tuple[Facts, Counter[int]]:
    """Collect the facts, and count how often each older epoch was read."""
    reads: Counter[int] = Counter()

    def watched(root: Path, number: int) -> Epoch:
        reads[number] += 1
        return read_epoch(root, number)

    monkeypatch.setattr(update_history, "read_epoch", watched)
    with Reader.open(project.root) as reader:
        facts = health_facts(load_catalog(project.directory), reader, list, now=at(EPOCHS) + MINUTE, layouts=layouts)
    return facts, reads


def test_without_layouts_those_of_a_day_are_read(written: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrivals of a day are in the newest 24 epochs; the epoch before tells whether they are a first build."""
    facts, reads = read(written, monkeypatch, layouts=False)
    assert reads == Counter(range(EPOCHS - 25, EPOCHS - 1))
    assert facts.tables[0].day.updates == 24
    assert not facts.replayed


def test_with_layouts_each_is_read_once(written: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signs that a layout no longer fits are looked for in all epochs."""
    facts, reads = read(written, monkeypatch, layouts=True)
    assert reads == Counter(range(EPOCHS - 1))
    assert facts.tables[0].day.updates == 24


def test_a_replay_of_the_past_is_one_at_every_commit(written: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all epochs of a day lag far behind, older epochs are read until one does not lag."""
    project = written.copy(tmp_path / "project")
    for number in range(5, EPOCHS):
        epoch = read_epoch(project.root, number)
        epoch_path(project.root, number).unlink()
        write_record(epoch_path(project.root, number), replace(epoch, committed_at=epoch.committed_at + 10**15))
    facts, reads = read(project, monkeypatch, layouts=False)
    assert reads == Counter(range(4, EPOCHS - 1))
    assert not facts.replayed
