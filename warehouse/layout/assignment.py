"""The place of a row: sub-index and expiry block as functions of its load slot a and its expiration slot b.

All arithmetic is on integers of any sign with floor division and floor modulus.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

if TYPE_CHECKING:
    from warehouse.layout.layout import Layout

__all__ = [
    "OVERFLOW_BLOCK",
    "Tag",
    "column",
    "exp_block",
    "expiration_column",
    "expired_below",
    "how_long_dead",
    "is_overflow",
    "permutation",
    "permuted",
    "row",
    "stagger",
    "sub_index",
]


# --- the permuted assignment: in each cycle of slots every part is used once, in an order drawn by a hash ---
# It keeps the balance of round-robin where the rate has a period that shares a factor with the number of parts, and
# it stays a pure function of the slot, so that a deletion finds the column; doubly-partitioned-index sheet, section
# 7.

Tag: TypeAlias = Literal["ins", "exp"]


@lru_cache(maxsize=4096)
def permutation(seed: int, tag: Tag, cycle: int, size: int) -> tuple[int, ...]:
    """Return the order of the parts 0..size-1 in one cycle: sorted by the hex SHA-256 of `seed:tag:cycle:part`.

    Examples
    --------
    >>> permutation(0, "ins", 0, 4)
    (1, 3, 0, 2)
    """
    return tuple(sorted(range(size), key=lambda part: sha256(f"{seed}:{tag}:{cycle}:{part}".encode()).hexdigest()))


def permuted(seed: int, tag: Tag, slot: int, size: int) -> int:
    """Return the part of a slot, doubly-partitioned-index sheet, section 7."""
    cycle, position = divmod(slot - 1, size)
    return permutation(seed, tag, cycle, size)[position]


OVERFLOW_BLOCK = 2**40
"""Expiry block of appended rows that outlive p slots; rows that never expire lie in blocks above it."""


def stagger(layout: Layout, e: int) -> int:
    """Return the slots by which the rows of column e start earlier than the rows of column 0: floor(e * F / E)."""
    return e * layout.rows_span // layout.columns


def row(layout: Layout, a: int, e: int = 0) -> int:
    """Return the grid row of load slot a, doubly-partitioned-index sheet, section 3.3 and 7.

    Parameters
    ----------
    layout
        The layout of the table.
    a
        Load slot.
    e
        The column, from 0; only `staggered` rows differ from column to column.
    """
    match layout.insertion:
        case "round-robin":
            return (a - 1) % layout.rows
        case "chronological":
            return (a - 1) % layout.periods * layout.rows // layout.periods
        case "permuted":
            return permuted(layout.seed, "ins", a, layout.rows)
        case "staggered":
            span = layout.rows_span
            return (a - 1 + stagger(layout, e)) % (layout.rows * span) // span
        case _:
            assert_never(layout.insertion)


def expiration_column(layout: Layout, b: int) -> int:
    """Return the grid column of expiration slot b within the window, doubly-partitioned-index sheet, section 3.3 and 7."""
    match layout.expiration:
        case "round-robin":
            return (b - 1) % layout.columns
        case "chronological":
            return (b - 1) % layout.periods * layout.columns // layout.periods
        case "permuted":
            return permuted(layout.seed, "exp", b, layout.columns)
        case "blocks":
            return (b - 1) // layout.expiry_block % layout.columns
        case _:
            assert_never(layout.expiration)


def is_overflow(layout: Layout, a: int, b: int, *, never: bool = False) -> bool:
    """Whether a row outlives the window and is kept apart; a rewritten sub-index needs no such place."""
    return layout.technique == "norebuild" and (never or b > a + layout.periods)


def column(layout: Layout, a: int, b: int, *, never: bool = False) -> int:
    """Return the grid column of a row: by its expiration slot, or 0 when it overflows.

    Parameters
    ----------
    layout
        The layout of the table.
    a, b
        Load slot and expiration slot.
    never
        Whether the row never expires; b is then the slot of the largest time.
    """
    return 0 if is_overflow(layout, a, b, never=never) else expiration_column(layout, b)


def sub_index(layout: Layout, a: int, b: int, *, never: bool = False) -> int:
    """Return the number of a row's sub-index, `base + g*E + e + 1`, doubly-partitioned-index sheet, section 3.3.

    Examples
    --------
    >>> from warehouse.layout import resolve
    >>> sub_index(resolve(periods=36, label="WK", technique="rebuild", grid=(5, 5)), 37, 73)
    8
    """
    e = column(layout, a, b, never=never)
    return layout.base + row(layout, a, e) * layout.columns + e + 1


def exp_block(layout: Layout, a: int, b: int, *, never: bool = False) -> int:
    """Return the expiry block of a row: `floor((b-1)/w)`, a block apart beyond the window, always 0 with `rebuild`."""
    if layout.technique == "rebuild":
        return 0
    if never:
        return OVERFLOW_BLOCK + 1 + (a - 1) // (layout.rows * layout.rows_span)
    if is_overflow(layout, a, b):
        return OVERFLOW_BLOCK
    return (b - 1) // layout.expiry_block


# --- when expired rows leave the files of the newest epoch ---


def expired_below(layout: Layout, k: int) -> int:
    """Return the block below which all expiry blocks are past after update k: floor(k / w).

    A row is live after update k iff b > k, and block B ends with slot (B+1)w. With `rebuild`, where all rows lie in
    block 0, the answer is 0: no block is ever below it.
    """
    return k // layout.expiry_block if layout.technique == "norebuild" else 0


def how_long_dead(layout: Layout) -> int:
    """Return the number of updates, of one slot each, for which an expired row may stay in the newest epoch's files.

    With `norebuild` the first row of a block, b = Bw+1, is dead from update Bw+1 on and leaves with its block at update (B+1)w: w
    - 1 updates. With `rebuild` its column is visited at its own expiration slot: 0 updates. Rows that live for more than p slots
    are not bounded by this: they leave when the row of their sub-index closes.
    """
    return layout.expiry_block - 1 if layout.technique == "norebuild" else 0
