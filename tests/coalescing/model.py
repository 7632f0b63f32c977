"""The slow, obvious model of a coalesced table: temporal-coalescing, section 3, with rows of lists and if statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Reading = tuple[Any, int, Any]
"""Group, stamp, value."""
Run = tuple[Any, Any, int, int, tuple[int, ...]]
"""Group, value (of its first member), start, end, stamps."""


def _order(group: object) -> tuple[bool, Any]:
    return (group is not None, 0 if group is None else group)


@dataclass
class Model:
    """All points that ever arrived; a window of time or of rows; how neighbours are compared."""

    window: int | None = None
    rows: int | None = None
    alike: Callable[[Any, Any], bool] = lambda before, now: before == now
    now: int = 0
    points: dict[tuple[Any, int], Any] = field(default_factory=dict)

    def arrive(self, batch: Iterable[Reading], now: int) -> None:
        """Take a batch: the first loaded point of a group and stamp wins, and within a batch the smallest value."""
        self.now = max(self.now, now)
        stored = {(group, stamp) for group, stamp, _ in self.members()}
        for group, stamp, value in sorted(batch, key=lambda point: (point[1], _order(point[0]), _order(point[2]))):
            if (group, stamp) not in stored:
                self.points.setdefault((group, stamp), value)
        inside = {(group, stamp) for group, stamp, _ in self.members()}
        self.points = {key: value for key, value in self.points.items() if key in inside}

    def members(self) -> list[Reading]:
        """The members, in order of their stamps."""
        every = [(group, stamp, value) for (group, stamp), value in self.points.items()]
        every.sort(key=lambda point: (point[1], _order(point[0])))
        if self.rows is not None:
            return every[-self.rows :]
        return [point for point in every if self.window is None or point[1] >= self.now - self.window]

    def table(self) -> list[Run]:
        """Return the rows, by group and start."""
        rows: list[Run] = []
        members = self.members()
        for group in sorted({point[0] for point in members}, key=_order):
            own = [point for point in members if point[0] == group]
            runs: list[list[Reading]] = []
            for position, point in enumerate(own):
                if position and self.alike(own[position - 1][2], point[2]):
                    runs[-1].append(point)
                else:
                    runs.append([point])
            for position, run in enumerate(runs):
                stamps = tuple(stamp for _, stamp, _ in run)
                end = runs[position + 1][0][1] if position + 1 < len(runs) else stamps[-1]
                rows.append((group, run[0][2], stamps[0], end, stamps))
        return rows
