"""The grid, drawn by the formulas that place rows (doubly-partitioned-index sheet, figures 4.1 and 4.2, for this layout)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docs.building.rooms import rooms
from docs.building.svg import drawing
from warehouse.layout import closing_cells, column, exp_block, expired_below, resolve, row, sub_index
from warehouse.report.svg import rectangle, text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FIGURES", "FOLDER", "plane", "updates", "write"]

FOLDER = Path(__file__).parent.parent / "figures"
LAYOUT = resolve(periods=12, label="WK", grid=(3, 4))
"""Three rows of four slots, four columns of blocks of three slots; lifetimes up to twelve slots."""
NOW = 24
"""The slot of the last update."""
_SQUARE = 24


def plane() -> str:
    """Draw load slot by expiration slot: what is live, which sub-index and block it lies in, what an update changes."""
    periods, left, top = LAYOUT.periods, 70, 56
    loads, ends = range(NOW - periods + 1, NOW + 2), range(NOW + 1, NOW + periods + 2)
    parts = [text(left, 16, "expiration slot", "axis"), text(8, top - 10, "load slot", "axis")]
    parts += [text(left + (b - ends[0] + 0.5) * _SQUARE, top - 10, str(b), "axis", "middle") for b in ends]
    parts += [text(left - 10, top + (a - loads[0] + 0.7) * _SQUARE, str(a), "axis", "end") for a in loads]
    places = {(a, b): _region(a, b) for a in loads for b in ends if b <= a + periods and (a <= NOW or b > NOW + 1)}
    for a, b in places:
        kind = "dead" if b == NOW + 1 else "new" if a == NOW + 1 else "live"
        parts.append(rectangle(kind, left + (b - ends[0]) * _SQUARE, top + (a - loads[0]) * _SQUARE, _SQUARE, _SQUARE))
    for (a, b), region in places.items():
        x, y = left + (b - ends[0]) * _SQUARE, top + (a - loads[0]) * _SQUARE
        if (a + 1, b) in places and places[a + 1, b] != region:
            parts.append(_border(x, y + _SQUARE, x + _SQUARE, y + _SQUARE))
        if (a, b + 1) in places and places[a, b + 1] != region:
            parts.append(_border(x + _SQUARE, y, x + _SQUARE, y + _SQUARE))
    for region in dict.fromkeys(places.values()):
        own = [place for place, other in places.items() if other == region and place[0] <= NOW and place[1] > NOW + 1]
        for a, b in own[len(own) // 2 :][:1]:
            across, down = left + (b - ends[0] + 0.5) * _SQUARE, top + (a - loads[0] + 0.7) * _SQUARE
            parts.append(text(across, down, str(region[0]), "number", "middle"))
    low = top + (len(loads) + 1) * _SQUARE
    parts += _key(left, low, (("live", "live"), ("new", f"loaded by update {NOW + 1}"), ("dead", "expired by then")))
    return drawing(left + (len(ends) + 1) * _SQUARE, low + 26, parts, "Which sub-index and block a row lies in, by its slots")


def updates() -> str:
    """Draw the grid at one update after the other: where rows come, whose block has passed, what is sealed."""
    wide, high, left, gap, columns = 40, 28, 24, 36, 3
    tall = 64 + LAYOUT.rows * high + 18
    parts = []
    for number, k in enumerate(range(NOW + 1, NOW + 7)):
        line, place = divmod(number, columns)
        x0, top = left + place * (LAYOUT.columns * wide + gap), 64 + line * tall
        parts.append(text(x0, top - 44, f"update {k}", "name"))
        parts += [text(x0 + (e + 0.5) * wide, top - 8, str(e), "axis", "middle") for e in range(LAYOUT.columns)]
        parts.append(text(x0, top - 26, "expiration column", "axis"))
        if place == 0:
            parts += [text(x0 - 6, top + (g + 0.65) * high, str(g), "axis", "end") for g in range(LAYOUT.rows)]
        passed = _passed_columns(k)
        for g in range(LAYOUT.rows):
            for e in range(LAYOUT.columns):
                kind = "new" if row(LAYOUT, k, e) == g else "dead" if e in passed else "rest"
                parts.append(rectangle(kind, x0 + e * wide, top + g * high, wide - 3, high - 3))
                if kind == "new" and e in passed:
                    parts.append(rectangle("dead", x0 + e * wide, top + g * high, (wide - 3) / 2, high - 3))
        for cell in closing_cells(LAYOUT, k - 1, k):
            g, e = divmod(cell - LAYOUT.first_cell, LAYOUT.columns)
            parts.append(rectangle("sealed", x0 + e * wide, top + g * high, wide - 3, high - 3))
    low = 2 * tall
    dropped, merged = "a past block is dropped unread", "runs are merged, once"
    parts += _key(left, low, (("new", "a run is appended"), ("dead", dropped), ("sealed", merged)))
    return drawing(left + columns * (LAYOUT.columns * wide + gap), low + 26, parts, "What six updates do to the grid")


FIGURES = {"plane.svg": plane, "updates.svg": updates, "rooms.svg": rooms}


def write() -> None:
    """Write the figures to their files."""
    for name, draw in FIGURES.items():
        (FOLDER / name).write_text(draw())


def _region(a: int, b: int) -> tuple[int, int]:
    return sub_index(LAYOUT, a, b), exp_block(LAYOUT, a, b)


def _passed_columns(k: int) -> frozenset[int]:
    """Return the columns of blocks that are past at update k and were not before."""
    past = range(expired_below(LAYOUT, k - 1), expired_below(LAYOUT, k))
    return frozenset(column(LAYOUT, block * LAYOUT.expiry_block, block * LAYOUT.expiry_block + 1) for block in past)


def _border(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<line class="border" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'


def _key(left: float, y: float, kinds: Iterable[tuple[str, str]]) -> list[str]:
    parts, x = [], float(left)
    for kind, told in kinds:
        parts += [rectangle(kind, x, y, 14, 14), text(x + 20, y + 12, told, "axis")]
        x += 36 + 6.4 * len(told)
    return parts
