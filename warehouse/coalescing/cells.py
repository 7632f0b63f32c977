"""The expiry blocks of a large coalesced table's rows, chosen so that an update need not write most of them again.

Invariant: block 0 of each bucket holds all open rows and may hold closed ones. A block ``b`` other than 0 is a cell of closed
rows, ``{ r : not r.open and block(r.valid_from) = b }`` with ``block(t) = floor(t / w) + 1`` (from 1970 on) for an eighth ``w``
of the window. The window's edge has not reached a cell, so each of its rows is whole and live. Updates add runs to a cell; late
points rewrite the cells of the rows that they change; a cell that the edge reaches is dissolved into block 0, where rows are cut.

Block 0 may hold every row: so it is in small tables, and in tables of an earlier build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]
    Cell = tuple[int, int]

__all__ = ["NOWHERE", "Assigned", "Cells", "assigned", "begin_of", "block_sql", "blocks_of"]

NOWHERE = np.iinfo(np.int64).min
"""Stands for the block of a row that is new or changed."""
_BLOCKS = 8
"""Blocks of a window: more leave fewer rows in block 0 that the edge will cut soon, and make more files."""
_RUNS = 3
"""A cell with this many runs is merged.

*Counted* (half a million members, cp 0.9, a window of 100 updates): an update reads and writes 29 % of the rows, and there are 49
files; with 8 runs 27 %, and 111 files.
"""
_SHARE = 16
"""Rows for a cell wait in block 0 until they are one of this many parts of its necessary rows: a smaller file saves little."""


def _width(window: int) -> int:
    return max(1, window // _BLOCKS)


def blocks_of(first: Numbers, window: int) -> Numbers:
    """Return the block of each first stamp (microseconds); no block is 0.

    >>> blocks_of(np.array([-9, -8, -1, 0, 7, 8]), 64).tolist()
    [-2, -1, -1, 1, 1, 2]
    """
    number = first // _width(window)
    return np.where(number >= 0, number + 1, number)


def begin_of(block: int, window: int) -> int:
    """Return the least first stamp of a block.

    >>> [begin_of(block, 64) for block in (-2, -1, 1, 2)]
    [-16, -8, 0, 8]
    """
    return (block - 1 if block > 0 else block) * _width(window)


def block_sql(first: str, edge: int, window: int) -> str:
    """Return the SQL of Spark for the block of a closed row with this first stamp: 0 for a row that the edge will cut soon."""
    width = _width(window)
    number = f"((({first}) - pmod({first}, {width}L)) div {width}L)"
    block = f"(CASE WHEN {number} >= 0 THEN {number} + 1L ELSE {number} END)"
    return f"CASE WHEN ({first}) - pmod({first}, {width}L) >= {edge}L THEN {block} ELSE 0L END"


@dataclass(frozen=True)
class Cells:
    """The cells of closed rows in one update: which exist, and which are rewritten.

    Parameters
    ----------
    window, edge
        The length of the window, and its first instant, in microseconds.
    apart
        Whether closed rows get cells; only a table with many rows has them.
    existing
        The cells that the table has.
    due
        The existing cells that are removed in any case: the window's edge has reached them, they have many runs, or closed rows
        no longer get cells.

    """

    window: int
    edge: int
    apart: bool
    existing: frozenset[Cell] = frozenset()
    due: frozenset[Cell] = frozenset()

    @classmethod
    def of(cls, runs: Iterable[tuple[Cell, int]], window: int, edge: int, *, apart: bool, again: bool) -> Cells:
        """Return the cells of an update, given the number of runs of each; ``again``: all cells are rewritten."""
        counts = {cell: count for cell, count in runs if cell[1]}
        due = {
            cell for cell, count in counts.items()
            if again or not apart or count >= _RUNS or begin_of(cell[1], window) < edge
        }  # fmt: skip
        return cls(window, edge, apart, frozenset(counts), frozenset(due))

    def span(self, until: int) -> list[int]:
        """Return the blocks of rows that the window's edge has not reached and that begin by an instant."""
        least = -(-self.edge // _width(self.window)) * _width(self.window)
        firsts = np.arange(least, until + 1, _width(self.window))
        return blocks_of(firsts, self.window).tolist()  # type: ignore[no-any-return]

    def within(self, buckets: Collection[int]) -> frozenset[Cell]:
        """Return the cells of some buckets."""
        return frozenset(cell for cell in self.existing if cell[0] in buckets)

    def blocks(self, first: Numbers, opened: Truths) -> Numbers:
        """Return the block of each row; 0 for an open row and for a row that the edge will cut soon."""
        blocks = blocks_of(first, self.window)
        near = first - first % _width(self.window) < self.edge
        return np.zeros(len(first), np.int64) if not self.apart else np.where(opened | near, 0, blocks)


@dataclass(frozen=True)
class Assigned:
    """The block of each row, whether the row is written there, and the blocks whose files are removed."""

    block: Numbers
    written: Truths
    leaving: frozenset[int]


def assigned(own: Numbers, stored: Numbers, changed: Collection[int]) -> Assigned:
    """Return the block of each row of a bucket.

    Parameters
    ----------
    own
        The block to which each row belongs; it may stay in block 0.
    stored
        The block where each row is stored unchanged, or ``NOWHERE``.
    changed
        The blocks that lost live rows, or that are removed in any case.

    """
    block = own.copy()
    arriving = (own != 0) & (stored != own)
    enough = max(1, int((own == 0).sum()) // _SHARE)
    blocks, counts = np.unique(own[arriving], return_counts=True)
    few = [
        number
        for number, count in zip(blocks.tolist(), counts.tolist(), strict=True)
        if count < enough and number not in changed
    ]
    block[arriving & np.isin(own, few)] = 0
    leaving = {*changed, *np.unique(stored[(stored != block) & (stored != NOWHERE)]).tolist()}
    if bool(((block == 0) & (stored != 0)).any()):
        leaving.add(0)  # it stays one run
    written = (stored != block) | np.isin(block, sorted(leaving))
    return Assigned(block, written, frozenset(leaving))
