"""Pieces of SVG text; colours are classes of the page's style sheet, so that a picture works on any screen and on paper."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["picture", "rectangle", "shortened", "text"]


_MIN_SHRINK = 0.72
"""The least scale of a picture on a narrow page, at which its texts are still readable; on a narrower page it scrolls."""


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """Return a whole picture, which is never larger than drawn."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px;min-width:{_MIN_SHRINK * width:.0f}px"'
    return f'<svg role="img" {size}>{"".join(parts)}</svg>'


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle of a class."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def text(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    """Return text of a class that starts, is centred or ends at a point."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def shortened(content: str, most: int) -> str:
    """Return a text cut to a number of characters."""
    return content if len(content) <= most else f"{content[: most - 1]}…"
