"""The source's own recommendations, for comparison: doubly-partitioned-index sheet, section 8.3.

They were measured on spinning disks with row files. `small` means that the rows that an update of a 4x4 grid touches fit into the
memory of the updating job. `many` means that the probes of an interval cost more than its update.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from warehouse.layout.resolution import resolve

if TYPE_CHECKING:
    from warehouse.layout.layout import Layout

__all__ = ["TableAnswer", "accessed_share", "decision", "in_words", "layout_keys"]


def accessed_share(rows: int, columns: int) -> Fraction:
    """Return (G+E-1)/(GE): the share of sub-indices, and of rows under uniform lifetimes, an update touches, section 5.1."""
    return Fraction(rows + columns - 1, rows * columns)


@dataclass(frozen=True)
class TableAnswer:
    """The line of the decision table that applies, and the layout that it names, with the assignments of this warehouse."""

    window: str
    queries: str
    choice: str
    note: str
    layout: Layout


def decision(*, periods: int, live_bytes: float, memory: float, query_cost: float, update_cost: float) -> TableAnswer:
    """Return the answer of the decision table.

    Parameters
    ----------
    periods
        p.
    live_bytes
        Bytes of the live rows.
    memory
        Memory of the updating job, in bytes.
    query_cost, update_cost
        Seconds of an interval's probes, and of its update.

    Examples
    --------
    >>> decision(periods=36, live_bytes=1e9, memory=1e9, query_cost=0.0, update_cost=1.0).choice
    'NoRebuild 4x4'
    """
    is_small = live_bytes * float(accessed_share(4, 4)) <= memory
    many_queries = query_cost > update_cost
    side, rebuilds, note = {
        (True, False): (4, False, "lowest update time"),
        (True, True): (2, True, "one insertion part probes slightly faster but updates slower"),
        (False, False): (3, False, "keeps probes acceptable"),
        (False, True): (2, False, "balanced; where probe speed is critical Rebuild 2x2 or 3x3, whose updates are dear"),
    }[is_small, many_queries]
    side = max(1, min(side, periods // 2))
    return TableAnswer(
        window="small" if is_small else "large",
        queries="many" if many_queries else "few",
        choice=f"{'Rebuild' if rebuilds else 'NoRebuild'} {side}x{side}",
        note=note,
        layout=resolve(
            periods=periods, label="WK", technique="rebuild" if rebuilds else "norebuild", grid=(side, side)
        ),
    )


# --- A layout in words, and as the keys of ``warehouse.toml`` ---


def in_words(layout: Layout) -> str:
    """Return a layout in a few words; usual assignments are left out.

    >>> from warehouse.layout import resolve
    >>> in_words(resolve(periods=24, label="WK"))
    'norebuild 5x4, blocks of 6, sealed'
    >>> in_words(resolve(periods=24, label="WK", technique="rebuild", insertion="permuted"))
    'rebuild 4x4, permuted by round-robin'
    """
    grid = f"{layout.technique} {layout.rows}x{layout.columns}"
    usual_assignments = ("staggered", "blocks") if layout.technique == "norebuild" else ("round-robin", "round-robin")
    rows, columns = layout.insertion, layout.expiration
    axes = "" if (rows, columns) == usual_assignments else f", {rows}" if rows == columns else f", {rows} by {columns}"
    if layout.technique == "rebuild":
        return grid + axes
    return f"{grid}{axes}, blocks of {layout.expiry_block}, {'sealed' if layout.seal else 'not sealed'}"


def layout_keys(layout: Layout) -> tuple[str, ...]:
    """Return the lines of a layout section that declare a layout."""
    lines = [f'technique = "{layout.technique}"', f"grid = [{layout.rows}, {layout.columns}]"]
    lines += [f'insertion = "{layout.insertion}"', f'expiration = "{layout.expiration}"']
    if layout.technique == "norebuild":
        lines += [f"expiry_block = {layout.expiry_block}", f"seal = {str(layout.seal).lower()}"]
    if "permuted" in (layout.insertion, layout.expiration):
        lines.append(f"seed = {layout.seed}")
    return tuple(lines)
