"""Whether the rows of a table lie where its layout says, checked row by row on the files themselves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from warehouse.layout import exp_block, sub_index
from warehouse.time import NEVER, slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.epochs.records import Epoch
    from warehouse.layout import Layout
    from warehouse.testing import Stored

    from .project import StoredFile


def check_placement(
    files: Sequence[StoredFile], layout: Layout, epoch: Epoch, expected: Iterable[Stored] | None = None
) -> None:
    """Check the cell, block, slots and order of every row, including dead rows; ``expected`` are the live rows."""
    for file in files:
        assert file.rows
        for row in file.rows:
            never = row["_exp"] == NEVER
            a, b = row["_load_slot"], row["_exp_slot"]
            assert b == slot(row["_exp"], epoch.anchor, epoch.update_interval)
            assert a >= slot(row["_ts"], epoch.anchor, epoch.update_interval) or epoch.slot >= a
            assert a <= epoch.slot
            assert sub_index(layout, a, b, never=never) == file.sub_index, row
            assert exp_block(layout, a, b, never=never) == file.exp_block, row
        assert list(file.rows) == sorted(file.rows, key=_run_order)
    if expected is not None:
        live = Counter(
            (row["k"], row["v"], row["_ts"], row["_exp"], row["_load_slot"], row["_exp_slot"])
            for file in files
            for row in file.live(epoch.window_time)
        )
        assert live == Counter(
            (row.row.key, row.row.value, row.ts, row.exp, row.load_slot, row.exp_slot) for row in expected
        )


def _run_order(row: dict[str, Any]) -> tuple[bool, str, int]:
    return (row["k"] is not None, (row["k"] or ""), row["_exp"])
