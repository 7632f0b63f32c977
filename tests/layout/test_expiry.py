from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout import Layout, exp_block, expired_below, how_long_dead, resolve

from .strategies import appended, plain


@settings(max_examples=100)
@given(layout=appended(), b=st.integers(-100, 100), k=st.integers(-100, 100))
def test_past_blocks_have_no_live_row(layout: Layout, b: int, k: int) -> None:
    """After update k a block is below the mark iff all its expiration slots are at most k."""
    block = exp_block(layout, b - 1, b)
    last = (block + 1) * layout.expiry_block
    assert (block < expired_below(layout, k)) == (last <= k)


@settings(max_examples=60)
@given(layout=appended())
def test_dead_rows_stay_for_less_than_a_block(layout: Layout) -> None:
    """The longest stay of a row, from its expiration slot to the removal of its block, is as stated."""
    stays = []
    for b in range(1, 3 * layout.expiry_block + 1):
        block = exp_block(layout, b - 1, b)
        removed = next(k for k in range(b, b + 100) if block < expired_below(layout, k))
        stays.append(removed - b)
    assert max(stays) == how_long_dead(layout)


def test_rewritten_grids_keep_no_dead_row() -> None:
    """With rebuild a row leaves at its own expiration slot and no block is ever past."""
    layout = plain(4, 4, "round-robin", 36)
    assert (expired_below(layout, 10**6), how_long_dead(layout)) == (0, 0)
    assert how_long_dead(resolve(periods=24, label="WK")) == 5
