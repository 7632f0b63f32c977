"""From one layout of a table to the next: doubly-partitioned-index sheet, section 8.4."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.layout.resolution import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.layout.layout import Label, Layout

__all__ = ["migrated", "remaining_share", "same_cells"]


def migrated(
    old: Layout, given: Mapping[str, Any], *, periods: int, label: Label, widest: int | None = None
) -> Layout:
    """Return the layout after a migration: keys that are not given keep their value if it still fits, else they get the default.

    Another technique resets the grid and the assignments to the defaults; another grid or p resets the width of the blocks. The
    new cells are numbered after all earlier ones, so that rows of both layouts can lie in one table.

    Parameters
    ----------
    old
        The layout in force.
    given
        Keys of `[streams.NAME.layout]` with their values; None where a key is left out.
    periods
        p from now on, in update intervals.
    label
        Update pattern of the rows.
    widest
        The widest expiry block that may be chosen if neither it nor the grid is given; None: any.

    Raises
    ------
    LayoutError
        With every problem of the completed layout.

    Examples
    --------
    >>> from warehouse.layout import resolve
    >>> old = resolve(periods=24, label="WK")
    >>> new = migrated(old, {"grid": (6, 6)}, periods=24, label="WK")
    >>> new.rows, new.columns, new.expiry_block, new.first_cell
    (6, 6, 4, 21)
    >>> migrated(old, {"technique": "rebuild"}, periods=24, label="WK").insertion
    'round-robin'
    """
    declared = {key: value for key, value in given.items() if value is not None}
    keys: dict[str, Any] = {"technique": old.technique, "seed": old.seed, **_unchanged_keys(old, declared, periods), **declared}
    return resolve(
        periods=periods,
        label=label,
        base=old.last_cell,
        version=old.version + 1,
        widest=widest,
        **keys,
    )


def _unchanged_keys(old: Layout, declared: Mapping[str, Any], periods: int) -> dict[str, Any]:
    if declared.get("technique", old.technique) != old.technique:
        return {}
    keys: dict[str, Any] = {"insertion": old.insertion, "expiration": old.expiration}
    if not declared.keys() & {"insertion", "expiration"}:
        keys["seal"] = old.seal
    width = declared.get("expiry_block")
    if "grid" in declared or max(old.rows, old.columns) > periods:
        return keys
    if width is not None and width > 0 and old.columns > 1:
        return {**keys, "grid": (old.rows, -(-periods // width))}
    keys["grid"] = (old.rows, old.columns)
    if periods == old.periods:
        keys["expiry_block"] = old.expiry_block
    return keys


def same_cells(one: Layout, other: Layout) -> bool:
    """Whether two layouts assign every row to the same cell, apart from the cells' numbers."""
    return replace(one, base=0, version=0, seal=False) == replace(other, base=0, version=0, seal=False)


def remaining_share(updates: int, periods: int) -> float:
    """Return the share of the rows of an old layout that still live after a number of updates: (1 - j/p)^2, section 8.4.

    It takes arrivals to be steady and lifetimes to be uniform up to p update intervals.

    Examples
    --------
    >>> remaining_share(0, 24), remaining_share(12, 24), remaining_share(30, 24)
    (1.0, 0.25, 0.0)
    """
    return max(0.0, 1 - updates / periods) ** 2
