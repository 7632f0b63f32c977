"""Which epochs can no longer be read, by the clocks in their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, epoch_path, write_record
from warehouse.epochs.records import Epoch
from warehouse.operations.unneeded_files import retire
from warehouse.time import DAY, HOUR

from .projects import ANCHOR

if TYPE_CHECKING:
    from pathlib import Path


def test_a_clock_that_was_ahead_keeps_no_epoch(tmp_path: Path) -> None:
    """A clock that was years ahead committed one epoch: epochs retire when the epochs after them are old enough."""
    (tmp_path / "epochs").mkdir()
    for number, instant in enumerate((0, HOUR, 3000 * DAY, 3 * HOUR, 4 * HOUR)):
        record = Epoch(number, ANCHOR + number * HOUR, number, number - 1, ANCHOR, HOUR, ANCHOR + instant, "", ())
        write_record(epoch_path(tmp_path, number), record)
    assert retire(tmp_path, retain=2 * HOUR, now=ANCHOR + 4 * HOUR).epochs == 1
    assert epoch_numbers(tmp_path) == [1, 2, 3, 4]
    assert retire(tmp_path, retain=2 * HOUR, now=ANCHOR + 5 * HOUR).epochs == 2
    assert epoch_numbers(tmp_path) == [3, 4]
