"""A figure of the docs as an SVG file of its own, for light and dark browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.report.svg import rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["drawing"]

_STYLE = """<style>
svg { --paper: #fff; --ink: #1d2429; --faint: #56616a; --live: #d6e6f2; --new: #0072b2; --dead: #d55e00; --line: #56616a; }
@media (prefers-color-scheme: dark) { svg { --paper: #14181b; --ink: #e9eef1; --faint: #a3b0b9; --live: #24445c;
  --new: #3b96d6; --dead: #e8762a; --line: #a3b0b9; } }
text { font: 13px system-ui, sans-serif; fill: var(--ink); } .axis { fill: var(--faint); font-size: 12px; }
.paper { fill: var(--paper); } .live { fill: var(--live); stroke: var(--paper); }
.dead { fill: var(--dead); stroke: var(--paper); } .new { fill: var(--new); stroke: var(--paper); }
.rest { fill: none; stroke: var(--line); stroke-width: .6; }
.border { stroke: var(--ink); stroke-width: 1.6; } .sealed { fill: none; stroke: var(--ink); stroke-width: 3; }
</style>"""


def drawing(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """Return a figure of a size in pixels with a title that is read aloud."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">'
        f"<title>{title}</title>{_STYLE}\n{rectangle('paper', 0, 0, width, height)}\n" + "\n".join(parts) + "\n</svg>\n"
    )
