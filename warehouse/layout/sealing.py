"""Sealing: when a row of the grid has received its last slot, its runs are merged once and not rewritten again.

A column's row closes at the last slot of each cycle that maps to it. A row of the table with a lifetime of at most p
slots that is sealed at a closing slot j is dead at the next closing slot of its sub-index, because a <= j, so b <= a +
p <= j + G*F: it is rewritten at most once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.layout.assignment import OVERFLOW_BLOCK, row, stagger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.layout.layout import Layout

__all__ = ["Seal", "closing_cells", "sealable", "seals"]


@dataclass(frozen=True)
class Seal:
    """The merges in one sub-index: expiry blocks, each with its number of runs before the update."""

    sub_index: int
    blocks: tuple[tuple[int, int], ...]


def closing_cells(layout: Layout, k0: int, k: int) -> tuple[int, ...]:
    """Return the sub-index numbers whose row closes at a slot of k0+1..k with no later slot of the range mapping to it again.

    A staggered row of column e closes at slot j when `(j + floor(e*F/E)) mod F = 0`. Other assignments come back to a
    row before it is full; there the last slot of each cycle that maps to the row counts, so that overflowing rows, the
    only ones sealed there, are looked at once in a cycle. The cost is bounded by the cycle, however many slots are
    caught up.

    Parameters
    ----------
    layout
        The layout of the table.
    k0, k
        Last processed slot and slot of the update; k0 = k - p for the first build.

    Examples
    --------
    >>> from warehouse.layout import resolve
    >>> layout = resolve(periods=24, label="WK")        # 5 x 4, F = 5, columns start their rows 0, 1, 2, 3 slots apart
    >>> [closing_cells(layout, j - 1, j) for j in range(1, 6)]
    [(), (4,), (3,), (2,), (1,)]
    """
    if layout.technique == "rebuild":
        return ()
    if layout.insertion == "staggered":
        closing = {(g, e) for e in range(layout.columns) for g in _closing_staggered(layout, e, k0, k)}
    else:
        closing = {(g, e) for g in _closing_elsewhere(layout, k0, k) for e in range(layout.columns)}
    return tuple(sorted(layout.base + g * layout.columns + e + 1 for g, e in closing))


def sealable(layout: Layout, block: int, k: int) -> bool:
    """Whether runs of an expiry block may be merged at update k: it must live for at least another F slots.

    Without sealing only the overflow block is merged, since it is never wholly past.
    """
    if layout.technique == "rebuild":
        return False
    return block == OVERFLOW_BLOCK or (layout.seal and (block + 1) * layout.expiry_block > k + layout.rows_span)


def seals(layout: Layout, k0: int, k: int, runs: Mapping[tuple[int, int], int]) -> tuple[Seal, ...]:
    """Return the partitions that an update over slots k0+1..k may seal, by sub-index and block.

    Only the written batch shows whether it adds a run to a partition. A partition that then has fewer than two runs must not be
    sealed.

    Parameters
    ----------
    layout
        The layout of the table.
    k0, k
        Last processed slot and slot of the update.
    runs
        Number of runs by (sub-index, expiry block) before the update; partitions of other layout versions are ignored.
    """
    blocks: dict[int, list[tuple[int, int]]] = {cell: [] for cell in closing_cells(layout, k0, k)}
    for (cell, block), number in sorted(runs.items()):
        if cell in blocks and number >= 1 and sealable(layout, block, k):
            blocks[cell].append((block, number))
    return tuple(Seal(cell, tuple(blocks_of_cell)) for cell, blocks_of_cell in blocks.items() if blocks_of_cell)


def _closing_staggered(layout: Layout, e: int, k0: int, k: int) -> set[int]:
    # Closing slots lie F apart and go through the rows in turn. The slots after the last closing slot belong to the row that
    # closed G - 1 closing slots earlier, so this row is open again unless k itself is a closing slot.
    span = layout.rows_span
    since = (k + stagger(layout, e)) % span
    closed = layout.rows if since == 0 else layout.rows - 1
    latest = k - since
    return {row(layout, j, e) for j in range(latest, max(k0, latest - closed * span), -span)}


def _closing_elsewhere(layout: Layout, k0: int, k: int) -> set[int]:
    last: dict[int, int] = {}
    for j in range(k, max(k0, k - _cover(layout)), -1):
        last.setdefault(row(layout, j), j)
    return {g for g, j in last.items() if _closes(layout, j)}


def _cover(layout: Layout) -> int:
    return layout.periods if layout.insertion == "chronological" else 2 * layout.rows


def _closes(layout: Layout, j: int) -> bool:
    if layout.insertion == "chronological":
        return j % layout.periods == 0 or row(layout, j) != row(layout, j + 1)
    cycle = layout.rows * layout.rows_span
    return (j - 1) % cycle >= cycle - layout.rows
