"""A table's updates, read from epochs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from warehouse.advice.update_history import recent_epochs, update_history
from warehouse.epochs.journal import epoch_path
from warehouse.epochs.records import Partition, StepSeconds
from warehouse.layout import resolve
from warehouse.serving import Reader

from .places import STEP, counted, told

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch


@pytest.fixture
def epochs(tmp_path: Path) -> list[Epoch]:
    """Return eleven epochs of which each update of `names` took half a second."""
    return told(tmp_path, lambda _: counted(dead=3)).epochs


def test_runs_are_read_off_what_changed_in_the_partitions(epochs: list[Epoch]) -> None:
    """One run appended, one sealed with new rows, one new, one removed, one unchanged: three are written."""
    before = [Partition(1, 0, 1, 1, 10, 100, 3), Partition(2, 1, 3, 3, 60, 600, 5), Partition(3, 0, 1, 1, 7, 70, 2)]
    before.append(Partition(4, 1, 2, 2, 9, 90, 6))
    after = [Partition(1, 0, 2, 2, 25, 250, 3), Partition(2, 1, 1, 1, 70, 700, 5), Partition(5, 1, 1, 1, 4, 40, 6), before[3]]
    first, second = (
        replace(epoch, tables=tuple(replace(s, partitions=tuple(parts)) if s.name == "names" else s for s in epoch.tables))
        for epoch, parts in zip(epochs[4:6], (before, after), strict=True)
    )
    second = replace(second, counts=(counted(15, rewritten=60),))
    (update,) = update_history([first, second], "names", workers=1).updates
    assert (update.work.file, update.work.sub_index) == (3, 3)
    assert (update.work.row_written, update.work.row_read) == (15 + 70 + 4, 60)
    assert (update.work.arriving_row, update.work.landing_file, update.seconds) == (15, 1, 0.5)


def test_only_updates_of_today_s_layout_count(epochs: list[Epoch]) -> None:
    """The first build, epochs of an earlier layout, restatements and epochs after a gap are left out."""
    assert len(update_history(epochs, "names", 2).updates) == 10
    other = resolve(periods=6, label="WK", grid=(3, 1))
    moved = [
        replace(epoch, tables=tuple(replace(state, layout=other) for state in epoch.tables)) if epoch.number >= 6 else epoch
        for epoch in epochs
    ]
    assert [update.epoch for update in update_history(moved, "names", 2).updates] == [7, 8, 9, 10]
    restated = [replace(epoch, cause="restate") if epoch.number == 8 else epoch for epoch in epochs]
    assert 8 not in [update.epoch for update in update_history(restated, "names", 2).updates]
    assert [update.epoch for update in update_history([*epochs[:3], *epochs[5:]], "names", 2).updates] == [1, 2, 6, 7, 8, 9, 10]
    assert update_history(epochs, "other", 2).updates == ()


def test_steps_of_other_tables_are_not_counted(epochs: list[Epoch]) -> None:
    """Of all seconds of an epoch, only the seconds of the table's own main step count."""
    other_steps = (StepSeconds("deferred/names: move-deferred", 9.0), StepSeconds("tables/x: move-window", 9.0))
    steps = (*other_steps, StepSeconds(STEP, 0.25))
    (update,) = update_history([epochs[3], replace(epochs[4], seconds=steps)], "names", 2).updates
    assert update.seconds == 0.25


def test_rates_are_for_each_slot(epochs: list[Epoch]) -> None:
    """An update that caught up with four slots brought what four would have; it ends the sequence of arrivals."""
    late = replace(epochs[5], previous_slot=epochs[5].slot - 4, counts=(counted(400),))
    past = update_history([*epochs[:5], late, *epochs[6:]], "names", 2)
    assert past.per_slot("inserted") == 100
    assert past.arrivals == (100,) * 5


def test_epochs_that_are_gone_or_damaged_are_passed_over(tmp_path: Path) -> None:
    """The history consists of the other epochs."""
    told(tmp_path, lambda _: counted())
    epoch_path(tmp_path, 3).unlink()
    epoch_path(tmp_path, 5).write_bytes(b"{")
    with Reader.open(tmp_path) as reader:
        readable = recent_epochs(tmp_path, reader.epoch, 8)
    assert [epoch.number for epoch in readable] == [2, 4, 6, 7, 8, 9, 10]
