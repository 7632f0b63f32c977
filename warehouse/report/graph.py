"""Draws which tables read which, as boxes and arrows: each box is to the right of all that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from warehouse.report.svg import picture, shortened, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["GraphNode", "graph"]

_BOX_HEIGHT, _COLUMN_GAP, _ROW_GAP, _MARGIN = 42, 70, 16, 10
_LETTER_WIDTH, _MIN_WIDTH, _MAX_LETTERS = 8.6, 150, 34
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="ink" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


@dataclass(frozen=True)
class GraphNode:
    """A table: its name, a line about it, the class of its box, and the identifier of its section."""

    name: str
    text: str
    kind: str = ""
    target: str = ""


def graph(nodes: Sequence[GraphNode], edges: Iterable[tuple[str, str]]) -> str:
    """Return a box for each node and an arrow from each table to each that reads it; arrows pass between boxes, not behind."""
    listed = list(edges)
    depths = _depths({node.name: [source for source, target in listed if target == node.name] for node in nodes})
    paths = [_Path(source, target, depths[source], depths[target]) for source, target in listed]
    rows = _rows([(node.name, depths[node.name]) for node in nodes], paths)
    box_width = max([_MIN_WIDTH, *(len(shortened(node.name, _MAX_LETTERS)) * _LETTER_WIDTH + 24 for node in nodes)])

    def position(stop: _Stop) -> tuple[float, float]:
        return _MARGIN + stop[1] * (box_width + _COLUMN_GAP), _MARGIN + rows[stop] * (_BOX_HEIGHT + _ROW_GAP)

    parts = [_ARROW, *(_arrow(path, [position(stop) for stop in path.stops], box_width) for path in paths)]
    parts += [_box(node, *position((node.name, depths[node.name])), box_width) for node in nodes]
    width = _MARGIN + (1 + max(depths.values(), default=0)) * (box_width + _COLUMN_GAP) - _COLUMN_GAP + _MARGIN
    height = _MARGIN + (1 + max(rows.values(), default=0)) * (_BOX_HEIGHT + _ROW_GAP)
    return picture(width, height, parts)


_Stop = tuple[str, int]
"""A box, or a gap for an arrow that passes a column: a name and the column."""


@dataclass(frozen=True)
class _Path:
    source: str
    target: str
    first_column: int
    last_column: int

    @property
    def stops(self) -> list[_Stop]:
        """The boxes at its ends, and a gap in each column between them."""
        between = [(f"{self.source}\0{self.target}", depth) for depth in range(self.first_column + 1, self.last_column)]
        return [(self.source, self.first_column), *between, (self.target, self.last_column)]


def _arrow(path: _Path, places: Sequence[tuple[float, float]], box_width: float) -> str:
    middles = [(x, y + _BOX_HEIGHT / 2) for x, y in places]
    line = f"M{middles[0][0] + box_width:.0f} {middles[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(middles):
        bend = f"C{x0 + box_width + _COLUMN_GAP / 2:.0f} {y0:.0f} {x1 - _COLUMN_GAP / 2:.0f} {y1:.0f} {x1 - 1:.0f} {y1:.0f}"
        line += f" {bend}" + (f" H{x1 + box_width:.0f}" if (x1, y1) != middles[-1] else "")
    title = f"<title>{escape(f'{path.target} reads {path.source}')}</title>"
    return f'<path class="edge" marker-end="url(#arrow)" d="{line}">{title}</path>'


def _box(node: GraphNode, x: float, y: float, width: float) -> str:
    box = (
        f'<g><title>{escape(f"{node.name}: {node.text}")}</title>'
        f'<rect class="box {node.kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX_HEIGHT}" rx="6"/>'
        f"{text(x + 10, y + 17, shortened(node.name, _MAX_LETTERS), 'name')}{text(x + 10, y + 33, node.text, 'axis')}</g>"
    )
    return f'<a href="#{escape(node.target)}">{box}</a>' if node.target else box


def _depths(reads: dict[str, list[str]]) -> dict[str, int]:
    depths: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max((depth_of(input_name) for input_name in reads[name]), default=-1)
        return depths[name]

    return {name: depth_of(name) for name in reads}


def _rows(nodes: Sequence[_Stop], paths: Sequence[_Path]) -> dict[_Stop, int]:
    """Return the row of each stop: by the mean row of its predecessors, so that fewer arrows cross.

    Places for arrows that pass a column, and order by barycentres: Sugiyama, Tagawa and Toda, 1981.
    """
    predecessors: dict[_Stop, list[_Stop]] = {node: [] for node in nodes}
    for path in paths:
        for source_stop, target_stop in pairwise(path.stops):
            predecessors.setdefault(target_stop, []).append(source_stop)
    rows: dict[_Stop, int] = {}
    for depth in range(1 + max((depth for _, depth in nodes), default=0)):
        stops = [stop for stop in predecessors if stop[1] == depth]
        if depth:
            means = {stop: sum(rows[source] for source in predecessors[stop]) / len(predecessors[stop]) for stop in stops}
            stops.sort(key=means.__getitem__)
        rows.update({stop: row for row, stop in enumerate(stops)})
    return rows
