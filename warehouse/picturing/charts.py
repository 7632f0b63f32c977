"""Charts as SVG text: a grid of cells, stacked columns, lines, a histogram, a graph; pure functions of values.

Colours are classes of the page's style sheet (`c0` .. `c7`, `live`, `dead`, `grid`, `ink`), so that one picture is good on a
dark screen, a light one and paper. Every shape has a title, which browsers show beside the pointer and read aloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["COLOURS", "HeatCell", "Series", "graph", "heat_map", "histogram", "legend", "lines", "stacked"]

COLOURS = 8
"""How many classes `c0`, `c1`, ... the style sheet has; the last one is for the rest."""

_WIDTH, _HEIGHT = 760, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 10, 10, 30
_TICKS = 4
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="ink" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
_LABELS = 6


@dataclass(frozen=True)
class HeatCell:
    """A cell at a row and column from 0: how warm it is and how much of that is dead, both 0 to 1; its texts."""

    row: int
    column: int
    heat: float
    dead: float
    texts: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class Series:
    """One quantity at each place of the horizontal axis."""

    name: str
    values: tuple[float, ...]


def heat_map(cells: Sequence[HeatCell], *, across: str, down: str) -> str:
    """Return a grid: the warmer a cell the more of it is filled; a bar at its foot shows how much is dead."""
    wide, high, margin = 118, 64, 26
    columns = 1 + max((cell.column for cell in cells), default=0)
    rows = 1 + max((cell.row for cell in cells), default=0)
    parts = [_text(margin, 14, across, "axis")]
    parts.append(f'<text class="axis" transform="translate(14 {margin + high * rows / 2:.0f}) rotate(-90)" '
                 f'text-anchor="middle">{escape(down)}</text>')  # fmt: skip
    for cell in cells:
        x, y = margin + cell.column * wide, margin + cell.row * high
        inner, bar = wide - 4, (wide - 4) * cell.dead
        parts.append(f"<g><title>{escape(cell.title)}</title>")
        parts.append(f'<rect class="cell" x="{x}" y="{y}" width="{inner}" height="{high - 4}"/>')
        parts.append(f'<rect class="live" fill-opacity="{cell.heat:.3f}" x="{x}" y="{y}" width="{inner}" height="{high - 4}"/>')
        parts.append(f'<rect class="dead" x="{x}" y="{y + high - 12}" width="{bar:.1f}" height="8"/>')
        parts += [_text(x + 6, y + 17 + 15 * line, text, "celltext") for line, text in enumerate(cell.texts)]
        parts.append("</g>")
    return _svg(margin + columns * wide, margin + rows * high, parts)


def stacked(labels: Sequence[str], series: Sequence[Series], unit: Callable[[float], str], titles: Sequence[str]) -> str:
    """Return columns, one for each label, in which the series stand on each other."""
    totals = [sum(each.values[place] for each in series) for place in range(len(labels))]
    axis, top = _axis(max(totals, default=0.0), unit)
    step = _step(len(labels))
    parts = [*axis, *_labels(labels)]
    for place in range(len(labels)):
        base = 0.0
        parts.append(f"<g><title>{escape(titles[place])}</title>")
        for number, each in enumerate(series):
            value = each.values[place]
            if value > 0:
                y = _y(base + value, top)
                parts.append(_rect(f"c{min(number, COLOURS - 1)}", _x(place, step), y, step * 0.85, _y(base, top) - y))
                base += value
        parts.append("</g>")
    return _svg(_WIDTH, _HEIGHT, parts)


def lines(labels: Sequence[str], series: Sequence[Series], unit: Callable[[float], str]) -> str:
    """Return a line for each series."""
    axis, top = _axis(max((value for each in series for value in each.values), default=0.0), unit)
    step = _step(len(labels))
    parts = [*axis, *_labels(labels)]
    for number, each in enumerate(series):
        points = [(_x(place, step) + step * 0.425, _y(value, top)) for place, value in enumerate(each.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = f"c{min(number, COLOURS - 1)}"
        parts.append(f'<polyline class="line {colour}" points="{path}"/>')
        for (x, y), value, label in zip(points, each.values, labels, strict=True):
            title = escape(f"{each.name}, {label}: {unit(value)}")
            parts.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{title}</title></circle>')
    return _svg(_WIDTH, _HEIGHT, parts)


def histogram(labels: Sequence[str], counts: Sequence[int], titles: Sequence[str]) -> str:
    """Return columns of one colour."""
    return stacked(labels, [Series("", tuple(map(float, counts)))], lambda value: f"{value:,.0f}", titles)


def graph(nodes: Sequence[tuple[str, str]], edges: Iterable[tuple[str, str]]) -> str:
    """Return boxes with a name and what it is, each right of all that it reads, and arrows along the edges."""
    reads: dict[str, list[str]] = {name: [] for name, _ in nodes}
    for source, target in edges:
        reads[target].append(source)
    depth: dict[str, int] = {}

    def deep(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((deep(each) for each in reads[name]), default=-1)
        return depth[name]

    wide, high, gap = 170, 42, 70
    places: dict[str, tuple[int, int]] = {}
    filled: dict[int, int] = {}
    for name, _ in nodes:
        column = deep(name)
        places[name] = (10 + column * (wide + gap), 10 + filled.get(column, 0) * (high + 16))
        filled[column] = filled.get(column, 0) + 1
    parts = [_ARROW]
    for target, sources in reads.items():
        for source in sources:
            (x0, y0), (x1, y1) = places[source], places[target]
            ends = f"M{x0 + wide} {y0 + high / 2:.0f} C{x0 + wide + gap / 2:.0f} {y0 + high / 2:.0f}"
            parts.append(f'<path class="edge" marker-end="url(#arrow)" d="{ends} {x1 - gap / 2:.0f} {y1 + high / 2:.0f} '
                         f'{x1 - 1} {y1 + high / 2:.0f}"><title>{escape(f"{target} reads {source}")}</title></path>')  # fmt: skip
    for name, text in nodes:
        x, y = places[name]
        parts.append(f'<rect class="box" x="{x}" y="{y}" width="{wide}" height="{high}" rx="6"/>')
        parts += [_text(x + 10, y + 17, _short(name, 22), "name"), _text(x + 10, y + 33, text, "axis")]
    right = 10 + (1 + max(depth.values(), default=0)) * (wide + gap) - gap + 10
    return _svg(right, 10 + max(filled.values(), default=0) * (high + 16), parts)


def legend(names: Sequence[str]) -> str:
    """Return the names with their colours."""
    return '<p class="legend">' + " ".join(
        f'<span><svg width="12" height="12" aria-hidden="true"><rect class="c{min(number, COLOURS - 1)}" width="12" '
        f'height="12"/></svg> {escape(name)}</span>'
        for number, name in enumerate(names)
    ) + "</p>"  # fmt: skip


# --- parts ---


def _svg(width: float, height: float, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px"'
    return f'<svg role="img" {size}>{"".join(parts)}</svg>'


def _rect(colour: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{colour}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _step(count: int) -> float:
    return (_WIDTH - _LEFT - _RIGHT) / max(count, 1)


def _x(place: int, step: float) -> float:
    return _LEFT + place * step


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top


def _axis(largest: float, unit: Callable[[float], str]) -> tuple[list[str], float]:
    """Return grid lines with their values, and the value at the top: round numbers."""
    step = _round_up(largest / _TICKS) if largest > 0 else 1.0
    top = step * _TICKS
    parts = []
    for tick in range(_TICKS + 1):
        y = _y(tick * step, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 6, y + 4, unit(tick * step), "axis", "end"))
    return parts, top


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** ceil(log10(value) - 1)
    return next((each * power for each in (1, 2, 2.5, 5, 10) if each * power >= value), 10 * power)


def _labels(labels: Sequence[str]) -> list[str]:
    every, step = max(1, ceil(len(labels) / _LABELS)), _step(len(labels))
    y = _HEIGHT - _BOTTOM + 16
    return [_text(_x(place, step), y, label, "axis") for place, label in enumerate(labels) if place % every == 0]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
