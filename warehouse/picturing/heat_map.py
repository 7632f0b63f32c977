"""A table's grid as a heat map: the more live bytes a sub-index has the stronger its colour; a bar for its dead bytes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from warehouse.picturing.svg import picture, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HeatCell", "heat_map"]

_STRONGEST = 0.5
"""Opacity of the warmest cell: text on it must be readable, on paper and on a dark screen."""
_MARGIN_LEFT, _MARGIN_TOP, _GAP, _BAR = 44, 40, 4, 8
_MOST_COLUMNS, _MOST_ROWS = 8, 12
"""A grid beyond that is drawn in small cells, whose texts are in their titles only."""


@dataclass(frozen=True)
class HeatCell:
    """A cell at a row and column from 0: how warm it is and how much of it is dead, both 0 to 1; its texts."""

    row: int
    column: int
    heat: float
    dead: float
    texts: tuple[str, ...]
    title: str


def heat_map(cells: Sequence[HeatCell], *, across: str, down: str) -> str:
    """Return the grid with numbered rows and columns and the names of both axes; a grid of one column is drawn horizontally."""
    columns = 1 + max((cell.column for cell in cells), default=0)
    rows = 1 + max((cell.row for cell in cells), default=0)
    places = {(cell.row, cell.column): cell for cell in cells}
    if columns == 1 < rows <= _MOST_COLUMNS:
        places = {(column, row): cell for (row, column), cell in places.items()}
        columns, rows, across, down = rows, columns, down, ""
    small = columns > _MOST_COLUMNS or rows > _MOST_ROWS
    wide, high = (30, 24) if small else (104, 56)
    width = _MARGIN_LEFT + max(columns * wide, 300)
    height = _MARGIN_TOP + rows * high
    parts = [text(_MARGIN_LEFT, 14, across, "axis")]
    if rows > 1:
        parts.append(f'<text class="axis" transform="translate(12 {_MARGIN_TOP + high * rows / 2:.0f}) rotate(-90)" '
                     f'text-anchor="middle">{escape(down)}</text>')  # fmt: skip
        parts += [text(_MARGIN_LEFT - 8, _MARGIN_TOP + (row + 0.5) * high, str(row), "axis", "end") for row in range(rows)]
    parts += [text(_MARGIN_LEFT + (column + 0.5) * wide, 32, str(column), "axis", "middle") for column in range(columns)]
    for (row, column), cell in places.items():
        parts.append(_cell(cell, _MARGIN_LEFT + column * wide, _MARGIN_TOP + row * high, wide, high, texts=not small))
    return picture(width, height, parts)


def _cell(cell: HeatCell, x: float, y: float, wide: float, high: float, *, texts: bool) -> str:
    size = f'width="{wide - _GAP}" height="{high - _GAP}"'
    bar = (wide - _GAP) * cell.dead
    shown = "".join(text(x + 6, y + 16 + 15 * line, each, "celltext") for line, each in enumerate(cell.texts)) if texts else ""
    return (
        f"<g><title>{escape(cell.title)}</title>"
        f'<rect class="cell" x="{x}" y="{y}" {size}/>'
        f'<rect class="live" fill-opacity="{_STRONGEST * cell.heat:.3f}" x="{x}" y="{y}" {size}/>'
        f'<rect class="dead" x="{x}" y="{y + high - _GAP - _BAR}" width="{bar:.1f}" height="{_BAR}"/>{shown}</g>'
    )
