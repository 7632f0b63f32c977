"""The best that can be kept: of a window join by min-cost flow, of a static join by dynamic programming.

The yardsticks of :mod:`benchmarks.source.join_memory` (approximate-joins sheet, 3 and 4). The source's graph of the window join
has a node for each tuple and each time at which it may be in memory; the small graph, which is used for long streams, has one
for each pair. Both are solved by SciPy's HiGHS: the matrix of a flow is totally unimodular, so the optimum is one of whole cells.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.source.join_memory import Streams

__all__ = ["Flow", "best", "best_of_each", "full_graph", "greedy", "optimum", "optimum_of_full_graph"]


@dataclass
class Flow:
    """A graph with arcs (from, to, capacity, cost), through which ``units`` go from one node to another at the least cost."""

    source: object
    sink: object
    units: int
    arcs: list[tuple[object, object, int, float]] = field(default_factory=list)

    @property
    def nodes(self) -> dict[object, int]:
        """The number of each node."""
        numbers: dict[object, int] = {self.source: 0, self.sink: 1}
        for begin, end, _, _ in self.arcs:
            numbers.setdefault(begin, len(numbers))
            numbers.setdefault(end, len(numbers))
        return numbers

    def least_cost(self) -> int:
        """Return the least cost, which is a whole number."""
        import numpy as np  # noqa: PLC0415 - the extra `bench` has both
        from scipy.optimize import linprog  # noqa: PLC0415 - same
        from scipy.sparse import coo_array  # noqa: PLC0415 - same

        nodes = self.nodes
        starts = np.array([nodes[begin] for begin, _, _, _ in self.arcs])
        ends = np.array([nodes[end] for _, end, _, _ in self.arcs])
        arc_numbers = np.arange(len(self.arcs))
        data = np.concatenate([np.ones(len(self.arcs)), -np.ones(len(self.arcs))])
        shape = (len(nodes), len(self.arcs))
        matrix = coo_array((data, (np.concatenate([starts, ends]), np.concatenate([arc_numbers, arc_numbers]))), shape=shape)
        supply = np.zeros(len(nodes))
        supply[0], supply[1] = self.units, -self.units
        bounds = np.array([(0, capacity) for _, _, capacity, _ in self.arcs])
        costs = np.array([cost for _, _, _, cost in self.arcs])
        solved = linprog(costs, A_eq=matrix.tocsr(), b_eq=supply, bounds=bounds, method="highs")
        return round(solved.fun)


# --- window joins ---


def optimum(streams_: Streams, window: int, cells: int, *, variable: bool = False, since: int = 0) -> int:
    """Return the most pairs that any schedule delivers from a time on: a min-cost flow over the small graph of section 4.2.

    A cell goes from time to time, at no cost while its tuple does not matter, or by the partners of one tuple, each a unit of
    profit.
    """
    together = sum(first == second for now, (first, second) in enumerate(zip(*streams_, strict=True)) if now >= since)
    if variable:
        return together - _small_graph(streams_, window, cells, (0, 1), since).least_cost()
    room = min(cells // 2, window - 1)
    return together - sum(_small_graph(streams_, window, room, (stream,), since).least_cost() for stream in (0, 1))


def _small_graph(streams_: Streams, window: int, cells: int, of: Sequence[int], since: int) -> Flow:
    length = len(streams_[0])
    flow = Flow(0, length, cells, [(now, now + 1, cells, 0.0) for now in range(length)])
    for stream in of:
        positions: dict[int, list[int]] = defaultdict(list)
        for position, value in enumerate(streams_[1 - stream]):
            positions[value].append(position)
        for arrived, value in enumerate(streams_[stream]):
            before: object = arrived
            for partner in positions.get(value, ()):
                if arrived < partner < arrived + window:
                    met = (stream, arrived, partner)
                    flow.arcs += [(before, met, 1, -1.0 if partner >= since else 0.0), (met, partner, 1, 0.0)]
                    before = met
    return flow


def optimum_of_full_graph(streams_: Streams, window: int, cells: int, *, variable: bool = False, since: int = 0) -> int:
    """Return the same as :func:`optimum`, by the source's graph: a check for short streams."""
    return -full_graph(streams_, window, cells, variable=variable, since=since).least_cost()


def full_graph(streams_: Streams, window: int, cells: int, *, variable: bool = False, since: int = 0) -> Flow:
    """Return the source's graph (section 4.1): a unit of flow is a cell, which goes from its tuple to an arriving tuple."""
    last = len(streams_[0]) - 1
    room = min(cells // 2, window - 1, last + 1)
    flow = Flow("source", "sink", 2 * room + 1)
    for stream in (0, 1):
        for arrived, value in enumerate(streams_[stream]):
            if arrived < room:
                flow.arcs.append(("source", (stream, arrived, arrived), 1, 0.0))
            for now in range(arrived, min(arrived + window - 1, last) + 1):
                node = (stream, arrived, now)
                if now < min(arrived + window - 1, last):
                    meets = streams_[1 - stream][now + 1] == value and now + 1 >= since
                    flow.arcs.append((node, (stream, arrived, now + 1), 1, -1.0 if meets else 0.0))
                for other in ((stream, 1 - stream) if variable else (stream,)) if now > arrived else ():
                    flow.arcs.append((node, (other, now, now), 1, 0.0))
                if now == last:
                    flow.arcs.append((node, "sink", 1, 0.0))
    together = [
        ("top", time) for time, (first, second) in enumerate(zip(*streams_, strict=True)) if first == second and time >= since
    ]
    path = ["source", *together, "sink"]
    flow.arcs += [(begin, end, 1, 0.0 if begin == "source" else -1.0) for begin, end in pairwise(path)]
    return flow


# --- static joins ---


def best(components: Sequence[tuple[int, int]], nodes: int) -> tuple[int, tuple[int, ...]]:
    """Return the most results of a static join that keeps ``nodes`` tuples, and how many of each value (section 3).

    A value's tuples, ``(in one relation, in the other)``, join each with each; kept are as many of one as of the other.

    >>> best([(4, 1), (3, 3), (2, 2)], 10)
    (10, (0, 6, 4))
    """
    table: list[tuple[int, tuple[int, ...]] | None] = [(0, ()), *([None] * nodes)]
    for left, right in components:
        following: list[tuple[int, tuple[int, ...]] | None] = [None] * (nodes + 1)
        for before, entry in enumerate(table):
            for added in range(min(left + right, nodes - before) + 1) if entry is not None else ():
                few = min(left, right, added // 2)
                edges = entry[0] + few * min(added - few, max(left, right))
                reached = following[before + added]
                if reached is None or edges > reached[0]:
                    following[before + added] = edges, (*entry[1], added)
        table = following
    return max((filled for filled in table if filled is not None), key=lambda filled: filled[0])


def best_of_each(components: Sequence[tuple[int, int]], left: int, right: int) -> int:
    """Return the most results of a static join that keeps ``left`` and ``right`` tuples of the two relations.

    >>> best_of_each([(4, 1), (3, 3), (2, 2)], 5, 3)
    9
    """
    table = {(0, 0): 0}
    for first_size, second_size in components:
        following: dict[tuple[int, int], int] = {}
        for (first, second), edges in table.items():
            for first_kept in range(min(first_size, left - first) + 1):
                for second_kept in range(min(second_size, right - second) + 1):
                    sizes = first + first_kept, second + second_kept
                    following[sizes] = max(following.get(sizes, 0), edges + first_kept * second_kept)
        table = following
    return max(table.values())


def greedy(components: Sequence[tuple[int, int]], nodes: int) -> int:
    """Return the results that remain after dropping the tuple with the fewest results again and again: not the most.

    >>> greedy([(3, 3), (5, 2)], 7), best([(3, 3), (5, 2)], 7)[0]
    (9, 10)
    """
    remaining = [list(sizes) for sizes in components]
    while sum(map(sum, remaining)) > nodes:
        sides = [(tuples[1 - side], number, side) for number, tuples in enumerate(remaining) for side in (0, 1) if tuples[side]]
        _, number, side = min(sides)
        remaining[number][side] -= 1
    return sum(left * right for left, right in remaining)
