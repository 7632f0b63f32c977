"""Which layouts can exist, and which are allowed but dear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.layout.problems import LayoutProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.layout.layout import Layout

__all__ = ["problems_of", "warnings"]

TECHNIQUES = ("norebuild", "rebuild")
INSERTIONS = ("round-robin", "chronological", "permuted", "staggered")
EXPIRATIONS = ("round-robin", "chronological", "permuted", "blocks")


def problems_of(layout: Layout) -> tuple[LayoutProblem, ...]:
    """Everything that is wrong with the values of a layout, in the order of the rules; empty when it can exist."""
    return tuple(problem for rule in _RULES for problem in rule(layout))


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


def _words(layout: Layout) -> Iterator[LayoutProblem]:
    for key, found, words in (
        ("technique", layout.technique, TECHNIQUES),
        ("insertion", layout.insertion, INSERTIONS),
        ("expiration", layout.expiration, EXPIRATIONS),
    ):
        if found not in words:
            yield LayoutProblem(key, f'"{found}"', " | ".join(words), f"there is no such {key}.")


def _periods(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.periods < 1:
        yield LayoutProblem(
            "periods", str(layout.periods), "1 or more", "max_lifetime is at least one update interval."
        )


def _numbering(layout: Layout) -> Iterator[LayoutProblem]:
    for key, number in (("base", layout.base), ("version", layout.version)):
        if number < 0:
            yield LayoutProblem(key, str(number), "0 or more", "cells and layout versions are counted up.")


def _grid(layout: Layout) -> Iterator[LayoutProblem]:
    found = f"[{layout.rows}, {layout.columns}]"
    for letter, number, axis in (("G", layout.rows, "rows"), ("E", layout.columns, "columns")):
        if not 1 <= number <= max(1, layout.periods):
            why = f"{letter} = {number} {axis}, and a window of p = {layout.periods} slots has 1 to p of them."
            yield LayoutProblem("grid", found, f"{letter} from 1 to {max(1, layout.periods)}", why)


def _rebuild(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.technique != "rebuild":
        return
    if layout.insertion == "staggered":
        why = "rows are staggered only where runs are appended."
        yield LayoutProblem("insertion", '"staggered"', 'another assignment, or technique = "norebuild"', why)
    if layout.expiration == "blocks":
        why = "columns are expiry blocks only where runs are appended."
        yield LayoutProblem("expiration", '"blocks"', 'another assignment, or technique = "norebuild"', why)
    if layout.expiry_block:
        why = "a rewritten sub-index is one run and has no expiry blocks."
        yield LayoutProblem("expiry_block", str(layout.expiry_block), 'leave it out, or technique = "norebuild"', why)
    if layout.seal:
        why = "a rewritten sub-index is one run already, there is nothing to seal."
        yield LayoutProblem("seal", "true", 'leave it out, or technique = "norebuild"', why)


def _norebuild(layout: Layout) -> Iterator[LayoutProblem]:
    if layout.technique != "norebuild":
        return
    width, columns, periods = layout.expiry_block, layout.columns, layout.periods
    if not 1 <= width <= max(1, periods):
        why = f"an expiry block has at least 1 and at most p = {periods} expiration slots."
        yield LayoutProblem("expiry_block", str(width), f"1 to {max(1, periods)}", why)
    elif layout.expiration == "blocks" and 1 < columns <= periods and width * columns < periods:
        why = f"w * E = {width * columns} is below p = {periods}: the columns do not span a window."
        yield LayoutProblem("expiry_block", str(width), f"{-(-periods // columns)} or more with {columns} columns", why)
    if layout.seal and (layout.insertion, layout.expiration) != ("staggered", "blocks"):
        why = "only staggered rows of block columns close for good; other assignments cannot be sealed."
        allowed = 'false, or insertion = "staggered" with expiration = "blocks"'
        yield LayoutProblem("seal", "true", allowed, why)


_RULES: tuple[Callable[[Layout], Iterator[LayoutProblem]], ...] = (
    _words,
    _periods,
    _numbering,
    _grid,
    _rebuild,
    _norebuild,
)
