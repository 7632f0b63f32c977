"""A warehouse written without Spark whose epochs say what a test wants: counts, seconds, layout of the table `names`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.serving.house import House, add_epoch, names_table, table_state
from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.records import Counts, StepSeconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.epochs.records import Epoch, Partition
    from warehouse.layout import Layout

STEP = "tables/names: move-window"
SLOTS = range(-6, 5)


def counted(inserted: int = 100, **more: int) -> Counts:
    """Return the counts of an update of `names`."""
    return Counts("names", files=1, rows=inserted, inserted=inserted, **more)


def told(
    root: Path,
    counts: Callable[[Epoch], Counts],
    *,
    seconds: float = 0.5,
    layout: Layout | None = None,
    partitions: tuple[Partition, ...] | None = None,
) -> House:
    """Write eleven epochs of one slot each, in which rows of `names` arrive up to the last."""
    table = names_table()
    house = House(root, {table.name: table})
    for number, slot in enumerate(SLOTS):
        state = replace(table_state(house, table, slot, number), rejected=None)
        parts = state.partitions if partitions is None else partitions
        epoch = add_epoch(house, number, slot, (replace(state, layout=layout or state.layout, partitions=parts),))
        changed = replace(epoch, counts=(counts(epoch),), seconds=(StepSeconds(STEP, seconds),))
        epoch_path(root, number).unlink()
        write_record(epoch_path(root, number), changed)
        house.epochs[number] = changed
    return house
