"""From a declaration, in which every key is optional, to a complete layout."""

from __future__ import annotations

from math import isqrt

from warehouse.layout.layout import Expiration, Insertion, Label, Layout, Technique

__all__ = ["BUCKETS", "keyed_layout", "resolve"]

DEFAULT_SIDE = 4
BUCKETS = 4
"""Buckets of a keyed table by default."""


def resolve(
    *,
    periods: int,
    label: Label,
    technique: Technique | None = None,
    grid: tuple[int, int] | None = None,
    insertion: Insertion | None = None,
    expiration: Expiration | None = None,
    expiry_block: int | None = None,
    seal: bool | None = None,
    seed: int | None = None,
    base: int = 0,
    version: int = 0,
    widest: int | None = None,
) -> Layout:
    """Return the layout of a declaration, with defaults for the keys that it leaves out.

    Parameters
    ----------
    periods
        p, the bound on lifetimes in update intervals.
    label
        Update pattern of the rows; all but WK leave in the order they came, so one column is enough.
    technique, grid, insertion, expiration, expiry_block, seal, seed
        As in `[streams.NAME.layout]`; None where the key is left out. `grid` is (G, E).
    base, version
        Numbering of a later layout version.
    widest
        The widest expiry block that may be chosen if neither it nor the grid is given; None allows any.

    Raises
    ------
    LayoutError
        With every problem of the completed layout.

    Examples
    --------
    >>> layout = resolve(periods=24, label="WK")
    >>> layout.rows, layout.columns, layout.expiry_block, layout.rows_span
    (5, 4, 6, 5)
    >>> resolve(periods=24, label="WK", expiry_block=12).columns
    2
    >>> resolve(periods=24, label="WK", widest=3).columns
    8
    """
    appends = (technique or "norebuild") != "rebuild"
    if widest is not None and appends and grid is None and expiry_block is None:
        sides = _default_grid(periods, label, appends=True, width=None)
        expiry_block = max(1, min(widest, _default_width(periods, *sides, appends=True)))
    rows, columns = grid or _default_grid(periods, label, appends=appends, width=expiry_block)
    chosen_insertion: Insertion = insertion or ("staggered" if appends else "round-robin")
    chosen_expiration: Expiration = expiration or ("blocks" if appends else "round-robin")
    can_seal = appends and (chosen_insertion, chosen_expiration) == ("staggered", "blocks")
    return Layout(
        technique=technique or "norebuild",
        rows=rows,
        columns=columns,
        insertion=chosen_insertion,
        expiration=chosen_expiration,
        periods=periods,
        expiry_block=_default_width(periods, rows, columns, appends=appends) if expiry_block is None else expiry_block,
        seal=can_seal if seal is None else seal,
        seed=seed or 0,
        base=base,
        version=version,
    )


def keyed_layout(periods: int, buckets: int = BUCKETS) -> Layout:
    """Return the layout of a keyed table (label STR): ``buckets`` sub-indices by hash, each rewritten when a row of it changes.

    Examples
    --------
    >>> keyed_layout(periods=2).cells
    4
    """
    return Layout(
        technique="rebuild",
        rows=buckets,
        columns=1,
        insertion="round-robin",
        expiration="round-robin",
        periods=max(periods, buckets),
        expiry_block=0,
        seal=False,
    )


def _default_grid(periods: int, label: Label, *, appends: bool, width: int | None) -> tuple[int, int]:
    if label != "WK":
        return max(1, min(DEFAULT_SIDE, periods)), 1
    if not appends:
        side = min(DEFAULT_SIDE, max(1, periods // 2))
        return side, side
    columns = min(DEFAULT_SIDE, periods) if width is None or width < 1 else -(-periods // width)
    return max(1, _rounded_root(periods)), max(1, columns)


def _rounded_root(number: int) -> int:
    """round(sqrt(number)); no root of an integer lies halfway between two integers, so there is no tie to break."""
    root = isqrt(max(0, number))
    return root + (number - root * root > root)


def _default_width(periods: int, rows: int, columns: int, *, appends: bool) -> int:
    if not appends:
        return 0
    parts = rows if columns == 1 else columns
    return max(1, -(-periods // max(1, parts)))
