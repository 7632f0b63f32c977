"""A table is stale when its newest row, or the last update, is older than its declaration allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.serving.staleness import stale_tables, why_stale
from warehouse.time import HOUR

if TYPE_CHECKING:
    from .house import House


def test_both_the_newest_row_and_the_last_update_count() -> None:
    """Exactly as old as allowed is not stale; a microsecond more is."""
    assert why_stale(0, 0, HOUR, HOUR) is None
    assert "newest row" in (why_stale(-1, 0, HOUR, HOUR) or "")
    assert "last update" in (why_stale(0, -1, HOUR, HOUR) or "")
    assert "no row has come yet" in (why_stale(None, 0, HOUR, HOUR) or "")
    assert why_stale(5 * HOUR, 0, HOUR, HOUR) is None  # rows may be ahead of the clock


def test_only_declared_bounds_are_looked_at(own: House) -> None:
    """A table that does not exist yet has no row; one without a bound is never stale."""
    epoch = own.epochs[-1]
    now = epoch.committed_at + HOUR
    states = tuple(replace(state, newest=now - 2 * HOUR if state.name == "pairs" else now) for state in epoch.tables)
    stale = stale_tables(replace(epoch, tables=states), {"names": HOUR, "pairs": HOUR, "later": HOUR}, now)
    assert set(stale) == {"pairs", "later"}
    assert "2h ago; stale_after is 1h" in stale["pairs"]
