"""A layout in words, and as the keys of ``warehouse.toml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.layout.layout import Layout

__all__ = ["in_words", "layout_keys"]


def in_words(layout: Layout) -> str:
    """Return a layout in a few words; usual assignments are left out.

    >>> from warehouse.layout import resolve
    >>> in_words(resolve(periods=24, label="WK"))
    'norebuild 5x4, blocks of 6, sealed'
    >>> in_words(resolve(periods=24, label="WK", technique="rebuild", insertion="permuted"))
    'rebuild 4x4, permuted by round-robin'
    """
    grid = f"{layout.technique} {layout.rows}x{layout.columns}"
    usual = ("staggered", "blocks") if layout.technique == "norebuild" else ("round-robin", "round-robin")
    own = (layout.insertion, layout.expiration)
    axes = "" if own == usual else f", {own[0]}" if own[0] == own[1] else f", {own[0]} by {own[1]}"
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
