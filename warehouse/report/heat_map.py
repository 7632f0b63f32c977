"""Draws a table's grid as a heat map: the more live bytes a sub-index has, the stronger its colour; a bar shows dead bytes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from warehouse.report.svg import picture, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HeatCell", "heat_map"]

_MAX_OPACITY = 0.5
"""Opacity of the warmest cell: text on it must be readable, on paper and on a dark screen."""
_MARGIN_LEFT, _MARGIN_TOP, _GAP, _BAR = 44, 40, 4, 8
_MAX_COLUMNS, _MAX_ROWS = 8, 12
"""A larger grid is drawn in small cells, whose texts are in their titles only."""


@dataclass(frozen=True)
class HeatCell:
    """A cell at a row and column from 0: how warm it is and how much of it is dead, both 0 to 1; its texts."""

    row: int
    column: int
    heat: float
    dead: float
    texts: tuple[str, ...]
    title: str


def heat_map(cells: Sequence[HeatCell], *, horizontal: str, vertical: str) -> str:
    """Return the grid with numbered rows and columns and the names of both axes; a grid of one column is drawn horizontally."""
    columns = 1 + max((cell.column for cell in cells), default=0)
    rows = 1 + max((cell.row for cell in cells), default=0)
    cell_at = {(cell.row, cell.column): cell for cell in cells}
    if columns == 1 < rows <= _MAX_COLUMNS:
        cell_at = {(column, row): cell for (row, column), cell in cell_at.items()}
        columns, rows, horizontal, vertical = rows, columns, vertical, ""
    small = columns > _MAX_COLUMNS or rows > _MAX_ROWS
    cell_width, cell_height = (30, 24) if small else (104, 56)
    width = _MARGIN_LEFT + max(columns * cell_width, 300)
    height = _MARGIN_TOP + rows * cell_height
    parts = [text(_MARGIN_LEFT, 14, horizontal, "axis")]
    if rows > 1:
        parts.append(f'<text class="axis" transform="translate(12 {_MARGIN_TOP + cell_height * rows / 2:.0f}) rotate(-90)" '
                     f'text-anchor="middle">{escape(vertical)}</text>')  # fmt: skip
        parts += [text(_MARGIN_LEFT - 8, _MARGIN_TOP + (row + 0.5) * cell_height, str(row), "axis", "end") for row in range(rows)]
    parts += [text(_MARGIN_LEFT + (column + 0.5) * cell_width, 32, str(column), "axis", "middle") for column in range(columns)]
    for (row, column), cell in cell_at.items():
        x, y = _MARGIN_LEFT + column * cell_width, _MARGIN_TOP + row * cell_height
        parts.append(_cell(cell, x, y, cell_width, cell_height, texts=not small))
    return picture(width, height, parts)


def _cell(cell: HeatCell, x: float, y: float, width: float, height: float, *, texts: bool) -> str:
    size = f'width="{width - _GAP}" height="{height - _GAP}"'
    bar = (width - _GAP) * cell.dead
    lines = "".join(text(x + 6, y + 16 + 15 * row, line, "celltext") for row, line in enumerate(cell.texts)) if texts else ""
    return (
        f"<g><title>{escape(cell.title)}</title>"
        f'<rect class="cell" x="{x}" y="{y}" {size}/>'
        f'<rect class="live" fill-opacity="{_MAX_OPACITY * cell.heat:.3f}" x="{x}" y="{y}" {size}/>'
        f'<rect class="dead" x="{x}" y="{y + height - _GAP - _BAR}" width="{bar:.1f}" height="{_BAR}"/>{lines}</g>'
    )
