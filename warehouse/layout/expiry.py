"""When expired rows leave the files of the newest epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.layout.layout import Layout

__all__ = ["expired_below", "how_long_dead"]


def expired_below(layout: Layout, k: int) -> int:
    """After update k every expiry block below this one is wholly past: floor(k / w).

    A row is live after update k iff b > k, and block B ends with slot (B+1)w. With `rebuild`, where all rows lie in
    block 0, the answer is 0: no block is ever below it.
    """
    return k // layout.expiry_block if layout.technique == "norebuild" else 0


def how_long_dead(layout: Layout) -> int:
    """For how many updates, of one slot each, an expired row may stay in the newest epoch's files.

    With `norebuild` the first row of a block, b = Bw+1, is dead from update Bw+1 on and leaves with its block at update
    (B+1)w: w - 1 updates. With `rebuild` its column is visited at its own expiration slot: none. Rows that live for
    more than p slots are not bounded by this: they leave when the row of their sub-index closes.
    """
    return layout.expiry_block - 1 if layout.technique == "norebuild" else 0
