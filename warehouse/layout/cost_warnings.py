"""Warnings about layouts that can exist but cost more than their owner may expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.layout.layout import Layout

__all__ = ["warnings"]


def warnings(layout: Layout, *, grid_declared: bool = True) -> tuple[str, ...]:
    """What a layout costs that its owner may not expect, doubly-partitioned-index sheet, sections 10 (row 11) and 11.

    Parameters
    ----------
    layout
        A layout that can exist.
    grid_declared
        False when the grid is a default: small windows then have more than p/2 columns, and nobody asked.
    """
    return (*(_coarse(layout) if grid_declared else ()), *_append_axes(layout))


def _coarse(layout: Layout) -> Iterator[str]:
    for letter, number, axis in (("G", layout.rows, "insertion"), ("E", layout.columns, "expiration")):
        if number > 1 and 2 * number > layout.periods:
            yield (
                f"grid: {letter} = {number} {axis} parts over p = {layout.periods} update intervals leave fewer than"
                f" two slots in a part; {letter} <= {layout.periods // 2} updates fewer sub-indices for the same size."
            )


def _append_axes(layout: Layout) -> Iterator[str]:
    if layout.technique == "rebuild":
        return
    runs = layout.periods + layout.periods**2 // (2 * layout.expiry_block)
    if layout.insertion != "staggered":
        yield (
            f'insertion = "{layout.insertion}": rows of the grid do not fill in one stretch, so their runs cannot'
            f' be sealed; about {runs} runs stay and every probe looks at them. Use "staggered".'
        )
    if layout.expiration != "blocks":
        spread = min(layout.columns, layout.expiry_block)
        yield (
            f'expiration = "{layout.expiration}": a column holds expiration slots from the whole window, so each update'
            f" writes up to {spread} runs for every expiry block instead of one, and none can be sealed;"
            f' about {runs * spread} runs stay. Use "blocks".'
        )
