"""Which sub-indices an update touches: one row and one column of the grid for each slot it moves past."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from warehouse.layout.assignment import expiration_column, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.layout.layout import Layout

__all__ = ["accessed", "deleted_columns", "inserted_rows", "planned_cells"]


def inserted_rows(layout: Layout, k0: int, k: int) -> frozenset[int]:
    """Return the grid rows that load slots k0+1..k map to, in any column; doubly-partitioned-index sheet, section 3.6.

    The cost is bounded by the number of rows, however many slots are caught up.
    """
    staggered = layout.insertion == "staggered"
    return frozenset().union(*(_rows_of_column(layout, e, k0, k) for e in range(layout.columns if staggered else 1)))


def deleted_columns(layout: Layout, k0: int, k: int) -> frozenset[int]:
    """Return the grid columns that expiration slots k0+1..k map to; doubly-partitioned-index sheet, section 3.6."""
    match layout.expiration:
        case "round-robin":
            visits = _visits(k0, k, stretch=1, cover=layout.columns)
        case "permuted":
            visits = _visits(k0, k, stretch=1, cover=2 * layout.columns)
        case "chronological":
            visits = _visits(k0, k, stretch=layout.periods // layout.columns, cover=layout.periods)
        case "blocks":
            visits = _visits(k0, k, stretch=layout.expiry_block, cover=layout.expiry_block * layout.columns)
        case _:
            assert_never(layout.expiration)
    return frozenset(expiration_column(layout, slot) for slot in visits)


def planned_cells(layout: Layout, k0: int, k: int) -> tuple[int, ...]:
    """Return the sub-index numbers an update over slots k0+1..k must consider: row inserted into, or column deleted from.

    Examples
    --------
    >>> from warehouse.layout import resolve
    >>> planned_cells(resolve(periods=8, label="WK", technique="rebuild", grid=(2, 2)), 8, 9)
    (1, 2, 3)
    """
    deleted = deleted_columns(layout, k0, k)
    return tuple(
        sorted(
            layout.base + g * layout.columns + e + 1
            for e in range(layout.columns)
            for g in (range(layout.rows) if e in deleted else _rows_of_column(layout, e, k0, k))
        )
    )


def accessed(rows: int, columns: int, slots: int) -> int:
    """Sub-indices that a round-robin update over several slots touches, doubly-partitioned-index sheet, section 5.3."""
    inserted, deleted = min(rows, slots), min(columns, slots)
    return inserted * columns + deleted * rows - inserted * deleted


def _rows_of_column(layout: Layout, e: int, k0: int, k: int) -> frozenset[int]:
    match layout.insertion:
        case "round-robin":
            visits = _visits(k0, k, stretch=1, cover=layout.rows)
        case "permuted":
            visits = _visits(k0, k, stretch=1, cover=2 * layout.rows)
        case "chronological":
            visits = _visits(k0, k, stretch=layout.periods // layout.rows, cover=layout.periods)
        case "staggered":
            visits = _visits(k0, k, stretch=layout.rows_span, cover=layout.rows * layout.rows_span)
        case _:
            assert_never(layout.insertion)
    return frozenset(row(layout, slot, e) for slot in visits)


def _visits(k0: int, k: int, *, stretch: int, cover: int) -> Iterator[int]:
    """Slots of k0+1..k that meet every part met there: a part lasts `stretch` slots or more, `cover` slots meet all."""
    last = min(k, k0 + cover)
    yield from range(k0 + 1, last + 1, stretch)
    if last > k0:
        yield last
