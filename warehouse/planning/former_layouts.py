"""Plans the work of an update for former layouts of tables that migrate side by side (doubly-partitioned-index sheet, 8.4).

New rows go to the present layout. A former layout only loses rows: a partition whose rows have all expired is removed unread, and
under ``rebuild`` the column of the expired slots is rewritten without them. Once few rows are left, they may be moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.layout import OVERFLOW_BLOCK, closing_cells, deleted_columns, expired_below
from warehouse.planning.steps import FormerCells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from warehouse.epochs.records import FormerLayout, Partition, TableState
    from warehouse.layout import Layout

__all__ = ["former_cells", "remaining_layouts"]


def former_cells(state: TableState | None, k0: int, k: int) -> FormerCells:
    """Return the work of an update over slots k0+1..k for the partitions of a table's former layouts."""
    expired: list[tuple[int, int]] = []
    aged: list[tuple[int, int]] = []
    moved: list[tuple[int, int]] = []
    for former in state.former if state else ():
        partitions = [part for part in state.partitions if former.holds(part.sub_index)] if state else []
        past = [part for part in partitions if _past(former.layout, part, k)]
        remaining = [part for part in partitions if part not in past]
        expired += map(_cell, past)
        if former.move_below is not None and sum(part.rows for part in remaining) < former.move_below * former.rows:
            moved += map(_cell, remaining)
        else:
            rewritten = _rewritten(former.layout, k0, k)
            aged += [_cell(part) for part in remaining if _aged(part, k) and rewritten(part)]
    return FormerCells(tuple(expired), tuple(aged), tuple(moved))


def remaining_layouts(former: Iterable[FormerLayout], partitions: Sequence[Partition]) -> tuple[FormerLayout, ...]:
    """Return the former layouts that still have partitions."""
    return tuple(layout for layout in former if any(layout.holds(part.sub_index) for part in partitions))


def _cell(part: Partition) -> tuple[int, int]:
    return part.sub_index, part.exp_block


def _past(layout: Layout, part: Partition, k: int) -> bool:
    return part.max_exp_slot <= k or (layout.technique == "norebuild" and part.exp_block < expired_below(layout, k))


def _aged(part: Partition, k: int) -> bool:
    """Whether a partition may hold a row that has expired."""
    return part.min_exp_slot is None or part.min_exp_slot <= k


def _rewritten(layout: Layout, k0: int, k: int) -> Callable[[Partition], bool]:
    """Which partitions are rewritten when rows in them have expired.

    Where runs are appended these are overflowing rows alone, when their row would close; else the columns of the slots.
    """
    if layout.technique == "norebuild":
        closing = frozenset(closing_cells(layout, k0, k))
        return lambda part: part.exp_block == OVERFLOW_BLOCK and part.sub_index in closing
    columns = deleted_columns(layout, k0, k)
    return lambda part: (part.sub_index - layout.first_cell) % layout.columns in columns
