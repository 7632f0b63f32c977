"""Charts as SVG text: stacked columns, lines, a histogram; pure functions of values.

Every shape has a title, which browsers show at the pointer and read aloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil
from typing import TYPE_CHECKING

from warehouse.report.scales import COUNT, Scale, ticks
from warehouse.report.svg import picture, rectangle, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COLOURS", "Axis", "Bin", "Series", "histogram", "legend", "line_chart", "stacked_columns"]

COLOURS = 8
"""The number of classes `c0`, `c1`, ... in the style sheet; the last class is for all other series."""

_WIDTH, _HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 22, 40
_LETTER_WIDTH = 7
_COLUMN_SHARE = 0.85
_MAX_COLUMN_SHARE = 0.2
"""The greatest width of a column, as a share of the chart's width."""
_MIN_SEPARATED_WIDTH = 5
"""The least width of a column whose parts are separated by a line."""


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: a label for each place, and its name."""

    labels: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Series:
    """One quantity at each place of the horizontal axis."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Bin:
    """A column of a histogram: the label where it begins (empty: no label), its count, and its title."""

    begins: str
    count: int
    title: str
    kind: str = "c0"


def stacked_columns(axis: Axis, series: Sequence[Series], scale: Scale, titles: Sequence[str]) -> str:
    """Return a chart of stacked columns, one for each label, with the first series at the bottom."""
    count = len(axis.labels)
    totals = [sum(values_of.values[position] for values_of in series) for position in range(count)]
    frame, top = _frame(max(totals, default=0.0), scale, axis.name)
    step = _step(count)
    width = min(step * _COLUMN_SHARE, _MAX_COLUMN_SHARE * _WIDTH)
    shape = "bar" if width >= _MIN_SEPARATED_WIDTH else "column"
    parts = [*frame, *_axis_labels(axis.labels, step, middle=True)]
    for position in range(count):
        base = 0.0
        parts.append(f"<g><title>{escape(titles[position])}</title>")
        for number, drawn in enumerate(series):
            value = drawn.values[position]
            if value > 0:
                y = _y(base + value, top)
                x = _LEFT + (position + 0.5) * step - width / 2
                parts.append(rectangle(f"{shape} c{min(number, COLOURS - 1)}", x, y, width, _y(base, top) - y))
                base += value
        parts.append("</g>")
    return picture(_WIDTH, _HEIGHT, parts)


def line_chart(axis: Axis, series: Sequence[Series], scale: Scale, vertical: str = "") -> str:
    """Return a line for each series, with a dot at each place; ``vertical`` names the vertical axis if the unit does not."""
    frame, top = _frame(max((value for drawn in series for value in drawn.values), default=0.0), scale, axis.name, vertical)
    step = _step(len(axis.labels))
    parts = [*frame, *_axis_labels(axis.labels, step, middle=True)]
    for number, drawn in enumerate(series):
        points = [(_LEFT + (position + 0.5) * step, _y(value, top)) for position, value in enumerate(drawn.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = f"c{min(number, COLOURS - 1)}"
        parts.append(f'<polyline class="line {colour}" points="{path}"/>')
        for (x, y), value, label in zip(points, drawn.values, axis.labels, strict=True):
            title = escape(f"{drawn.name}, {label}: {scale.text(value)}")
            parts.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{title}</title></circle>')
    return picture(_WIDTH, _HEIGHT, parts)


def histogram(bins: Sequence[Bin], horizontal: str, counted: str) -> str:
    """Return a column for each bin, without gaps; ``counted`` names the things that are counted."""
    frame, top = _frame(max((column.count for column in bins), default=0), COUNT, horizontal, counted)
    step = _step(len(bins))
    parts = [*frame, *_axis_labels([column.begins for column in bins], step, middle=False)]
    for position, column in enumerate(bins):
        y, x = _y(column.count, top), _LEFT + position * step
        parts.append(f"<g><title>{escape(column.title)}</title>{rectangle(f'bar {column.kind}', x, y, step, _y(0, top) - y)}</g>")
    return picture(_WIDTH, _HEIGHT, parts)


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Return a legend: the colour of each class, then its name."""
    return '<p class="legend">' + " ".join(
        f'<span><svg width="12" height="12" aria-hidden="true"><rect class="{kind}" width="12" '
        f'height="12"/></svg> {escape(name)}</span>'
        for kind, name in entries
    ) + "</p>"  # fmt: skip


# --- parts ---


def _step(count: int) -> float:
    return (_WIDTH - _LEFT - _RIGHT) / max(count, 1)


def _y(value: float, top: float) -> float:
    """Return the height of a value; a value below 0 is on the axis."""
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * max(value, 0.0) / top


def _frame(largest: float, scale: Scale, horizontal: str, vertical: str = "") -> tuple[list[str], float]:
    """Return grid lines with their values, the names of both axes, and the value at the top: round numbers."""
    places = ticks(largest, scale)
    top = places[-1]
    parts = [
        text(_LEFT, 12, vertical or scale.axis, "axis"),
        text(_LEFT + (_WIDTH - _LEFT - _RIGHT) / 2, _HEIGHT - 5, horizontal, "axis", "middle"),
    ]
    for tick in places:
        y = _y(tick, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(_LEFT - 6, y + 4, scale.number(tick), "axis", "end"))
    return parts, top


def _axis_labels(labels: Sequence[str], step: float, *, middle: bool) -> list[str]:
    """Return as many labels as fit, below the middle or the left end of their positions."""
    labelled = [(position, label) for position, label in enumerate(labels) if label]
    longest = max((len(label) for _, label in labelled), default=0)
    fitting = max(1, (_WIDTH - _LEFT - _RIGHT) // (_LETTER_WIDTH * (longest + 3)))
    stride = max(1, ceil(len(labelled) / fitting))
    y = _HEIGHT - _BOTTOM + 16
    return [text(_LEFT + (position + middle * 0.5) * step, y, label, "axis", "middle") for position, label in labelled[::stride]]
