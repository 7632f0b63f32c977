"""Which refreshes run together, and which runs next: shared-aggregates sheet, section 8.

A query with period n must be refreshed at least once in n updates. Queries of one group share a synopsis, so one run computes all
queries of the group that are refreshed together, at the cost of the most expensive one. The time until a deadline is counted in
updates: n after a run, and one less at each update. A run is on time while it is not negative.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import lcm
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["DeadlineTask", "Sharing", "SubGroup", "conservative", "cost_rate", "harmonic", "hybrid", "next_run"]

Sharing = Literal["none", "equal", "late", "pending"]
"""Which tasks join a run of their group.

``"none"``: no other task. ``"equal"``: tasks with the same, lowest time left. ``"late"`` and ``"pending"``, if this time is
negative: all late tasks, or all late and due tasks.
"""

_ENUMERATED = 12
"""Sub-groups of a group whose contiguous partitions are all tried: 2^11 of them."""
_HORIZON = 2_520
"""Updates that a cost rate is averaged over at most: the least common multiple of 1 to 10."""


@dataclass(frozen=True, order=True)
class SubGroup:
    """The queries of a group with one period.

    Parameters
    ----------
    name
        Its name; it decides the order of equal tasks.
    group
        Its group; sub-groups of one group may be computed in one run.
    period
        In updates, at least 1.
    cost
        The cost of a separate run, in any unit: the cost of its longest window.
    queries
        How many queries a run of it refreshes.
    """

    name: str
    group: str
    period: int
    cost: float
    queries: int = 1


@dataclass(frozen=True)
class DeadlineTask:
    """Sub-groups of one group that always run together, with the shortest of their periods."""

    parts: tuple[SubGroup, ...]

    @property
    def name(self) -> str:
        """The name of the first part."""
        return min(part.name for part in self.parts)

    @property
    def group(self) -> str:
        """The group of the parts."""
        return self.parts[0].group

    @property
    def period(self) -> int:
        """In updates."""
        return min(part.period for part in self.parts)

    @property
    def cost(self) -> float:
        """The cost of the most expensive part, which computes the others too."""
        return max(part.cost for part in self.parts)


def conservative(subgroups: Iterable[SubGroup]) -> tuple[DeadlineTask, ...]:
    """Return a task for each sub-group: no query is refreshed more often than it asks for."""
    return tuple(DeadlineTask((subgroup,)) for subgroup in sorted(subgroups))


def hybrid(subgroups: Iterable[SubGroup]) -> tuple[DeadlineTask, ...]:
    """Return the tasks with the least cost per update: a sub-group runs more often if it then coincides with another one.

    The partitions tried are contiguous in order of period: in 800 random instances the best of all was always one of them
    (section 8.5). Of more than 12 sub-groups neighbours are merged one by one.
    """
    groups: defaultdict[str, list[SubGroup]] = defaultdict(list)
    for subgroup in sorted(subgroups):
        groups[subgroup.group].append(subgroup)
    tasks: list[DeadlineTask] = []
    for members in groups.values():
        ordered = sorted(members, key=lambda subgroup: (subgroup.period, subgroup.name))
        tasks += _best(ordered) if len(ordered) <= _ENUMERATED else _merged(ordered)
    return tuple(sorted(tasks, key=lambda task: task.name))


def _best(ordered: Sequence[SubGroup]) -> tuple[DeadlineTask, ...]:
    return min(_contiguous(ordered), key=lambda tasks: (cost_rate(tasks), -len(tasks)))


def _contiguous(ordered: Sequence[SubGroup]) -> Iterator[tuple[DeadlineTask, ...]]:
    for cuts in range(len(ordered)):
        for positions in combinations(range(1, len(ordered)), cuts):
            bounds = (0, *positions, len(ordered))
            yield tuple(DeadlineTask(tuple(ordered[low:high])) for low, high in pairwise(bounds))


def _merged(ordered: Sequence[SubGroup]) -> tuple[DeadlineTask, ...]:
    """The best partition found by merging neighbours, the cheapest merge first, from all apart to all together."""
    tasks = best = tuple(DeadlineTask((subgroup,)) for subgroup in ordered)
    while len(tasks) > 1:
        tasks = min((_joined(tasks, position) for position in range(len(tasks) - 1)), key=cost_rate)
        best = min(best, tasks, key=cost_rate)
    return best


def _joined(tasks: tuple[DeadlineTask, ...], position: int) -> tuple[DeadlineTask, ...]:
    return (*tasks[:position], DeadlineTask(tasks[position].parts + tasks[position + 1].parts), *tasks[position + 2 :])


def harmonic(tasks: Iterable[DeadlineTask]) -> tuple[DeadlineTask, ...]:
    """Return tasks whose periods are rounded down to multiples of shorter periods of their group, where that costs less.

    If a task then runs together with a more expensive one, it adds no cost. The sub-groups keep their names, costs and queries;
    no period is longer than the period of the task.
    """
    groups: defaultdict[str, list[DeadlineTask]] = defaultdict(list)
    for task in tasks:
        groups[task.group].append(task)
    harmonized: list[DeadlineTask] = []
    for members in groups.values():
        periodic: tuple[DeadlineTask, ...] = tuple(sorted(members, key=lambda task: task.period))
        for position in range(1, len(periodic)):
            choices = {
                periodic[position].period,
                *(periodic[position].period // shorter.period * shorter.period for shorter in periodic[:position]),
            }
            periodic = min(
                (
                    (*periodic[:position], _with_period(periodic[position], period), *periodic[position + 1 :])
                    for period in sorted(choices, reverse=True)
                ),
                key=cost_rate,
            )
        harmonized += periodic
    return tuple(sorted(harmonized, key=lambda task: task.name))


def _with_period(task: DeadlineTask, period: int) -> DeadlineTask:
    parts = (SubGroup(part.name, part.group, min(part.period, period), part.cost, part.queries) for part in task.parts)
    return DeadlineTask(tuple(parts))


def cost_rate(tasks: Sequence[DeadlineTask]) -> float:
    """Return the mean cost of an update if each task of one group runs at the multiples of its period.

    Tasks that are due together run together. The mean is exact if the periods' least common multiple is at most 2 520.

    Examples
    --------
    >>> a, b = DeadlineTask((SubGroup("a", "g", 2, 9),)), DeadlineTask((SubGroup("b", "g", 3, 14),))
    >>> round(cost_rate([a, b]), 2)
    7.67
    """
    horizon = min(lcm(*(task.period for task in tasks)), _HORIZON)
    dearest = np.zeros(horizon)
    for task in tasks:
        due = dearest[task.period - 1 :: task.period]
        np.maximum(due, task.cost, out=due)
    return float(dearest.mean())


def next_run(
    tasks: Sequence[DeadlineTask], left: Mapping[DeadlineTask, int], sharing: Sharing, *, eager: bool = False
) -> tuple[DeadlineTask, ...]:
    """Return the tasks of the next joint run, the earliest deadline first; an empty tuple if no task is due.

    Parameters
    ----------
    tasks
        All tasks of one scheduler, whatever their group.
    left
        Updates until the deadline of each task; negative when it is late.
    sharing
        ``"none"`` is Algorithm 9, ``"equal"`` Algorithm 10, ``"pending"`` (H-LP) and ``"late"`` (H-LS) Algorithm 11.
    eager
        Run tasks before they are due.
    """
    if not tasks:
        return ()
    lowest = min(left[task] for task in tasks)
    if lowest > 0 and not eager:
        return ()
    first = min((task for task in tasks if left[task] == lowest), key=lambda task: task.name)
    if sharing == "none":
        return (first,)
    bound = lowest
    if lowest < 0 and sharing != "equal":
        bound = 0 if sharing == "pending" else -1
    joined = (task for task in tasks if task.group == first.group and left[task] <= bound)
    return tuple(sorted(joined, key=lambda task: task.name))
