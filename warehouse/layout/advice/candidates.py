"""Lists the layouts worth comparing for a window of p slots: technique, grid, assignments, expiry block, sealing."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from warehouse.layout.layout import Layout
from warehouse.layout.problems import LayoutError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.layout.layout import Expiration, Insertion

__all__ = ["candidates"]

_COLUMNS = (1, 2, 3, 4, 6, 8, 12)
_REBUILT_GRIDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (4, 1), (1, 4), (9, 1), (4, 2), (2, 4), (3, 2), (4, 3))
_LONG_WINDOW = 200
"""In a window of more slots only a few layouts are compared, since each takes longer."""
_SCATTERED_GRIDS = ((2, 2), (4, 4))


def candidates(periods: int, *, widest: int | None = None, seed: int = 0, few: bool = False) -> tuple[Layout, ...]:
    """Return the layouts to compare, without duplicates.

    Parameters
    ----------
    periods
        p.
    widest
        The widest expiry block that is allowed, in slots; None allows any.
    seed
        The seed of permuted assignments.
    few
        Only layouts that usually lie on the front: enough to decide whether a layout still fits.

    Examples
    --------
    >>> [(layout.technique, layout.rows, layout.columns, layout.expiry_block) for layout in candidates(2, few=True)]
    [('norebuild', 1, 1, 2), ('norebuild', 1, 1, 1), ('norebuild', 1, 2, 1), ('rebuild', 1, 1, 0)]
    """
    few = few or periods > _LONG_WINDOW
    all_layouts = (*_appending(periods, few=few), *(() if few else _scattered(periods)), *_rebuilding(periods, seed, few=few))
    allowed = (layout for layout in all_layouts if widest is None or layout.expiry_block <= widest)
    return tuple(dict.fromkeys(allowed))


def _appending(periods: int, *, few: bool) -> Iterator[Layout]:
    for columns in _COLUMNS:
        if columns > periods:
            continue
        column_width = -(-periods // columns)
        widths = (column_width,) if columns > 1 else tuple(dict.fromkeys(max(1, periods // parts) for parts in (1, 2, 4, 8)))
        for width in widths:
            yield from _layout_if_possible("norebuild", 1, columns, "staggered", "blocks", periods, width, seal=False)
            for rows in _rows(periods, few=few):
                yield from _layout_if_possible("norebuild", rows, columns, "staggered", "blocks", periods, width, seal=True)


def _rows(periods: int, *, few: bool) -> Iterable[int]:
    root = max(1, isqrt(periods))
    chosen = {root, 2 * root} if few else {2, 3, max(1, root // 2), root, root + 1, 3 * root // 2, 2 * root, 3 * root}
    return sorted(rows for rows in chosen if 1 < rows <= max(1, periods // 2))


def _scattered(periods: int) -> Iterator[Layout]:
    """Yield the assignments of the source with appended runs; they are expensive, which the comparison shows."""
    axes: tuple[tuple[Insertion, Expiration], ...] = (
        ("round-robin", "round-robin"),
        ("chronological", "chronological"),
        ("round-robin", "blocks"),
    )
    for rows, columns in _SCATTERED_GRIDS:
        for insertion, expiration in axes:
            width = -(-periods // columns)
            yield from _layout_if_possible("norebuild", rows, columns, insertion, expiration, periods, width, seal=False)


def _rebuilding(periods: int, seed: int, *, few: bool) -> Iterator[Layout]:
    axes: tuple[Insertion, ...] = ("round-robin",) if few else ("round-robin", "chronological", "permuted")
    for rows, columns in _REBUILT_GRIDS:
        if max(rows, columns) > max(1, periods // 2):
            continue
        for axis in axes:
            if axis == "permuted" and (rows, columns) not in ((2, 2), (4, 4)):
                continue
            try:
                yield Layout("rebuild", rows, columns, axis, axis, periods, 0, seal=False, seed=seed)  # type: ignore[arg-type]
            except LayoutError:
                continue


def _layout_if_possible(
    technique: str, rows: int, columns: int, insertion: Insertion, expiration: Expiration, periods: int, width: int,
    *, seal: bool,
) -> Iterator[Layout]:  # fmt: skip
    """Yield the layout if it is possible; small windows allow few layouts."""
    try:
        yield Layout(technique, rows, columns, insertion, expiration, periods, width, seal=seal)  # type: ignore[arg-type]
    except LayoutError:
        return
