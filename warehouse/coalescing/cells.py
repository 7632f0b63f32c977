"""Where the rows of a large coalesced table lie within their bucket, so that an update leaves most of them unwritten.

Invariant: of each bucket block 0 holds any rows, all open ones among them. A block ``b`` other than 0 is a cell of closed rows,
``{ r : not r.open and block(r.valid_from) = b }`` with ``block(t) = floor(t / w) + 1`` (from 1970 on) for an eighth ``w`` of the
window. The window's edge has not reached a cell, so each of its rows is whole and live. Updates add runs to a cell; late points
rewrite the cells of the rows that they change; a cell that the edge reaches is dissolved into block 0, where rows are cut.

Block 0 may hold every row: that is how an earlier build left a table, and how small ones stay.
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
"""In place of the block of a row that is not stored as it is."""
_BLOCKS = 8
"""Blocks of a window: more leave fewer rows in block 0 that the edge will cut soon, and make more files."""
_RUNS = 3
"""Runs from which on a cell is merged. *Counted* (half a million members, cp 0.9, a window of 100 updates):
an update reads and writes 29 % of the rows, and there are 49 files; with 8 runs 27 %, and 111 files."""
_SHARE = 16
"""Rows for a cell wait in block 0 until they are this part of what has to be there: fewer would be a file that saves little."""


def _width(window: int) -> int:
    return max(1, window // _BLOCKS)


def blocks_of(first: Numbers, window: int) -> Numbers:
    """Return the block of each first stamp (microseconds); none is 0.

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
    """Return the SQL of Spark for the block of a closed row with this first stamp: 0 for one that the edge will cut soon."""
    width = _width(window)
    number = f"((({first}) - pmod({first}, {width}L)) div {width}L)"
    block = f"(CASE WHEN {number} >= 0 THEN {number} + 1L ELSE {number} END)"
    return f"CASE WHEN ({first}) - pmod({first}, {width}L) >= {edge}L THEN {block} ELSE 0L END"


@dataclass(frozen=True)
class Cells:
    """What an update makes of the cells of closed rows.

    Parameters
    ----------
    window, edge
        The length of the window, and where it begins now.
    apart
        Whether closed rows get cells: where they are many.
    existing
        The cells that the table has.
    due
        Those of them that leave in any case: the edge has reached them, they have many runs, or closed rows get none any more.

    """

    window: int
    edge: int
    apart: bool
    existing: frozenset[Cell] = frozenset()
    due: frozenset[Cell] = frozenset()

    @classmethod
    def of(cls, runs: Iterable[tuple[Cell, int]], window: int, edge: int, *, apart: bool, again: bool) -> Cells:
        """Return what an update makes of cells with so many runs each; ``again``: all are made once more."""
        own = {cell: count for cell, count in runs if cell[1]}
        due = {
            cell for cell, count in own.items()
            if again or not apart or count >= _RUNS or begin_of(cell[1], window) < edge
        }  # fmt: skip
        return cls(window, edge, apart, frozenset(own), frozenset(due))

    def span(self, until: int) -> list[int]:
        """Return the blocks of rows that the window's edge has not reached and that begin by an instant."""
        least = -(-self.edge // _width(self.window)) * _width(self.window)
        firsts = np.arange(least, until + 1, _width(self.window))
        return blocks_of(firsts, self.window).tolist()  # type: ignore[no-any-return]

    def within(self, buckets: Collection[int]) -> frozenset[Cell]:
        """Return the cells of some buckets."""
        return frozenset(cell for cell in self.existing if cell[0] in buckets)

    def blocks(self, first: Numbers, opened: Truths) -> Numbers:
        """Return the block of each row; 0 for an open one and for one that the edge will cut soon."""
        blocks = blocks_of(first, self.window)
        near = first - first % _width(self.window) < self.edge
        return np.zeros(len(first), np.int64) if not self.apart else np.where(opened | near, 0, blocks)


@dataclass(frozen=True)
class Assigned:
    """The block of each row, whether it is written there, and the blocks whose files leave."""

    block: Numbers
    written: Truths
    leaving: frozenset[int]


def assigned(own: Numbers, stored: Numbers, changed: Collection[int]) -> Assigned:
    """Return where the rows of a bucket go.

    Parameters
    ----------
    own
        The block to which each row belongs; it may stay in block 0.
    stored
        The block where each row is stored as it is, or ``NOWHERE``.
    changed
        The blocks from which live rows went, or that leave in any case.

    """
    block = own.copy()
    comes = (own != 0) & (stored != own)
    enough = max(1, int((own == 0).sum()) // _SHARE)
    found, counts = np.unique(own[comes], return_counts=True)
    few = [each for each, count in zip(found.tolist(), counts.tolist(), strict=True) if count < enough and each not in changed]
    block[comes & np.isin(own, few)] = 0
    leaving = {*changed, *np.unique(stored[(stored != block) & (stored != NOWHERE)]).tolist()}
    if bool(((block == 0) & (stored != 0)).any()):
        leaving.add(0)  # it stays one run
    written = (stored != block) | np.isin(block, sorted(leaving))
    return Assigned(block, written, frozenset(leaving))
